"""The Python of the pages about tests runs as it stands, and gives what its comments say."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Any

import pytest

import hashrange
from guides import blocks_of, run
from hashrange.settings import Settings
from hashrange.testing import scopes
from plugin_runs import run_pytest_in_a_process

DOCS = Path(__file__).resolve().parents[2] / "docs"
COMPARED = {"testing": 5, "from-moto": 0, "from-dynamodb-local": 1, "vectors": 2, "which": 4}


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")


@pytest.mark.parametrize("page", sorted(COMPARED))
def test_the_code_of_a_page_does_what_it_says(page: str) -> None:
    names: dict[str, Any] = {}
    # Those with marks of the plugin run under pytest, below.
    blocks = [block for block in blocks_of(DOCS / f"{page}.md") if "@pytest" not in block]
    compared = sum(run(block, names) for block in blocks)
    assert compared == COMPARED[page]
    if "test_place_asynchronously" in names:
        asyncio.run(names["test_place_asynchronously"]())
    assert scopes.innermost() is None


def test_the_code_about_history_and_backups_runs_as_it_stands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.chdir(tmp_path)
    settings = Settings(backup_dir=str(tmp_path / "backups"))
    with hashrange.local(settings=settings, now="2026-11-22T11:30:00Z") as database:
        names: dict[str, Any] = {"database": database}
        database.create_table("orders", "pk")
        database.load("orders", [{"pk": "order#1", "n": 1}])
        for block in blocks_of(DOCS / "history.md"):
            exec(block, names)
            database.clock.set("2026-11-22T14:00:00Z")
            database.load("orders", [{"pk": "order#1", "n": 2}])
        client = names["client"]
        assert client.scan(TableName="orders-before")["Items"] == [{"pk": {"S": "order#1"}, "n": {"N": "1"}}]
        # A page that is read alone says where its client comes from.
        client.delete_table(TableName="orders-before")
        monkeypatch.setattr("time.sleep", lambda seconds: database.settle())
        (block,) = blocks_of(DOCS / "backups.md")
        exec(block, {})
        assert client.describe_table(TableName="orders-before")["Table"]["TableStatus"] == "ACTIVE"


@pytest.mark.parametrize("page", ["imports", "exports", "bulk", "backups", "history"])
def test_paths_on_a_page_do_not_depend_on_the_directory(page: str) -> None:
    shell = re.findall(r"^```\n(.*?)^```", (DOCS / f"{page}.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert shell
    for line in "".join(shell).splitlines():
        assert "hashrange-data" not in line
        if line.startswith("mkdir"):
            assert line.split()[-1].startswith("~/")


def test_the_tests_on_the_page_pass(tmp_path: Path) -> None:
    blocks = [block for block in blocks_of(DOCS / "testing.md") if "dynamodb_seed" not in block]
    (tmp_path / "test_page.py").write_text("\n".join(blocks))
    seeded = [block for block in blocks_of(DOCS / "testing.md") if "dynamodb_seed" in block]
    (tmp_path / "test_seeded.py").write_text(
        "import pytest\n"
        + "\n".join(seeded)
        + "\ndef test_seeded(dynamodb_client):\n"
        + "    assert dynamodb_client.describe_table(TableName='orders')['Table']['ItemCount'] == 10_000\n"
    )
    assert "4 passed, 1 deselected" in run_pytest_in_a_process(tmp_path, "-k", "not asynchronously")
