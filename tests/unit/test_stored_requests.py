"""Requests that the store keeps until their work is done: unknown members, of any depth, are not kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hashrange.database import Database, Settings
from hashrange.storage.memory import MemoryEngine
from worlds import recovery_of, table_of

TABLE = table_of("music", "pk")
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/music"
REQUESTS: dict[str, dict[str, Any]] = {
    "StartBulkPutItems": {
        "TableName": "music",
        "InputS3Configuration": {"S3Bucket": "in", "InputFormat": "ION"},
        "OutputS3Configuration": {"S3Bucket": "out", "OutputType": ["ERROR"]},
    },
    "ImportTable": {
        "S3BucketSource": {"S3Bucket": "in"},
        "InputFormat": "CSV",
        "InputFormatOptions": {"Csv": {"Delimiter": ","}},
        "TableCreationParameters": {**TABLE, "TableName": "imported"},
    },
    "ExportTableToPointInTime": {"TableArn": ARN, "S3Bucket": "out"},
}


@pytest.fixture
def database(tmp_path: Path) -> Database:
    for bucket in ("in", "out"):
        (tmp_path / bucket).mkdir()
    database = Database(MemoryEngine(), settings=Settings(s3_dir=str(tmp_path)))
    database.execute("CreateTable", dict(TABLE))
    database.execute("UpdateContinuousBackups", recovery_of("music"))
    return database


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"M": [value]}
    return value


def spoilt(value: Any, unknown: Any) -> Any:
    """`value` with an unknown member in each of its structures."""
    if isinstance(value, dict):
        return {**{name: spoilt(one, unknown) for name, one in value.items()}, "Unknown": unknown}
    return [spoilt(one, unknown) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("operation", REQUESTS)
@pytest.mark.parametrize("levels", [1, 60, 256])
def test_unknown_members_of_any_depth_are_not_kept(database: Database, operation: str, levels: int) -> None:
    wanted = {**REQUESTS[operation], "ClientToken": "a-token-of-16-letters"}
    first = database.execute(operation, spoilt(wanted, nested(levels)))
    # The request without them is the same request, so the token gives the same answer.
    assert database.execute(operation, spoilt(wanted, None)) == first
    assert "Unknown" not in repr(first)
    database.settle()
