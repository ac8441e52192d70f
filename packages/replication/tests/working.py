"""Random work over the public API, on a store that ships."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.failures import Moment
from hashrange.tables.inspection.check import check
from shipping import World, contents
from worlds import expiry_of, recovery_of, table_of

TABLES = ("first", "second")
ITEMS = st.integers(0, 5)
ACTS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(TABLES), ITEMS, st.sampled_from([1, 300, 40_000])),
    st.tuples(st.just("put"), st.sampled_from(TABLES), ITEMS, st.sampled_from([1, 300, 40_000])),
    st.tuples(st.just("delete"), st.sampled_from(TABLES), ITEMS),
    st.tuples(st.just("transact"), ITEMS, ITEMS),
    st.tuples(st.just("drop and make"), st.sampled_from(TABLES)),
    st.tuples(st.just("pass"), st.sampled_from([1, 100, 4_000])),
    st.tuples(st.just("backup"), st.sampled_from(TABLES)),
    st.tuples(st.just("base")),
    st.tuples(st.just("upkeep")),
    st.tuples(st.just("fail"), st.sampled_from(["before", "after"])),
    st.tuples(st.just("restart")),
    st.tuples(st.just("crash")),
)


class Worker:
    """Does acts, and keeps the contents of each moment."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.past: dict[float, dict[bytes, Any]] = {}
        for table in TABLES:
            self.make(table)

    def execute(self, operation: str, **request: Any) -> Any:
        return self.world.database.execute(operation, request)

    def make(self, table: str) -> None:
        self.world.database.execute(
            "CreateTable", table_of(table, "p", indexes={"by-g": "g"}, stream="NEW_AND_OLD_IMAGES")
        )
        self.world.database.settle()
        self.world.database.execute("UpdateTimeToLive", expiry_of(table))
        self.world.database.execute("UpdateContinuousBackups", recovery_of(table))

    def item(self, number: int, bytes_: int) -> Any:
        ttl = int(self.world.clock.now()) + 50
        return {
            "p": {"S": f"{number}"},
            "g": {"S": "g" * (number + 1)},
            "x": {"S": "x" * bytes_},
            "ttl": {"N": str(ttl)},
        }

    def act(self, what: str, *given: Any) -> None:
        world = self.world
        match what, given:
            case "put", (table, number, bytes_):
                self.execute("PutItem", TableName=table, Item=self.item(number, bytes_))
            case "delete", (table, number):
                self.execute("DeleteItem", TableName=table, Key={"p": {"S": f"{number}"}})
            case "transact", (one, other):
                puts = [
                    {"Put": {"TableName": table, "Item": self.item(number, 10)}}
                    for table, number in zip(TABLES, (one, other), strict=True)
                ]
                self.execute("TransactWriteItems", TransactItems=puts)
            case "drop and make", (table,):
                self.execute("DeleteTable", TableName=table)
                world.database.settle()
                self.make(table)
            case "pass", (seconds,):
                world.clock.advance(seconds)
                world.now.advance(seconds)
                world.copying.keep_lease()
                world.database.settle()
            case "backup", (table,):
                self.execute("CreateBackup", TableName=table, BackupName="backup")
                world.database.settle()
            case "base", ():
                if world.copying.shipper.has_base:
                    world.copying.bases.make()
            case "upkeep", ():
                world.engine.upkeep()
            case "fail", (moment,):
                self.fail(moment)
            case "restart", ():
                world.close()
                world.open()
            case "crash", ():
                world.copying.ship()
                world.crash()
                world.open()

    def fail(self, moment: Moment) -> None:
        """A commit fails, and the store repairs itself."""
        from hashrange.storage.failures import CommitFailed
        from hashrange_engine_tests import faults

        try:
            with faults.failing(self.world.engine, moment, commits_max=1):
                self.world.engine.write(lambda txn: txn.put(399, b"p", b"failed", b""))
        except CommitFailed:
            pass
        while self.world.engine.refusing():
            continue

    def keep(self) -> None:
        """Remember what the store holds now, and let the time go on."""
        self.past[self.world.clock.now()] = contents(self.world.engine)
        self.world.copying.keep_lease()
        self.world.step()


def assert_it_works(world: World, directory: Any) -> None:
    """The restored store is sound, and goes on."""
    engine = EmbeddedEngine(directory)
    clock = ManualClock(world.clock.now())
    with Database(engine, settings=world.settings.with_data_dir(str(directory)), clock=clock) as database:
        assert list(check(engine)) == []
        for table in TABLES:
            item = {"p": {"S": "new"}, "g": {"S": "g"}}
            database.execute("PutItem", {"TableName": table, "Item": item})
        database.settle()
        assert list(check(engine)) == []
