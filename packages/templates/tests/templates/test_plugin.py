"""Tables of files in tests: by the mark and the ini file of the pytest plugin, and without the ring."""

from __future__ import annotations

from pathlib import Path

import pytest

from hashrange import rings
from hashrange.testing import LocalDatabase
from plugin_runs import run_pytest


def test_a_mark_and_the_ini_file_name_files(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\ndynamodb_tables = tables.json\n")
    (tmp_path / "tables.json").write_text(
        '{"Resources": {"Things": {"Type": "AWS::Serverless::SimpleTable"}}}'
    )
    (tmp_path / "template.yaml").write_text(
        "Parameters: {Stage: {Type: String}}\n"
        'Resources: {T: {Type: AWS::Serverless::SimpleTable, Properties: {TableName: !Sub "t-${Stage}"}}}\n'
    )
    (tmp_path / "test_files.py").write_text(
        """
import pytest

@pytest.mark.dynamodb(tables="template.yaml", parameters={"Stage": "test"})
def test_both(dynamodb_client):
    assert dynamodb_client.list_tables()["TableNames"] == ["Things", "t-test"]

def test_of_the_ini_file(dynamodb_client):
    assert dynamodb_client.list_tables()["TableNames"] == ["Things"]
"""
    )
    assert "2 passed" in run_pytest(tmp_path)


def test_without_the_ring_its_users_learn_what_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = rings.Rings()
    del found.installed["templates"]
    monkeypatch.setattr(rings, "rings", lambda: found)
    with LocalDatabase() as database, pytest.raises(rings.Missing, match=r"templates .*install the package"):
        database.create_tables(tmp_path / "template.yaml")
