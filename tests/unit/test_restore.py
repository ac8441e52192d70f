"""RestoreTableToPointInTime: the new table is what the old one was at that moment, whatever happens."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hashrange
from doses import examples
from hashrange.client import connect
from hashrange.database import Caller, Database, Settings
from hashrange.errors import (
    PointInTimeRecoveryUnavailableException,
    ResourceInUseException,
    ResourceNotFoundException,
    TableInUseException,
    TableNotFoundException,
)
from hashrange.storage.api import Transaction
from hashrange.tables.background import restoring
from hashrange.tables.bites import Limit
from hashrange.tables.definitions import catalog, dropped
from hashrange.tables.definitions.table import Table
from hashrange.tables.inspection import check, mending
from hashrange.tables.items import records
from hashrange.tables.writes import builds
from histories import DAY, NOW, Contents, World, key_of, opener_of, put, steps, take
from worlds import expiry_of, new_index, recovery_of, table_of


class Recoverable(World):
    """A world whose table has recovery; `ends` has what the table was at the end of each moment."""

    def __init__(self, opener: Any) -> None:
        super().__init__(opener)
        self("UpdateContinuousBackups", **recovery_of("table"))
        self.release("test")
        self.ends: dict[float, Contents] = {}
        self.number = 0

    def note(self) -> None:
        super().note()
        if not hasattr(self, "ends"):
            return
        # What changes while the clock is set back belongs to the latest moment that it showed.
        self.ends[max([self.clock.now(), *self.ends])] = self.present()

    def window(self) -> tuple[float, float]:
        answer = self("DescribeContinuousBackups", TableName="table")["ContinuousBackupsDescription"]
        shown = answer["PointInTimeRecoveryDescription"]
        return shown["EarliestRestorableDateTime"], shown["LatestRestorableDateTime"]

    def restore(self, **given: Any) -> str:
        self.number += 1
        name = f"restored-{self.number}"
        self("RestoreTableToPointInTime", SourceTableName="table", TargetTableName=name, **given)
        return name

    def contents(self, name: str) -> Contents:
        table = self.definition(name)
        return {(partition, sort): record for partition, sort, record in self.rows(table.space)}

    def definition(self, name: str) -> Table:
        found = self.database.engine.read(lambda reader: catalog.find_full(reader, name))
        assert found is not None
        return found


@pytest.fixture
def in_bites(monkeypatch: pytest.MonkeyPatch) -> None:
    """No restore is done at once."""
    monkeypatch.setattr(builds, "AT_ONCE", Limit(0))


@pytest.fixture(params=["memory", "embedded", "reruns"])
def world(request: pytest.FixtureRequest) -> Iterator[Recoverable]:
    with opener_of(request.param) as opener:
        world = Recoverable(opener)
        yield world
        world.database.close()


def check_restores(world: Recoverable, moments: list[float]) -> None:
    """Restore the table to some moments, and compare all of it; `check` compares the indexes."""
    earliest, latest = world.window()
    for moment in moments:
        if not earliest < moment <= latest:
            continue
        name = world.restore(RestoreDateTime=moment)
        world.reopen()
        world.database.settle()
        assert world.definition(name).status == "ACTIVE"
        assert world.contents(name) == world.ends[moment]
        assert world.definition(name).indexes or not world.table.indexes
    assert list(check.check(world.database.engine)) == []


@pytest.mark.parametrize("engine", ["memory", "embedded"])
@pytest.mark.parametrize("at_once", [True, False])
@settings(max_examples=examples(15), deadline=None)
@given(history=st.lists(steps, max_size=20), choice=st.randoms(use_true_random=False))
# The clock was set back, so that a sweep between two restores drops what the period does not cover by then.
@example(
    [("advance", 1), ("days", {0}, 2), ("set back", 3 * DAY), ("advance", 2 * DAY), ("short hold",)],
    random.Random(0),
)
def test_a_restored_table_is_what_the_table_was(
    engine: str, at_once: bool, history: list[tuple[Any, ...]], choice: random.Random
) -> None:
    with pytest.MonkeyPatch.context() as patch, opener_of(engine) as opener:
        if not at_once:
            patch.setattr(builds, "AT_ONCE", Limit(0))
        world = Recoverable(opener)
        try:
            take(world, ("index",))
            for step in history:
                if step[0] != "compare":
                    take(world, ("recovery of two days",) if step[0] == "short hold" else step)
                world.note()
            world.clock.advance(1)
            check_restores(world, choice.sample(sorted(world.ends), min(5, len(world.ends))))
            present = world.present()
            name = world.restore(UseLatestRestorableTime=True)
            world.database.settle()
            assert world.contents(name) == present
        finally:
            world.database.close()


def test_a_half_table_is_not_active(world: Recoverable, in_bites: None) -> None:
    """A restore goes on after each bite, over restarts; until its last item the table is CREATING."""
    world("UpdateTable", **new_index("table", "index", "v:N | KEYS_ONLY"))
    for number in range(20):
        put(world, number, number)
    before = world.present()
    world.clock.advance(1)
    for number in range(20):
        put(world, number, 100)
    name = world.restore(RestoreDateTime=NOW)
    for bite in range(0, 16, 4):
        shown = world("DescribeTable", TableName=name)["Table"]
        assert shown["TableStatus"] == "CREATING"
        assert shown["RestoreSummary"] == {
            "SourceTableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/table",
            "RestoreDateTime": NOW,
            "RestoreInProgress": True,
        }
        assert shown["ItemCount"] == bite
        [overview] = [one for one in world.database.overview() if one["name"] == name]
        assert (overview["restore"]["progress"] > 0) == (bite > 0)
        with pytest.raises(ResourceNotFoundException):
            world("GetItem", TableName=name, Key=key_of(0))
        with pytest.raises(ResourceNotFoundException):
            world("UpdateTimeToLive", **expiry_of(name))
        with pytest.raises(TableNotFoundException):
            world("DescribeContinuousBackups", TableName=name)
        with pytest.raises(ResourceInUseException, match="Table is being used"):
            world("CreateTable", **table_of(name, "p"))
        with pytest.raises(TableInUseException, match=r"is already being restored$"):
            world("RestoreTableToPointInTime", SourceTableName="table", TargetTableName=name,
                  RestoreDateTime=NOW)
        world.database.engine.write(partial(restore_some, name=name, limit=4))
        assert list(check.check(world.database.engine)) == []
        world.reopen()
    world.database.settle()
    shown = world("DescribeTable", TableName=name)["Table"]
    assert shown["TableStatus"] == "ACTIVE"
    assert "RestoreSummary" not in shown
    assert world.contents(name) == before
    assert shown["ItemCount"] == shown["GlobalSecondaryIndexes"][0]["ItemCount"] == 20
    assert list(check.check(world.database.engine)) == []
    assert world.table.history is not None
    assert [hold.name for hold in world.table.history.holds] == ["pitr"]


def restore_some(txn: Transaction, name: str, limit: int) -> None:
    table = catalog.find_full(txn, name)
    assert table is not None
    assert table.restore is not None
    found = restoring.look(txn, table, table.restore, restoring.cursor(txn, table), Limit(limit))
    restoring.write(txn, table, found)


@pytest.mark.parametrize("delay", [0.0, 10.0])
def test_deleting_the_table_gives_the_restore_up(world: Recoverable, in_bites: None, delay: float) -> None:
    engine = world.database.engine
    world.database = Database(engine, clock=world.clock, settings=Settings(delete_seconds=delay))
    for number in range(10):
        put(world, number, number)
    name = world.restore(UseLatestRestorableTime=True)
    engine.write(partial(restore_some, name=name, limit=4))
    half = world.definition(name)
    shown = world("DeleteTable", TableName=name)["TableDescription"]
    assert shown["TableStatus"] == "DELETING"
    world.database.settle()
    if delay:
        assert world.definition(name).status == "DELETING"
        world.clock.advance(delay)
        world.database.settle()
    assert engine.read(lambda reader: catalog.find_full(reader, name)) is None
    assert world.rows(half.space) == []
    assert engine.read(lambda reader: restoring.cursor(reader, half)) == b""
    assert world.table.history is not None
    assert [hold.name for hold in world.table.history.holds] == ["pitr"]
    assert list(check.check(engine)) == []


@pytest.mark.parametrize("recovery", ["on", "off", "off before"])
def test_a_restore_outlives_its_source(world: Recoverable, in_bites: None, recovery: str) -> None:
    """The source is deleted, and its name used again, while it is being restored from."""
    for number in range(10):
        put(world, number, number)
    before = world.present()
    world.clock.advance(1)
    put(world, 3, 100)
    name = world.restore(RestoreDateTime=NOW)
    world.database.engine.write(partial(restore_some, name=name, limit=4))
    old = world.table
    if recovery == "off before":
        world("UpdateContinuousBackups", TableName="table",
              PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False})
        assert world.table.history is not None
    if recovery != "on":
        world("UpdateContinuousBackups", TableName="table",
              PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False})
    world("DeleteTable", TableName="table")
    world("CreateTable", **table_of("table", "other"))
    assert list(check.check(world.database.engine)) == []
    world.reopen()
    world.database.settle()
    assert world.definition(name).status == "ACTIVE"
    assert world.contents(name) == before
    kept = world.database.engine.read(lambda reader: dropped.find(reader, "table", old.id))
    if recovery == "on":
        assert kept is not None
        assert kept.table.history is None
        assert kept.recoverable
    else:
        assert kept is None
        assert world.rows(old.space) == []
    assert list(check.check(world.database.engine)) == []


def test_recovery_switched_off_ends_no_restore(world: Recoverable, in_bites: None) -> None:
    put(world, 1, 1)
    before = world.present()
    world.clock.advance(1)
    put(world, 1, 2)
    name = world.restore(RestoreDateTime=NOW)
    world("UpdateContinuousBackups", TableName="table",
          PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False})
    put(world, 1, 3)
    world.clock.advance(100 * DAY)
    world.database.settle()
    assert world.contents(name) == before
    assert world.table.history is None
    with pytest.raises(PointInTimeRecoveryUnavailableException):
        world.restore(UseLatestRestorableTime=True)
    assert list(check.check(world.database.engine)) == []


def gone(world: World, table: Table) -> dropped.Dropped | None:
    return world.database.engine.read(lambda reader: dropped.find(reader, "table", table.id))


def test_a_deleted_table_with_recovery_leaves_its_items_for_35_days(world: Recoverable) -> None:
    for number in range(10):
        put(world, number, number)
    world.clock.advance(3 * DAY)
    put(world, 1, 100)
    table, before = world.table, world.present()
    world("DeleteTable", TableName="table")
    kept = gone(world, table)
    assert kept is not None
    assert kept.expires == NOW + 38 * DAY
    assert kept.table.key == table.key
    listed = world.database.engine.read(lambda reader: list(dropped.every(reader, "")))
    assert [one for _, one in listed] == [kept]
    assert {(p, s): record for p, s, record in world.rows(table.space)} == before
    assert list(check.check(world.database.engine)) == []
    world.clock.advance(35 * DAY - 1)
    world.reopen()
    world.database.settle()
    assert gone(world, table) is not None
    world.clock.advance(1)
    world.database.settle()
    assert gone(world, table) is None
    assert world.rows(table.space) == []
    assert list(check.check(world.database.engine)) == []


def test_a_clock_that_is_set_back_forgets_no_deleted_table(world: Recoverable) -> None:
    table = world.table
    world.clock.advance(100 * DAY)
    world("DeleteTable", TableName="table")
    world.clock.set(NOW)
    world.database.settle()
    kept = gone(world, table)
    assert kept is not None
    assert kept.at == NOW
    world.clock.advance(35 * DAY)
    world.database.settle()
    assert gone(world, table) is None


def test_no_recovery_no_remains(world: Recoverable) -> None:
    table = world.table
    world("UpdateContinuousBackups", TableName="table",
          PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False})
    put(world, 1, 1)
    world("DeleteTable", TableName="table")
    assert gone(world, table) is None
    assert world.rows(table.space) == []


def test_a_repair_restores_from_the_beginning(world: Recoverable, in_bites: None) -> None:
    for number in range(10):
        put(world, number, number)
    before = world.present()
    name = world.restore(UseLatestRestorableTime=True)
    world.database.engine.write(partial(restore_some, name=name, limit=4))
    half = world.definition(name)
    messages = [str(problem) for problem in mending.mend(world.database.engine)]
    assert messages == [f"{name}: the table was being restored, and is restored from the beginning"]
    assert world.rows(half.space) == []
    world.database.settle()
    assert world.contents(name) == before
    assert list(check.check(world.database.engine)) == []


def test_a_restore_whose_source_is_lost_fails_and_can_be_deleted(world: Recoverable, in_bites: None) -> None:
    put(world, 1, 1)
    name = world.restore(UseLatestRestorableTime=True)
    world.database.engine.write(lambda txn: txn.delete(0, catalog.TABLE, b"/table"))
    world.database.sweep()
    assert "is missing" in world.database.background.failing[f"restore of {name}"]
    assert world.definition(name).status == "CREATING"
    world("DeleteTable", TableName=name)
    assert world.database.engine.read(lambda reader: catalog.find_full(reader, name)) is None


@pytest.mark.once
@pytest.mark.parametrize("engine", ["memory", "embedded"])
def test_the_cut_is_exact_while_writers_work(engine: str) -> None:
    """Transfers between items keep their sum, in every table that is restored meanwhile."""
    with pytest.MonkeyPatch.context() as patch, opener_of(engine) as opener:
        patch.setattr(builds, "AT_ONCE", Limit(0))
        world = Recoverable(opener)
        for number in range(20):
            put(world, number, 100)
        stop = Event()
        failures: list[BaseException] = []

        def transfer(seed: int) -> None:
            choice = random.Random(seed)
            try:
                while not stop.is_set():
                    one, other = choice.sample(range(20), 2)
                    world("TransactWriteItems", TransactItems=[
                        {"Update": {"TableName": "table", "Key": key_of(number),
                                    "UpdateExpression": "ADD v :d",
                                    "ExpressionAttributeValues": {":d": {"N": str(change)}}}}
                        for number, change in ((one, -1), (other, 1))
                    ])
            except BaseException as error:
                failures.append(error)

        threads = [Thread(target=transfer, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        names = [world.restore(UseLatestRestorableTime=True) for _ in range(3)]
        while any(world.definition(name).status != "ACTIVE" for name in names):
            world.clock.advance(0.001)
            world.database.sweep()
        world.clock.advance(1)
        past = [world.restore(RestoreDateTime=NOW), world.restore(RestoreDateTime=NOW + 0.001)]
        world.database.settle()
        stop.set()
        for thread in threads:
            thread.join()
        assert failures == []
        for name in [*names, *past]:
            items = [records.item_of(record) for record in world.contents(name).values()]
            assert len(items) == 20
            assert sum(int(item["v"]["N"]) for item in items) == 2_000
        assert list(check.check(world.database.engine)) == []
        world.database.close()


def test_other_regions(world: Recoverable) -> None:
    """A table is restored in another region by its ARN, with an encryption; regions may have own tables."""
    put(world, 1, 1)
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/table"
    there = Caller(region="eu-west-1")
    request = {"SourceTableArn": arn, "TargetTableName": "there", "UseLatestRestorableTime": True,
               "SSESpecificationOverride": {"Enabled": True}}
    shown = world.database.execute("RestoreTableToPointInTime", request, there)["TableDescription"]
    assert shown["TableArn"] == "arn:aws:dynamodb:eu-west-1:000000000000:table/there"
    assert shown["SSEDescription"]["KMSMasterKeyArn"].startswith("arn:aws:kms:eu-west-1:")
    assert shown["RestoreSummary"]["SourceTableArn"] == arn
    separate = Database(world.database.engine, clock=world.clock, settings=Settings(separate_regions=True))
    here = Caller(region="us-east-1")
    separate.execute("CreateTable", table_of("own", "p"), here)
    separate.execute(
        "UpdateContinuousBackups",
        recovery_of("own"),
        here,
    )
    separate.execute("PutItem", {"TableName": "own", "Item": {"p": {"S": "a"}}}, here)
    own = {"SourceTableArn": arn.replace("/table", "/own"), "TargetTableName": "copy",
           "UseLatestRestorableTime": True, "SSESpecificationOverride": {"Enabled": True}}
    separate.execute("RestoreTableToPointInTime", own, there)
    assert separate.execute("Scan", {"TableName": "copy"}, there)["Count"] == 1
    with pytest.raises(ResourceNotFoundException):
        separate.execute("DescribeTable", {"TableName": "copy"}, here)
    with pytest.raises(TableNotFoundException):
        separate.execute(
            "RestoreTableToPointInTime",
            {"SourceTableName": "own", "TargetTableName": "copy2", "UseLatestRestorableTime": True},
            there,
        )


def test_boto3_restores_and_waits() -> None:
    with hashrange.Database.in_memory() as database:
        client = connect(database)
        client.create_table(**table_of("orders", "p"))
        client.get_waiter("table_exists").wait(TableName="orders")
        shown = client.update_continuous_backups(**recovery_of("orders"))["ContinuousBackupsDescription"]
        recovery = shown["PointInTimeRecoveryDescription"]
        assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"
        client.put_item(TableName="orders", Item={"p": {"S": "a"}})
        shown = client.describe_continuous_backups(TableName="orders")["ContinuousBackupsDescription"]
        window = shown["PointInTimeRecoveryDescription"]
        assert window["EarliestRestorableDateTime"] <= window["LatestRestorableDateTime"]
        # Each moment that is shown can be restored.
        for name, given in (
            ("earliest", {"RestoreDateTime": window["EarliestRestorableDateTime"]}),
            ("latest", {"RestoreDateTime": window["LatestRestorableDateTime"]}),
            ("present", {"UseLatestRestorableTime": True}),
        ):
            restored = client.restore_table_to_point_in_time(
                SourceTableName="orders", TargetTableName=name, **given
            )["TableDescription"]
            assert restored["TableStatus"] == "CREATING"
            client.get_waiter("table_exists").wait(TableName=name)
        assert client.scan(TableName="present")["Items"] == [{"p": {"S": "a"}}]
        with pytest.raises(client.exceptions.InvalidRestoreTimeException):
            client.restore_table_to_point_in_time(
                SourceTableName="orders", TargetTableName="other", RestoreDateTime=0
            )
