"""Helpers for the tests of copies and of checks: places for stores, and a store with every kind of record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import postgres
import worlds
from hashrange.database import Caller, Database, Settings
from hashrange.storage.api import Engine, Reader
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.embedded.offline.directory_copy import DirectorySource, DirectoryTarget
from hashrange.storage.store_copy import (
    Copied,
    CopySource,
    CopyTarget,
    FindLogs,
    Numbers,
    Record,
    copy,
)
from hashrange.tables.inspection.numbering import find_logs
from worlds import expiry_of, recovery_of, table_of

NOW = 1_700_000_000.0
CALLER = Caller(access_key="tester")


@dataclass(frozen=True)
class Directory:
    """A data directory, which may be missing."""

    path: Path

    def open(self) -> Engine:
        return EmbeddedEngine(self.path)

    def source(self, logs: FindLogs = find_logs) -> CopySource:
        return DirectorySource(self.path, logs)

    def target(self) -> CopyTarget:
        return DirectoryTarget(self.path, "the origin")

    @property
    def arguments(self) -> list[str]:
        return [str(self.path)]


@dataclass(frozen=True)
class Schema:
    """A schema of PostgreSQL, which may be missing."""

    url: str
    name: str

    def open(self) -> Engine:
        return postgres.engine(self.url, schema=self.name)

    def source(self, logs: FindLogs = find_logs) -> CopySource:
        from hashrange_postgres.snapshot import Snapshot

        return Snapshot(self.url, self.name)

    def target(self) -> CopyTarget:
        from hashrange_postgres.moving import SchemaTarget

        return SchemaTarget(self.url, self.name)


Place = Directory | Schema


def url_of(connection_string: str) -> str:
    """The URL of the tests' PostgreSQL."""
    words = dict(word.split("=", 1) for word in connection_string.split())
    return f"postgresql://{words['user']}@/{words['dbname']}?host={words['host']}"


def new_schema(connection_string: str) -> Schema:
    return Schema(url_of(connection_string), postgres.new_schema())


def contents(place: Place, logs: FindLogs = find_logs) -> tuple[list[Record], Numbers]:
    """All records, in order, and the numbers of a store that no server has open."""
    source = place.source(logs)
    try:
        records = sorted(record for batch in source.batches() for record in batch)
        numbers = source.numbers()
    finally:
        source.close()
    numbers.totals = {space: totals for space, totals in numbers.totals.items() if any(totals)}
    return records, numbers


def copied(
    origin: Place, target: Place, logs: FindLogs = find_logs, progress: Callable[..., None] | None = None
) -> Copied:
    """Copy a store, as `hashrange copy` does."""
    source = origin.source(logs)
    try:
        made = target.target()
        try:
            return copy(source, made, progress or (lambda step, done, total: None))
        finally:
            made.close()
    finally:
        source.close()


def no_logs(reader: Reader) -> set[int]:
    return set()


TABLE: dict[str, Any] = table_of(
    "orders",
    "p, s",
    indexes={"global": "g"},
    local_indexes={"local": "p, g | KEYS_ONLY"},
    stream="NEW_AND_OLD_IMAGES",
)


class World(worlds.World):
    """A database with a fixed clock and a table that uses every feature."""

    caller = CALLER

    def __init__(self, engine: Engine, now: float = NOW, **settings: Any) -> None:
        super().__init__(lambda: engine, now=now, **{"stream_shards": 3, **settings})

    def make(self, items: int = 60) -> None:
        """Make tables, items, and some of every other kind of record."""
        self("CreateTable", **TABLE)
        self("UpdateTimeToLive", **expiry_of("orders"))
        self("UpdateContinuousBackups", **recovery_of("orders"))
        plain = {**TABLE, "TableName": "plain", "StreamSpecification": {"StreamEnabled": False}}
        for name in ("plain", "gone"):
            self("CreateTable", **{**plain, "TableName": name})
        self._keep_changes("plain")
        for n in range(items):
            self.clock.advance(0.5)
            self.put(n)
            self.put(n, "plain")
            self.put(n, "gone")
            if n % 7 == 3:
                self("DeleteItem", TableName="orders", Key={name: item_of(n - 1)[name] for name in "ps"})
        self(
            "TransactWriteItems",
            ClientRequestToken="token",
            TransactItems=[{"Put": {"TableName": "plain", "Item": item_of(1000)}}],
        )
        self("DeleteTable", TableName="gone")
        self.database.tend()

    def _keep_changes(self, table: str) -> None:
        """Keep the changes of a table for a Kinesis data stream. They stay, for this database knows none."""
        other = Database(
            self.database.engine, settings=Settings(kinesis_endpoint="http://kinesis.test"), clock=self.clock
        )
        arn = "arn:aws:kinesis:us-east-1:000000000000:stream/changes"
        other.execute("EnableKinesisStreamingDestination", {"TableName": table, "StreamArn": arn}, CALLER)

    def put(self, n: int, table: str = "orders", **more: Any) -> None:
        self("PutItem", TableName=table, Item={**item_of(n), **more})

    def scan(self, table: str = "orders", **more: Any) -> list[Any]:
        items: list[Any] = self("Scan", TableName=table, **more)["Items"]
        return items

    def changes(self) -> dict[str, list[tuple[str, str]]]:
        """The records of the stream by shard: their sequence numbers and kinds."""
        arn = self("DescribeTable", TableName="orders")["Table"]["LatestStreamArn"]
        shards = self("DescribeStream", StreamArn=arn)["StreamDescription"]["Shards"]
        by_shard: dict[str, list[tuple[str, str]]] = {}
        for shard in shards:
            iterator = self(
                "GetShardIterator", StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
            records = self("GetRecords", ShardIterator=iterator)["Records"]
            by_shard[shard["ShardId"]] = [
                (record["dynamodb"]["SequenceNumber"], record["eventName"]) for record in records
            ]
        return by_shard


def item_of(n: int) -> dict[str, Any]:
    return {
        "p": {"S": f"p{n % 11}"},
        "s": {"S": f"s{n}"},
        "g": {"S": f"g{n % 3}"},
        "ttl": {"N": str(int(NOW) + 1000 + n)},
        "v": {"S": "x" * (n % 50)},
    }
