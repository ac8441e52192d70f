"""What packages/access/docs/access.md shows is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from hashrange.cli import main
from hashrange_access.judging.known import KNOWN_KEYS
from hashrange_access.plain_yaml import parsed
from hashrange_access.users import read

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "access.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_users_file_is_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users = read(parsed(block("yaml")))
    assert [key.owner.principal.name for key in users.keys.values()][:2] == ["alice", "operator"]
    monkeypatch.chdir(tmp_path)
    Path("users.yaml").write_text(block("yaml"))
    outcome = CliRunner().invoke(main, ["policy", "lint", "users.yaml"])
    assert (outcome.exit_code, outcome.output) == (0, "1 file without errors or dangers.\n")


def test_the_simulated_request_is_explained_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("users.yaml").write_text(block("yaml"))
    shown = re.search(r"^    hashrange (policy simulate .*?)\n\n", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    outcome = CliRunner().invoke(main, shown[1].replace("\\\n", " ").split())
    assert outcome.exit_code == 1
    for line in outcome.output.splitlines():
        assert line in " ".join(PAGE.split())


def test_the_program_runs() -> None:
    exec(compile(block("python"), "packages/access/docs/access.md", "exec"), {})


def test_every_condition_key_is_on_the_page() -> None:
    table = PAGE.partition("**Condition keys.**")[2].partition("\n\nLeadingKeys")[0].lower()
    for key in KNOWN_KEYS - {"aws:principalisawsservice"}:
        name = key.partition(":")[2].removesuffix("/")
        assert name in table or name.removesuffix("partitionkeyvalues") in ("second", "third", "fourth"), key
