"""A machine's clock that leaps ahead: what time destroys waits until the clock has gone on steadily."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from hashrange.cli.admin import bind_admin
from hashrange.clock import StoreClock, SystemClock, VirtualClock
from hashrange.database import Database, Settings
from hashrange.errors import ResourceNotFoundException
from hashrange.server import running
from hashrange.storage.api import Engine
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.background.leaps import AGREE_SECONDS, GAP_SECONDS, LEAP_SECONDS, LEAPT, Leaps
from hashrange.tables.background.units import Background
from hashrange.tables.definitions import catalog
from hashrange.tables.spaces import FIRST_TABLE_SPACE
from worlds import expiry_of, recovery_of, table_of

START = 1_767_225_600.0
DAY = 86_400.0
YEARS = 3_650 * DAY
KEY = {"pk": {"S": "a"}}
TABLE = "table"


class MachineClock(SystemClock):
    """A machine's clock, whose errors a test chooses."""

    __slots__ = ("error", "steady")

    def __init__(self, steady: list[float]) -> None:
        self.steady = steady
        self.error = 0.0

    def now(self) -> float:
        return START + self.steady[0] + self.error


class Machine:
    """A database on a machine's clock."""

    def __init__(self, engine: Engine | None = None, clock_error: float = 0.0) -> None:
        self.seconds = [0.0]
        self.clock = MachineClock(self.seconds)
        self.clock.error = clock_error
        self.engine = engine or MemoryEngine()
        self.database = Database(self.engine, settings=Settings(), clock=self.clock)
        self.database.background = Background(lambda: self.seconds[0])

    def ask(self, operation: str, **request: Any) -> dict[str, Any]:
        return self.database.execute(operation, request)

    def passes(self, seconds: float) -> None:
        self.seconds[0] += seconds
        self.database.settle()

    def leaps(self, seconds: float) -> None:
        self.clock.error += seconds
        self.database.settle()

    def records(self) -> int:
        """How many records the stream has, whether they can be read or not."""
        stream = self.ask("ListStreams")["Streams"]
        if not stream:
            return 0
        shards = self.ask("DescribeStream", StreamArn=stream[0]["StreamArn"])["StreamDescription"]["Shards"]
        count = 0
        for shard in shards:
            iterator = self.ask(
                "GetShardIterator",
                StreamArn=stream[0]["StreamArn"],
                ShardId=shard["ShardId"],
                ShardIteratorType="TRIM_HORIZON",
            )["ShardIterator"]
            count += len(self.ask("GetRecords", ShardIterator=iterator)["Records"])
        return count


def filled(machine: Machine) -> None:
    """A table with everything that time destroys."""
    machine.ask("CreateTable", **table_of(TABLE, "pk", stream="NEW_IMAGE"))
    machine.ask("UpdateTimeToLive", **expiry_of(TABLE, "ends"))
    machine.ask("UpdateContinuousBackups", **recovery_of(TABLE))
    machine.ask("PutItem", TableName=TABLE, Item={**KEY, "ends": {"N": str(int(START + 30 * DAY))}})
    machine.database.settle()


def item(machine: Machine) -> Any:
    return machine.ask("GetItem", TableName=TABLE, Key=dict(KEY)).get("Item")


def contents(machine: Machine) -> list[Any]:
    """All that the store has."""
    spaces = range(FIRST_TABLE_SPACE + 50)
    return machine.engine.read(lambda reader: [list(reader.scan_space(space)) for space in spaces])


def spans(machine: Machine) -> int:
    """How many spans of its past the table has."""
    table = machine.engine.read(lambda reader: catalog.find_full(reader, TABLE))
    assert table is not None
    assert table.history is not None
    return len(table.history.spans)


@pytest.mark.parametrize("leap", [LEAP_SECONDS + 60, 2 * DAY, 60 * DAY, 4 * 365 * DAY])
def test_a_leap_of_seconds_destroys_nothing(leap: float) -> None:
    machine = Machine()
    filled(machine)
    machine.ask("DeleteTable", TableName=TABLE)
    filled(machine)
    before = machine.records(), spans(machine)
    stored = contents(machine)
    machine.leaps(leap)
    for _ in range(5):
        machine.passes(1.0)
    assert contents(machine) == stored
    machine.leaps(-leap)
    machine.passes(2 * AGREE_SECONDS)
    assert item(machine) is not None
    assert (machine.records(), spans(machine)) == before


