"""A process keeps nothing of tables, backups, jobs and databases that are gone.

These tests count objects. `make growth` looks at the memory of a server, for an hour.
"""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

import collecting
import hashrange
from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.settings import Settings
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from worlds import expiry_of, recovery_of, schema_of, table_of

pytestmark = pytest.mark.once


OLD: list[Any] = []
"""The containers that were there before these tests, and may grow."""


@pytest.fixture(scope="module", autouse=True)
def old() -> Iterator[None]:
    """Of the million objects that collecting the tests made only the containers are counted."""
    gc.unfreeze()
    OLD.extend(containers_of(gc.get_objects()).values())
    collecting.freeze_the_tests()
    yield
    OLD.clear()


DAY_SECONDS = 86_400
# Longer than anything is kept of what is gone: the records of streams, backups of deleted tables, ended jobs.
AWAY_DAYS = 100
ROUNDS = 4
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/first"
KEY: dict[str, Any] = schema_of("pk")
SOURCE = {"S3Bucket": "bucket", "S3KeyPrefix": "in/"}
# What each round leaves behind is more than this.
SLACK = ROUNDS - 1


class World:
    """A database, of which a round makes, changes and drops whatever control operations make."""

    def __init__(self, directory: Path, durable: bool) -> None:
        settings = Settings(s3_dir=str(directory / "s3"), backup_dir=str(directory / "backups"))
        self.clock = ManualClock()
        engine = EmbeddedEngine(directory / "data", recent_bytes=4_000) if durable else MemoryEngine()
        self.database = Database(engine, settings=settings, clock=self.clock)
        bucket = directory / "s3" / "bucket" / "in"
        bucket.mkdir(parents=True)
        (bucket / "items.json").write_text(json.dumps({"Item": {"pk": {"S": "a"}}}) + "\n")

    def ask(self, operation: str, **request: Any) -> dict[str, Any]:
        answer = self.database.execute(operation, request)
        self.database.settle()
        return answer

    def round(self) -> None:
        self.ask("CreateTable", **table_of("first", "pk", indexes={"index": "pk"}, stream="NEW_IMAGE"))
        self.ask("UpdateContinuousBackups", **recovery_of("first"))
        self.ask("UpdateTimeToLive", **expiry_of("first", "until"))
        self.ask("TagResource", ResourceArn=ARN, Tags=[{"Key": "a", "Value": "b"}])
        for number in range(5):
            self.ask("PutItem", TableName="first", Item={"pk": {"S": f"{number}"}, "until": {"N": "1"}})
        self.clock.advance(600)
        dropped = [{"Delete": {"IndexName": "index"}}]
        self.ask("UpdateTable", TableName="first", GlobalSecondaryIndexUpdates=dropped)
        backup = self.ask("CreateBackup", TableName="first", BackupName="backup")
        arn = backup["BackupDetails"]["BackupArn"]
        self.ask("RestoreTableFromBackup", BackupArn=arn, TargetTableName="second")
        moment = {"SourceTableName": "first", "UseLatestRestorableTime": True}
        self.ask("RestoreTableToPointInTime", TargetTableName="third", **moment)
        self.ask("ExportTableToPointInTime", TableArn=ARN, S3Bucket="bucket", S3Prefix="out")
        source = {"S3BucketSource": SOURCE, "InputFormat": "DYNAMODB_JSON"}
        self.ask("ImportTable", TableCreationParameters={"TableName": "fourth", **KEY}, **source)
        written = {"S3Bucket": "bucket", "S3KeyPrefix": "out/", "OutputType": ["ERROR"]}
        read = {"InputS3Configuration": {**SOURCE, "InputFormat": "DYNAMODB_JSON"}}
        self.ask("StartBulkPutItems", TableName="fourth", **read, OutputS3Configuration=written)
        self.ask("DeleteBackup", BackupArn=arn)
        for name in self.ask("ListTables")["TableNames"]:
            self.ask("DeleteTable", TableName=name)
        self.clock.advance(AWAY_DAYS * DAY_SECONDS)
        for _ in range(3):
            self.database.settle()
            self.clock.advance(DAY_SECONDS)

    def rest(self) -> None:
        """Let the engine finish its own work on deleted tables, which has five stages."""
        engine = self.database.engine
        for _ in range(5):
            engine.upkeep()
            if isinstance(engine, EmbeddedEngine):
                engine._store.upkeep.wait()


