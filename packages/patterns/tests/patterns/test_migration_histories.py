"""Migrations: histories of runs that die, whose requests are lost or late, and of programs that write beside;
and runs that are killed by SIGKILL."""

from __future__ import annotations

import random
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from hashrange_patterns import Runtime, Table
from hashrange_patterns.flows import Call
from hashrange_patterns.locks import Lost
from hashrange_patterns.migrations import Contended, Locked, MigrationFlows, Migrations, walks
from hashrange_patterns.migrations.files import revisions_of
from patterns.brokers import started, wait_for_work
from patterns.conftest import ROUNDS
from patterns.migration_worker import LEASE_SECONDS
from patterns.processes import in_process
from patterns.steps import Histories, Outcome, check
from patterns.test_migrations import SPLIT, Virtual, fill, person, split, users

USERS = 6
LEASE = 30.0
SERIALS = st.integers(0, USERS - 1)
PLACES = st.one_of(st.none(), st.integers(0, 3))


class MigrationHistories(Histories):
    """Runs of one migration, and a program that writes both forms of items."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        fill(client, self.table, USERS)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "1_split.py").write_text(SPLIT)
            self.revisions = revisions_of(Path(folder))
        self.model = {f"USER#{serial}": split(serial) for serial in range(USERS)}
        self.writes = 0

    def flows(self) -> MigrationFlows:
        """Those of a new process."""
        return MigrationFlows(self.table, self.revisions, 2, None, LEASE, self.steps.runtime())

    def found(self) -> dict[str, dict[str, Any]]:
        return users(self.client, self.table)

    @rule()
    def run(self) -> None:
        """A process begins a run."""

        def ended(outcome: Outcome) -> None:
            if outcome.returned:
                assert all("name" not in item for item in self.found().values())

        self.start(self.flows().up(), ended, Locked, Lost, Contended)

    def about_to_change(self, serial: int, place: int | None) -> int:
        """The user that a run changes by its next request, if it comes so far; or else `serial`."""
        if place is None or not self.steps.running:
            return serial
        running = self._chosen(place)
        while running in self.steps.running:
            if isinstance(running.step, Call) and running.step.operation == "update_item":
                key = running.step.parameters["Key"]["PK"]["S"]
                if key.startswith("USER#"):
                    return int(key.removeprefix("USER#"))
            self.steps.step(running)
        return serial

    @rule(serial=SERIALS, place=PLACES)
    def edit(self, serial: int, place: int | None) -> None:
        """A program writes the first name, in the form that the item has."""
        serial = self.about_to_change(serial, place)
        item = self.found().get(f"USER#{serial}")
        if item is None:
            return
        self.writes += 1
        first = f"written{self.writes}"
        old = "name" in item
        self._update(
            serial, "SET #a = :a", "name" if old else "first", f"{first} last{serial}" if old else first
        )
        self.model[f"USER#{serial}"]["first"] = {"S": first}

    @rule(serial=SERIALS, place=PLACES)
    def like(self, serial: int, place: int | None) -> None:
        """A program adds to an attribute that the migration does not know."""
        serial = self.about_to_change(serial, place)
        key = f"USER#{serial}"
        if key in self.model:
            item = self.model[key]
            item["likes"] = {"N": str(int(item.get("likes", {}).get("N", "0")) + 1)}
            self._update(serial, "SET #a = :a", "likes", int(item["likes"]["N"]))

    @rule(serial=SERIALS, place=PLACES)
    def delete_or_create(self, serial: int, place: int | None) -> None:
        """A program deletes an item, or makes it in the new form."""
        serial = self.about_to_change(serial, place)
        key = f"USER#{serial}"
        if key in self.model:
            del self.model[key]
            address = {name: person(serial)[name] for name in ("PK", "SK")}
            self.client.delete_item(TableName=self.table.name, Key=address)
        else:
            self.model[key] = split(serial)
            self.client.put_item(TableName=self.table.name, Item=split(serial))

    def verdict(self) -> None:
        # (all leases are over, and the clocks of the dead, too)
        self.steps.time += 1_000.0
        self.alone(self.flows().up())
        assert self.found() == self.model
        [status] = self.alone(self.flows().status())
        assert status.state == "applied"
        assert self.alone(self.flows().verify()).to_change == 0
        assert self.alone(self.flows().down()) == "1_split"
        for item in self.model.values():
            item["name"] = {"S": f"{item.pop('first')['S']} {item.pop('last')['S']}"}
        assert self.found() == self.model

    def _update(self, serial: int, update: str, attribute: str, value: str | int) -> None:
        self.client.update_item(
            TableName=self.table.name,
            Key={name: person(serial)[name] for name in ("PK", "SK")},
            UpdateExpression=update,
            ExpressionAttributeNames={"#a": attribute},
            ExpressionAttributeValues={":a": {"S": value} if isinstance(value, str) else {"N": str(value)}},
        )


@in_process
def test_writers_beside_a_migration_lose_nothing(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "PAGE_ITEMS", 2)
    check(MigrationHistories, client)


@in_process
@pytest.mark.parametrize("dies_after", [20, 45, 70])
def test_a_run_goes_on_where_a_dead_one_ended(
    client: Any, table: Table, tmp_path: Path, dies_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walks, "PAGE_ITEMS", 5)
    fill(client, table, 40)
    (tmp_path / "1_split.py").write_text(SPLIT)

    flows = MigrationFlows(table, revisions_of(tmp_path), 2, None, LEASE, Runtime())
    dying = flows.up()
    step: Any = next(dying)
    for _ in range(dies_after):
        step = dying.send(getattr(client, step.operation)(**step.parameters))
    dying.close()
    migrations = Virtual(client, table, tmp_path, segments=7)
    [before] = migrations.status()
    assert before.state == "up"
    assert 0 < before.seen <= 40
    migrations.up()
    assert users(client, table) == {f"USER#{serial}": split(serial) for serial in range(40)}
    [after] = migrations.status()
    assert (after.state, after.seen) == ("applied", 40)


def test_a_killed_run_is_gone_on_with(
    http_client: Any, endpoint: str, name_table: Callable[..., str], tmp_path: Path
) -> None:
    table = Table(name_table("migrations", http_client))
    http_client.create_table(**table.definition())
    http_client.get_waiter("table_exists").wait(TableName=table.name, WaiterConfig={"Delay": 1})
    fill(http_client, table, 400)
    (tmp_path / "1_split.py").write_text(SPLIT)
    chance = random.Random(table.name)
    for _ in range(ROUNDS // 8 or 2):
        left = sum("name" in item for item in users(http_client, table).values())
        if left < 20:
            break
        worker: subprocess.Popen[str] = started(
            "patterns.migration_worker", endpoint, table.name, str(tmp_path)
        )
        # (fewer than are left: after these the worker ends. Two requests of a dead one may be under way.)
        wait_for_work([worker], chance.randrange(1, min(left - 10, 120)))
        worker.kill()
        worker.communicate()
    Migrations(http_client, table, tmp_path, lease_seconds=LEASE_SECONDS).up()
    assert users(http_client, table) == {f"USER#{serial}": split(serial) for serial in range(400)}