def test_the_work_goes_on_when_the_clock_has_gone_on_steadily() -> None:
    machine = Machine()
    filled(machine)
    machine.leaps(60 * DAY)
    machine.passes(AGREE_SECONDS - 1)
    assert item(machine) is not None
    machine.leaps(60 * DAY)  # another leap: the wait begins again
    machine.passes(AGREE_SECONDS - 1)
    assert item(machine) is not None
    machine.passes(1)
    assert item(machine) is None
    machine.passes(LEAP_SECONDS)
    machine.passes(10 * DAY)  # nobody swept meanwhile, which is no leap
    leaps = machine.database.background.leaps
    assert leaps is not None
    assert leaps.remaining_seconds is None


def test_time_that_passes_destroys_as_ever() -> None:
    machine = Machine()
    filled(machine)
    assert machine.records() == 1
    machine.passes(DAY + 61)
    machine.passes(61)
    assert machine.records() == 0
    machine.passes(29 * DAY)
    assert item(machine) is None


@pytest.mark.parametrize(
    ("off", "held"), [(0.0, False), (GAP_SECONDS - 3_700, False), (GAP_SECONDS + 1, True), (YEARS, True)]
)
def test_a_start_long_after_the_last_note_waits_too(tmp_path: Path, off: float, held: bool) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    machine = Machine(engine)
    filled(machine)
    machine.passes(3_599)
    machine.database.close()
    again = Machine(EmbeddedEngine(tmp_path / "data"), 3_599 + off)
    again.database.settle()
    leaps = again.database.background.leaps
    assert leaps is not None
    assert (leaps.remaining_seconds is not None) == held
    again.ask("PutItem", TableName=TABLE, Item={**KEY, "ends": {"N": str(int(again.clock.now() - 10))}})
    again.passes(1)
    assert (item(again) is not None) == held
    again.passes(AGREE_SECONDS)
    assert item(again) is None
    again.database.close()


def test_the_note_is_made_once_an_hour_and_never_during_a_leap() -> None:
    notes: list[float] = []

    class Noting:
        def write(self, body: Callable[[Any], None]) -> None:
            class Transaction:
                def put(self, space: int, partition: bytes, sort: bytes, value: bytes) -> None:
                    notes.append(float(value))

            body(Transaction())

    steady = [0.0]
    leaps = Leaps(lambda: steady[0], None)
    for second in range(0, 7_300, 100):
        steady[0] = float(second)
        assert not leaps.is_held(START + second)
        assert not leaps.note(Noting(), START + second)  # type: ignore[arg-type]
    assert notes == [START, START + 3_600, START + 7_200]


def test_health_names_the_wait(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    filled(machine)
    machine.leaps(60 * DAY)
    assert caplog.text.count(LEAPT) == 1
    admin = bind_admin(0)
    with running(machine.database, admin=admin), urllib.request.urlopen(f"{admin.url}/health") as answer:
        shown = orjson.loads(answer.read())
    assert (shown["status"], shown["clock"]) == ("degraded", {"problem": LEAPT, "held_seconds": 600})
    machine.passes(AGREE_SECONDS)
    assert "the clock is trusted again" in caplog.text


def test_only_real_clocks_are_judged() -> None:
    steady = [0.0]
    machine = Machine()
    machine.database.clock = StoreClock(lambda: START, lambda: steady[0])
    machine.database.settle()
    assert machine.database.background.leaps is not None
    with Database.in_memory(clock=MachineClock([0.0])) as plain:
        plain.settle()
        assert plain.background.leaps is not None
    clock = VirtualClock(START, frozen=True)
    with Database.in_memory(clock=clock) as virtual:
        virtual.settle()
        clock.advance(YEARS)
        virtual.settle()
        assert virtual.background.leaps is None


def test_a_leap_holds_back_no_request_and_other_work_goes_on() -> None:
    machine = Machine()
    filled(machine)
    machine.leaps(60 * DAY)
    machine.ask("DeleteTable", TableName=TABLE)
    with pytest.raises(ResourceNotFoundException):
        machine.ask("DescribeTable", TableName=TABLE)
