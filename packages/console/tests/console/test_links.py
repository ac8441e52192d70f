"""The links to the console: that which the server prints at its start, and that of `hashrange console`."""

from __future__ import annotations

import http.client
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result

import certificates
from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.cli.serving import serve as serving
from hashrange.database import Database
from hashrange.server import running


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_the_welcome_has_a_link_and_the_log_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        serving, "serve", lambda database, **options: options["started"]("http://127.0.0.1:1")
    )
    result = invoke("serve", "--memory")
    admin = re.search(r"admin=(\S+)", result.stderr)
    assert admin is not None
    assert f"console    {admin[1]}/console?token=" in result.stdout
    assert "token=" not in result.stderr  # (the log is kept, and others may read it)


def test_a_link_of_the_command_works_with_tls(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = certificates.make(tmp_path)
    held = files.certificates()
    admin = bind_admin(0, certificates=held)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(files.ca))
    with running(database, admin=admin, certificates=held) as endpoint:
        link = invoke("console", "--endpoint-url", endpoint).stdout.strip()
        connection = http.client.HTTPSConnection(urlsplit(link).netloc, context=files.context())
        connection.request("GET", link.partition(str(admin.port))[2])
        cookie = connection.getresponse().headers["Set-Cookie"]
        connection.close()
        assert {"Secure", "HttpOnly"} <= set(cookie.split("; "))