@pytest.fixture(params=["memory", "durable"])
def world(
    request: pytest.FixtureRequest, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> Iterator[World]:
    # pytest keeps every line that is logged, and an earlier test may have asked for more lines.
    caplog.set_level("CRITICAL", logger="hashrange")
    world = World(tmp_path, request.param == "durable")
    yield world
    world.database.close()


def counted() -> Counter[str]:
    """The objects of this process that may refer to others, by their type, and the entries of containers,
    because the collector does not know of texts and numbers, nor of dictionaries of these alone."""
    gc.collect()
    objects = gc.get_objects()
    counts: Counter[str] = Counter()
    for kind, number in Counter(map(type, objects)).items():
        counts[f"{kind.__module__}.{kind.__qualname__}"] += number
    for one in containers(objects).values():
        counts[f"entries of {type(one).__name__}"] += len(one)
    return counts


def containers(objects: list[Any]) -> dict[int, Any]:
    return {id(one): one for one in OLD} | containers_of(objects)


def containers_of(objects: list[Any]) -> dict[int, Any]:
    """The containers to which these objects refer, by their identity."""
    return {id(one): one for one in gc.get_referents(*objects) if isinstance(one, (dict, list, set))}


def grown(before: Counter[str], lengths: dict[int, int]) -> dict[str, int]:
    """How many more there are of what grew with the rounds, and which containers have grown."""
    found = {name: count for name, count in (counted() - before).items() if count > SLACK}
    if any(name.startswith("entries") for name in found):
        for number, one in containers(gc.get_objects()).items():
            if (more := len(one) - lengths.get(number, len(one))) > 0:
                found[f"{type(one).__name__} of {len(one)}, at the end {list(one)[-1]!r:.200}"] = more
    return found


def test_deleted_things_leave_nothing_behind(world: World) -> None:
    for _ in range(2):
        world.round()
        world.rest()
        before = counted()  # the first count itself fills caches of Python's
    lengths = {number: len(one) for number, one in containers(gc.get_objects()).items()}
    for _ in range(ROUNDS):
        world.round()
    world.rest()
    # The embedded engine keeps the last stamps of up to 10,000 logs: each round has the log of one stream.
    before["entries of dict"] += ROUNDS if isinstance(world.database.engine, EmbeddedEngine) else 0
    assert grown(before, lengths) == {}


def test_a_sweep_takes_no_memory_for_what_is_over(tmp_path: Path) -> None:
    """Streams of deleted tables are kept for a day, their items for 35, jobs for 90: there may be many."""
    world = World(tmp_path, durable=False)
    recovery = {"PointInTimeRecoveryEnabled": True}
    source = {"S3BucketSource": SOURCE, "InputFormat": "DYNAMODB_JSON"}

    def play(tables: int) -> None:
        for _ in range(tables):
            world.ask("CreateTable", **table_of("first", "pk", stream="NEW_IMAGE"))
            world.ask("PutItem", TableName="first", Item={"pk": {"S": "a"}})
            world.ask("DeleteTable", TableName="first")
            world.ask("ImportTable", TableCreationParameters={"TableName": "first", **KEY}, **source)
            world.ask("UpdateContinuousBackups", TableName="first", PointInTimeRecoverySpecification=recovery)
            world.ask("DeleteTable", TableName="first")

    def peak_bytes() -> int:
        tracemalloc.start()
        try:
            world.database.settle()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    play(20)
    before = peak_bytes()
    play(100)
    assert peak_bytes() - before < 100 * 100
    world.database.close()


def test_nothing_stays_of_a_database_that_was_closed() -> None:
    client = boto3.client("dynamodb", region_name="us-east-1")  # botocore keeps something of each client

    def play() -> None:
        with hashrange.local():
            client.create_table(TableName="first", **KEY)
            client.put_item(TableName="first", Item={"pk": {"S": "a"}})
            assert client.scan(TableName="first")["Count"] == 1

    for _ in range(2):
        play()
        before = counted()
    for _ in range(ROUNDS):
        play()
    assert grown(before, {}) == {}
