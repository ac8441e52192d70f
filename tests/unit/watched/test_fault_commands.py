"""Fault rules on a server: the option of `hashrange serve`, `hashrange faults`, and the admin plane."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from click.testing import CliRunner, Result

from endpoints import connection
from hashrange import faults
from hashrange.cli import logs, main
from hashrange.cli.admin import bind_admin
from hashrange.cli.serving import serve as serving
from hashrange.database import Database
from hashrange.faults import parse, show
from hashrange.server import running
from serving import serving as served
from unit.test_admin import ask

PAGE = Path(__file__).resolve().parents[3] / "docs" / "faults.md"


def invoke(*arguments: str, **variables: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="hashrange", env=variables)


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.in_memory() as database:
        yield database


@pytest.fixture
def url(database: Database) -> Iterator[str]:
    listening = bind_admin(0)
    with running(database, admin=listening):
        yield listening.url


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The rules in force of each server that a command started."""
    found: list[list[str]] = []

    def serve(database: Database, **options: Any) -> None:
        found.append([show(one.rule) for one in database.faults])

    monkeypatch.setattr(serving, "serve", serve)
    monkeypatch.setattr(logs, "configure", lambda *_: None)
    return found


def test_the_admin_plane_lists_adds_and_removes(url: str, database: Database) -> None:
    assert ask(url, "/v1/faults") == (200, {"faults": []})
    first = {"number": 1, "rule": "PutItem nth=3 throttle", "matched": 0, "fired": 0}
    assert ask(url, "/v1/faults", {"rule": "nth=3 PutItem throttle"}) == (200, {"faults": [first]})
    second = first | {"number": 2, "rule": "* latency seconds=0.5"}
    assert ask(url, "/v1/faults", {"rule": "latency seconds=0.5"}) == (200, {"faults": [first, second]})
    assert ask(url, "/v1/faults/1", method="DELETE") == (200, {"faults": [second]})
    for number in ("1", "x", "-2"):
        assert ask(url, f"/v1/faults/{number}", method="DELETE") == (
            404,
            {"error": f"there is no fault {number}; there are: 2"},
        )
    assert ask(url, "/v1/faults", method="DELETE") == (200, {"faults": []})
    assert len(database.faults) == 0


@pytest.mark.parametrize("body", [{"rule": "PutItem"}, {"rule": 1}, {}, {"rule": "trim", "x": 1}, []])
def test_the_admin_plane_refuses_what_is_no_rule(url: str, database: Database, body: object) -> None:
    status, shown = ask(url, "/v1/faults", body)
    assert (status, list(shown)) == (400, ["error"])
    assert len(database.faults) == 0


def test_the_command(url: str, database: Database) -> None:
    for arguments, output in (
        (["list"], "no faults\n"),
        (["add", "PutItem", "table=orders", "throttle"], "1  PutItem table=orders throttle"),
        (["remove", "1"], "no faults\n"),
        (["add", "* lose-answer nth=2"], "2  * nth=2 lose-answer  matched 0, fired 0\n"),
        (["clear"], "no faults\n"),
    ):
        result = invoke("faults", *arguments, HASHRANGE_ADMIN_URL=url)
        assert result.exit_code == 0
        assert result.stdout.startswith(output)


def test_the_command_tells_what_is_wrong(url: str) -> None:
    wrong = invoke("faults", "add", "PutItem", "trottle", HASHRANGE_ADMIN_URL=url)
    assert wrong.exit_code == 1
    assert "did you mean throttle?" in wrong.stderr
    assert (
        "there is no fault 7; there are: none" in invoke("faults", "remove", "7", "--admin-url", url).stderr
    )
    nowhere = invoke("faults", "list", "--admin-url", "http://127.0.0.1:1")
    assert "start a server with `hashrange serve`" in nowhere.stderr


def test_the_option(started: list[list[str]], tmp_path: Path) -> None:
    file = tmp_path / "faults.txt"
    file.write_text("# a comment\nPutItem nth=3 throttle\n\nlatency seconds=0.2\n", encoding="utf-8")
    options = ["--fault", "trim", "--fault", f"@{file}"]
    assert invoke("serve", "--memory", "--port", "0", *options).exit_code == 0
    from_environment = "PutItem nth=3 throttle; Query latency seconds=1"
    assert invoke("serve", "--memory", "--port", "0", HASHRANGE_FAULT=from_environment).exit_code == 0
    assert started == [
        ["* trim", "PutItem nth=3 throttle", "* latency seconds=0.2"],
        ["PutItem nth=3 throttle", "Query latency seconds=1"],
    ]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("PutItem trottle", "did you mean throttle?"),
        ("@nothing.txt", "nothing.txt cannot be read: No such file or directory"),
        ("latency seconds=1 virtual=yes", "hashrange serve --virtual-clock"),
    ],
)
def test_a_wrong_option_is_reported(started: list[list[str]], option: str, message: str) -> None:
    result = invoke("serve", "--memory", "--port", "0", "--fault", option)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert started == []


def test_a_real_server_throttles() -> None:
    with served("--memory", "--fault", "ListTables nth=2 throttle") as server:
        client = boto3.client("dynamodb", **connection(server.endpoint))
        client.list_tables()
        with pytest.raises(client.exceptions.ClientError, match="ThrottlingException"):
            client.list_tables()
        client.list_tables()
        client.close()


def test_the_commands_of_the_page(
    url: str, started: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("faults.txt").write_text("PutItem throttle\n", encoding="utf-8")
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    assert len(lines) > 5
    for line in lines:
        program, command, *arguments = shlex.split(line)
        assert program == "hashrange"
        free = ["--port", "0"] if command == "serve" else []
        result = invoke(command, *arguments, *free, HASHRANGE_ADMIN_URL=url)
        assert result.exit_code == 0, result.stderr
    assert started == [["PutItem table=orders nth=3 throttle", "* latency seconds=0.2"], ["PutItem throttle"]]


def test_the_tables_of_the_page_say_the_same_in_both_columns() -> None:
    rows = re.findall(r"^\| `(\w+\(.*)` \| `(.*?)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(rows) >= 12
    for call, text in rows:
        call, text = (one.replace("limit=…", "limit=AccountLimitExceeded") for one in (call, text))
        call, text = (one.replace("exception=…", "exception=ThrottlingException") for one in (call, text))
        quoted = re.sub(r"(limit|exception)=(\w+)", r'\1="\2"', call)
        assert eval(quoted, vars(faults).copy()) == parse(text), call
    methods = re.findall(r"^\| `(\..*?)`.*? \| `(.*?)`", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(methods) == 4
    for method, text in methods:
        assert eval(f"trim(){method}", vars(faults).copy()) == parse(f"trim {text}")
