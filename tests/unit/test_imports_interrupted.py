"""Imports that something interrupts: restarts, lost connections, objects that change, snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doses import examples
from hashrange.buckets import ACCESS_DENIED, BucketError, Object, ObjectReader
from hashrange.buckets.folders import Folders
from hashrange.tables.inspection.check import check
from hashrange.tables.spaces import IMPORT_JOBS, IMPORT_SPACE
from importing import COMPRESS, World, encoded, item_of


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.database.close()


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(1, 4), max_size=8),
    st.sampled_from(["CSV", "DYNAMODB_JSON", "ION"]),
    st.sampled_from(["GZIP", "NONE"]),
)
def test_an_import_goes_on_after_a_restart(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], kind: str, compression: str
) -> None:
    world = World(tmp_path_factory.mktemp("world"), durable=True)
    items: list[Any] = [item_of(number) for number in range(1_500)]
    for number in range(0, 1_500, 100):
        items[number] = {**items[number], "pk": {"S": ""}}  # an error each
    for number in range(3):
        part = encoded(items[number * 500 : number * 500 + 500], kind)
        world.put(f"part-{number}", COMPRESS[compression](part))
    arn = world.begin(kind=kind, InputCompressionType=compression, indexed=True)
    for count in steps:
        for _ in range(count):
            world.database.sweep()
        world.reopen()
    world.database.settle()
    shown = world.shown(arn)
    assert (shown["ProcessedItemCount"], shown["ImportedItemCount"]) == (1_500, 1_485)
    assert shown["ErrorCount"] == 15
    places = [one["itemS3Pointer"] for one in world.errors(arn)]
    assert [(one["key"], one["itemIndex"]) for one in places] == [
        (f"part-{number // 500}", number % 500) for number in range(0, 1_500, 100)
    ]
    assert len(world.scan()) == 1_485
    assert list(check(world.database.engine)) == []
    world.database.close()


@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_an_object_that_changes_meanwhile_is_an_error(world: World, change: str) -> None:
    """[report] ack-api-quirks DDB-IMPORT-007"""
    world.put("a.json", encoded([item_of(number) for number in range(1_000)], "DYNAMODB_JSON"))
    world.put("b.json", encoded([item_of(2_000)], "DYNAMODB_JSON"))
    arn = world.begin()
    for _ in range(3):
        world.database.sweep()
    imported = world.shown(arn)["ImportedItemCount"]
    assert 0 < imported < 1_000
    world.database.jobs.imports.forget()  # as after a restart, or after a lost connection
    if change == "removed":
        (world.folder / "a.json").unlink()
    else:
        world.put("a.json", b"{}")
    world.database.settle()
    shown = world.shown(arn)
    assert (shown["ImportStatus"], shown["ErrorCount"]) == ("FAILED", 1)
    assert shown["ImportedItemCount"] == imported + 1
    assert len(world.scan()) == imported + 1


class Failing(Folders):
    """Buckets that fail on demand."""

    error: Exception | None = None

    def open(self, bucket: str, found: Object, offset: int = 0) -> Any:
        return Unsteady(super().open(bucket, found, offset), self)

    def check(self, bucket: str) -> None:
        if self.error is not None:
            raise self.error
        super().check(bucket)


class Unsteady:
    def __init__(self, source: ObjectReader, buckets: Failing) -> None:
        self._source = source
        self._buckets = buckets

    def read(self, size: int, /) -> bytes:
        if self._buckets.error is not None:
            raise self._buckets.error
        return self._source.read(min(size, 20_000))

    def close(self) -> None:
        self._source.close()


def failing(world: World) -> Failing:
    buckets = Failing(world.folder.parent)
    world.database.jobs.imports.runner.buckets = buckets
    return buckets


def test_an_import_goes_on_when_a_lost_connection_is_back(world: World) -> None:
    steady = [0.0]
    world.database.background.steady = lambda: steady[0]
    buckets = failing(world)
    world.put("a.json", encoded([item_of(number) for number in range(1_000)], "DYNAMODB_JSON"))
    arn = world.begin()
    for error in (None, None, ConnectionResetError("the network is gone")):
        buckets.error = error
        world.database.sweep()
        steady[0] += 1_000
    assert world.database.background.failing
    assert world.shown(arn)["ImportStatus"] == "IN_PROGRESS"
    assert world.status() == "CREATING"
    buckets.error = None
    world.database.settle()
    shown = world.shown(arn)
    assert (shown["ImportStatus"], shown["ImportedItemCount"], shown["ErrorCount"]) == ("COMPLETED", 1_000, 0)


def test_what_was_imported_stays_when_access_is_withdrawn(world: World) -> None:
    """[docs] Import format quotas and validation: the table with partially imported data is retained"""
    buckets = failing(world)
    world.put("a.json", encoded([item_of(number) for number in range(1_000)], "DYNAMODB_JSON"))
    arn = world.begin()
    for _ in range(3):
        world.database.sweep()
    imported = world.shown(arn)["ImportedItemCount"]
    buckets.error = BucketError(ACCESS_DENIED, "Access Denied")
    world.database.settle()
    shown = world.shown(arn)
    assert (shown["ImportStatus"], shown["FailureCode"]) == ("FAILED", "S3AccessDenied")
    assert shown["FailureMessage"] == "Access Denied"
    # Rows that were read before may still be imported, by a slow machine in a bite of their own.
    assert 0 < imported <= shown["ImportedItemCount"] < 1_000
    assert world.status() == "ACTIVE"
    assert len(world.scan()) == shown["ImportedItemCount"]


def test_going_back_to_a_snapshot_ends_what_was_imported_since(world: World) -> None:
    world.put("a.json", encoded([item_of(number) for number in range(1_000)], "DYNAMODB_JSON"))
    arn = world.begin()
    snapshot = world.database.snapshot()
    for _ in range(3):
        world.database.sweep()
    world.database.restore(snapshot)
    assert world.status() is None
    world.database.settle()
    assert world.shown(arn)["ImportStatus"] == "COMPLETED"
    assert len(world.scan()) == 1_000


def test_a_damaged_record_of_an_import_stops_nothing_else(world: World) -> None:
    world.put("a.json", encoded([item_of(1)], "DYNAMODB_JSON"))
    spoiled, sound = world.begin("spoiled"), world.begin("sound")
    sort = f"/{spoiled.rpartition('/')[2]}".encode()
    world.database.engine.write(lambda txn: txn.put(IMPORT_SPACE, IMPORT_JOBS, sort, b"{"))
    world.database.settle()
    assert world.shown(sound)["ImportStatus"] == "COMPLETED"
    assert list(world.database.background.failing) == [f"import {sort.decode()}"]
    assert [one["ImportArn"] for one in world("ListImports")["ImportSummaryList"]] == [sound]
