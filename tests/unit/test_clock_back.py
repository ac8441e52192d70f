"""A clock that steps: what happened stays so, and nothing waits longer than it ever may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hashrange.clock import VirtualClock, has_come
from hashrange.database import Database, Settings
from hashrange.errors import ServiceError
from hashrange.storage.api import Engine
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine

START = 1_767_225_600.0
DAY = 86_400.0
KEY = {"pk": {"S": "a"}}


def test_a_moment_has_come_when_it_is_past_or_lies_too_far_ahead() -> None:
    assert [has_come(100.0, now, 10.0) for now in (100.0, 101.0, 1e9)] == [True] * 3
    assert [has_come(100.0, now, 10.0) for now in (90.0, 99.9)] == [False] * 2
    assert [has_come(100.0, now, 10.0) for now in (89.9, 0.0)] == [True] * 2
    assert has_come(100.0, 100.0, 0.0)
    assert has_come(100.0, 99.0, 0.0)


class Stepping:
    """A database on a clock that the test sets; it sweeps when asked to, as the server does by itself."""

    def __init__(self, engine: Engine | None = None, **settings: Any) -> None:
        self.clock = VirtualClock(START, frozen=True)
        self.engine = engine or MemoryEngine()
        self.database = Database(self.engine, settings=Settings(**settings), clock=self.clock)

    def ask(self, operation: str, **request: Any) -> dict[str, Any]:
        return self.database.execute(operation, request)

    def create(self, name: str = "table", **more: Any) -> None:
        self.ask(
            "CreateTable",
            TableName=name,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
            **more,
        )

    def step(self, seconds: float, *, sweep: bool = True) -> None:
        self.clock.set(self.clock.now() + seconds)
        if sweep:
            self.database.settle()

    def state(self, name: str = "table") -> str:
        """The state of a table, MISSING where there is none."""
        try:
            shown: str = self.ask("DescribeTable", TableName=name)["Table"]["TableStatus"]
        except ServiceError as error:
            assert error.code == "ResourceNotFoundException"
            return "MISSING"
        return shown


@pytest.mark.parametrize("create_seconds", [0.0, 5.0])
@pytest.mark.parametrize("sweep", [True, False])
def test_a_table_in_use_stays_so_when_the_clock_is_set_back(create_seconds: float, *, sweep: bool) -> None:
    world = Stepping(create_seconds=create_seconds)
    world.create()
    world.step(create_seconds)
    for seconds in (-2.0, -DAY, -400 * DAY):
        world.step(seconds, sweep=sweep)
        assert world.state() == "ACTIVE"
        world.ask("PutItem", TableName="table", Item=dict(KEY))
        assert "Item" in world.ask("GetItem", TableName="table", Key=dict(KEY))
    world.ask("DeleteTable", TableName="table")
    assert world.state() == "MISSING"


@pytest.mark.parametrize("ahead", [1.0, DAY, 400 * DAY])
def test_what_was_made_while_the_clock_was_ahead_takes_its_seconds_and_no_day(ahead: float) -> None:
    world = Stepping(create_seconds=5.0, update_seconds=5.0, delete_seconds=5.0)
    world.step(ahead)
    world.create()
    world.step(-ahead)
    world.step(5.0)
    assert world.state() == "ACTIVE"
    world.step(ahead)
    world.ask("UpdateTable", TableName="table", TableClass="STANDARD_INFREQUENT_ACCESS")
    assert world.state() == "UPDATING"
    world.step(-ahead)
    world.step(5.0)
    assert world.state() == "ACTIVE"
    world.step(ahead)
    world.ask("DeleteTable", TableName="table")
    assert world.state() == "DELETING"
    world.step(-ahead)
    world.step(5.0)
    assert world.state() == "MISSING"
    world.step(-DAY)
    assert world.state() == "MISSING"


def test_replicas_and_witnesses_come_and_go_once() -> None:
    world = Stepping(update_seconds=5.0)
    world.create()
    world.step(DAY)
    world.ask(
        "UpdateTable",
        TableName="table",
        ReplicaUpdates=[{"Create": {"RegionName": "us-east-2"}}],
        GlobalTableWitnessUpdates=[{"Create": {"RegionName": "us-west-2"}}],
        MultiRegionConsistency="STRONG",
    )

    def shown() -> list[str]:
        table = world.ask("DescribeTable", TableName="table")["Table"]
        return [
            table["TableStatus"],
            *(one["ReplicaStatus"] for one in table.get("Replicas", ())),
            *(one["WitnessStatus"] for one in table.get("GlobalTableWitnesses", ())),
        ]

    assert shown() == ["UPDATING", "CREATING", "CREATING"]
    world.step(-DAY)
    assert shown() == ["ACTIVE"] * 3
    world.step(-DAY)
    assert shown() == ["ACTIVE"] * 3
    world.ask(
        "UpdateTable",
        TableName="table",
        ReplicaUpdates=[{"Delete": {"RegionName": "us-east-2"}}],
        GlobalTableWitnessUpdates=[{"Delete": {"RegionName": "us-west-2"}}],
    )
    assert shown() == ["UPDATING", "DELETING", "DELETING"]
    world.step(-2.0)
    assert shown() == ["ACTIVE"]


def test_states_are_what_they_were_after_a_restart_at_an_earlier_time(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    world = Stepping(engine, create_seconds=5.0)
    world.create()
    world.step(5.0)
    world.create("young")
    engine.close()
    engine = EmbeddedEngine(tmp_path / "data")
    world = Stepping(engine, create_seconds=5.0)
    world.clock.set(START - DAY)
    assert (world.state(), world.state("young")) == ("ACTIVE", "CREATING")
    world.database.settle()
    assert (world.state(), world.state("young")) == ("ACTIVE", "ACTIVE")
    engine.close()
