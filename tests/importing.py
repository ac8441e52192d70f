"""A database with a folder of buckets, and files of items for it."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import orjson

import worlds
from hashrange.database import Caller
from hashrange.errors import ResourceNotFoundException
from hashrange.interchange import ion
from hashrange.storage.memory import MemoryEngine
from worlds import table_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NOW: Final = 1_790_000_000.0
DAY: Final = 24 * 3600
BUCKET: Final = "my-bucket"


class World(worlds.World):
    """A database with a fixed clock, and a folder of buckets."""

    def __init__(self, directory: Path, *, durable: bool = False, **given: Any) -> None:
        self.folder = directory / "s3" / BUCKET
        self.folder.mkdir(parents=True, exist_ok=True)
        store = directory / "data" if durable else MemoryEngine
        super().__init__(store, now=NOW, s3_dir=str(directory / "s3"), **given)

    def put(self, key: str, data: bytes) -> None:
        path = self.folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def begin(self, table: str = "music", **given: Any) -> str:
        """Begin an import; returns its ARN."""
        caller = given.pop("caller", Caller())
        shown = self("ImportTable", caller, **request(table, **given))["ImportTableDescription"]
        assert shown["ImportStatus"] == "IN_PROGRESS"
        arn: str = shown["ImportArn"]
        return arn

    def shown(self, arn: str) -> dict[str, Any]:
        found: dict[str, Any] = self("DescribeImport", ImportArn=arn)["ImportTableDescription"]
        return found

    def done(self, table: str = "music", **given: Any) -> dict[str, Any]:
        """An import that has ended."""
        arn = self.begin(table, **given)
        self.database.settle()
        return self.shown(arn)

    def scan(self, table: str = "music", **given: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        start: dict[str, Any] = {}
        while True:
            page = self("Scan", TableName=table, **given, **start)
            found += page["Items"]
            if "LastEvaluatedKey" not in page:
                return found
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def errors(self, arn: str, *place: int) -> list[dict[str, Any]]:
        return self.database.import_errors(arn, *place)

    def status(self, table: str = "music") -> str | None:
        try:
            status: str = self("DescribeTable", TableName=table)["Table"]["TableStatus"]
        except ResourceNotFoundException:
            return None
        return status


def request(
    table: str, *, prefix: str = "", kind: str = "DYNAMODB_JSON", indexed: bool = False, **given: Any
) -> dict[str, Any]:
    indexes = {"by-group": "group, n:N"} if indexed else None
    parameters = {
        **table_of(table, "pk", indexes=indexes),
        **given.pop("parameters", {}),
    }
    source = {"S3Bucket": given.pop("bucket", BUCKET), **({"S3KeyPrefix": prefix} if prefix else {})}
    return {"S3BucketSource": source, "InputFormat": kind, "TableCreationParameters": parameters, **given}


def item_of(number: int) -> dict[str, Any]:
    return {
        "pk": {"S": f"item {number}"},
        "group": {"S": f"group {number % 7}"},
        "n": {"N": str(number)},
        "text": {"S": "x" * (number % 50)},
    }


def encoded(items: list[dict[str, Any]], kind: str) -> bytes:
    if kind == "ION":
        return b"".join(map(ion.write, items))
    if kind == "DYNAMODB_JSON":
        return b"".join(orjson.dumps({"Item": item}) + b"\n" for item in items)
    written = io.StringIO(newline="")
    writer = csv.writer(written)
    writer.writerow(items[0])
    writer.writerows([next(iter(value.values())) for value in item.values()] for item in items)
    return written.getvalue().encode()


COMPRESS: dict[str, Callable[[bytes], bytes]] = {"GZIP": gzip.compress, "ZSTD": zstd.compress, "NONE": bytes}
