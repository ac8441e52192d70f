"""Loads and replays over TLS."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import certificates
from hashrange.cli import main
from hashrange.database import Database
from hashrange.server import running
from hashrange_lab.recordings.recording import Recording


def run(arguments: list[str]) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.mark.parametrize("command", ["load", "replay"])
def test_loads_trust_the_authorities_of_the_environment(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    files = certificates.make(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(files.ca))
    with running(database, certificates=files.certificates()) as endpoint:
        recorded = tmp_path / "recorded"
        with Recording(database, recorded):
            loaded = run(["load", "c", "--items", "3", "--limit", "3", "--endpoint-url", endpoint])
        assert loaded.exit_code == 0, loaded.output
        arguments = ["load", "c", "--items", "3", "--limit", "3", "--endpoint-url", endpoint]
        if command == "replay":
            arguments = ["replay", str(recorded), "--create-tables", "--speed", "max"]
            arguments += ["--endpoint-url", endpoint]
        done = run(arguments)
        assert done.exit_code == 0, done.output
        monkeypatch.delenv("AWS_CA_BUNDLE")
        stranger = run(arguments)
        assert (stranger.exit_code, "CERTIFICATE_VERIFY_FAILED" in stranger.output) == (1, True)
        monkeypatch.setenv("AWS_CA_BUNDLE", str(files.key))
        assert "is not a file of certificates" in run(arguments).output
