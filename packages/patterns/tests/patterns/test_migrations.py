"""Migrations: changes of items, definitions, records, the lock, and the command line."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from hashrange_patterns import Entities, Entity, Runtime, Table
from hashrange_patterns.entities import Changed
from hashrange_patterns.flows import Client
from hashrange_patterns.locks import Locks
from hashrange_patterns.migrations import (
    AsyncMigrations,
    Irreversible,
    Locked,
    Migrations,
    Switches,
    Unfinished,
    Unsettled,
)
from hashrange_patterns.migrations.__main__ import main
from patterns.asynchronous import asynchronous
from patterns.faults import Intercepted, answer_of

SPLIT = '''
"""Split names."""
from hashrange_patterns.migrations import Change

def up(item):
    if "name" in item:
        first, _, last = item.pop("name").partition(" ")
        item |= {"first": first, "last": last}
    return item

def down(item):
    if "first" in item:
        item["name"] = item.pop("first") + " " + item.pop("last")
    return item

steps = [Change(up, down)]
'''
BATCH = 25


class Virtual(Migrations):
    """Waits pass at once, on a clock of its own."""

    def __init__(self, client: Any, table: Table, folder: Path, **options: Any) -> None:
        self.seconds = 0.0
        runtime = Runtime(elapsed=lambda: self.seconds, attempts_max=3)
        super().__init__(client, table, folder, runtime=runtime, **options)

    def _sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "1_split.py").write_text(SPLIT)
    return tmp_path


def fill(client: Any, table: Table, number: int) -> None:
    for start in range(0, number, BATCH):
        puts = [
            {"PutRequest": {"Item": person(serial)}} for serial in range(start, min(number, start + BATCH))
        ]
        client.batch_write_item(RequestItems={table.name: puts})


def person(serial: int) -> dict[str, Any]:
    return {"PK": {"S": f"USER#{serial}"}, "SK": {"S": "USER"}, "name": {"S": f"first{serial} last{serial}"}}


def users(client: Any, table: Table) -> dict[str, dict[str, Any]]:
    pages = client.get_paginator("scan").paginate(TableName=table.name, ConsistentRead=True)
    items = [item for page in pages for item in page["Items"]]
    return {item["PK"]["S"]: item for item in items if item["PK"]["S"].startswith("USER#")}


def split(serial: int) -> dict[str, Any]:
    item = person(serial)
    del item["name"]
    return item | {"first": {"S": f"first{serial}"}, "last": {"S": f"last{serial}"}}


def test_every_item_is_changed_once_and_back(client: Any, table: Table, folder: Path) -> None:
    fill(client, table, 250)
    migrations = Virtual(client, table, folder, segments=3)
    [status] = migrations.status()
    assert (status.state, status.about) == ("pending", "Split names.")
    assert migrations.up() == ["1_split"]
    assert users(client, table) == {f"USER#{serial}": split(serial) for serial in range(250)}
    [status] = migrations.status()
    assert (status.state, status.seen, status.changed) == ("applied", 250, 250)
    assert migrations.up() == []
    assert migrations.down() == "1_split"
    assert users(client, table) == {f"USER#{serial}": person(serial) for serial in range(250)}
    assert [one.state for one in migrations.status()] == ["pending"]
    assert migrations.down() is None


def test_a_plan_writes_nothing_and_tells_costs_and_differences(
    client: Any, table: Table, folder: Path
) -> None:
    fill(client, table, 40)
    (folder / "2_later.py").write_text(
        SPLIT.replace("name", "first").replace('"first": first', '"given": first')
    )
    before = users(client, table)
    migrations = Virtual(client, table, folder)
    first, second = migrations.plan(show=1)
    assert first.look is not None
    assert second.look is not None
    assert (first.look.items, first.look.to_change, first.look.write_units) == (40, 40, 40)
    assert first.look.is_complete
    assert first.look.read_units > 0
    [(key, differences)] = first.look.differences
    serial = key["PK"]["S"].removeprefix("USER#")
    assert differences["name"] == (f"first{serial} last{serial}", None)
    assert differences["first"] == (None, f"first{serial}")
    assert second.look.to_change == 40  # (of what the first would make)
    sampled = migrations.plan(sample=10)[0].look
    assert sampled is not None
    assert (sampled.looked_at, sampled.is_complete) == (10, False)
    assert sampled.to_change == sampled.items
    assert users(client, table) == before


def test_branches_that_are_merged_need_nothing(client: Any, table: Table, folder: Path) -> None:
    (folder / "3_ours.py").write_text(SPLIT.replace('"name"', '"b"'))
    assert Virtual(client, table, folder).up() == ["1_split", "3_ours"]
    (folder / "2_theirs.py").write_text(SPLIT.replace('"name"', '"c"'))
    migrations = Virtual(client, table, folder)
    assert [one.state for one in migrations.status()] == ["applied", "pending", "applied"]
    assert migrations.up() == ["2_theirs"]
    assert migrations.down() == "2_theirs"
    (folder / "3_ours.py").unlink()
    assert [one.has_file for one in Virtual(client, table, folder).status()] == [True, True, False]


class Editing(Intercepted):
    """Lets another program write before the first `number` updates of a user."""

    def __init__(self, client: Any, edit: Callable[[Mapping[str, Any]], None], number: int = 10) -> None:
        super().__init__(client)
        self.edit, self.left = edit, number
        self.lock = threading.Lock()

    def perform(self, operation: str, parameters: dict[str, Any]) -> Mapping[str, Any]:
        of_user = parameters.get("Key", {}).get("PK", {}).get("S", "").startswith("USER#")
        if operation == "update_item" and of_user:
            with self.lock:
                if self.left > 0:
                    self.left -= 1
                    self.edit(parameters["Key"])
        return super().perform(operation, parameters)


def test_nothing_that_others_write_meanwhile_is_lost(client: Any, table: Table, folder: Path) -> None:
    fill(client, table, 30)
    edited = []

    def edit(key: Mapping[str, Any]) -> None:
        edited.append(key["PK"]["S"])
        expression, values = (
            "SET #name = :name, seen = :seen",
            {":name": {"S": "new one"}, ":seen": {"N": "1"}},
        )
        client.update_item(
            TableName=table.name,
            Key=key,
            UpdateExpression=expression,
            ExpressionAttributeNames={"#name": "name"},
            ExpressionAttributeValues=values,
        )

    Virtual(Editing(client, edit), table, folder).up()
    found = users(client, table)
    assert len(edited) == 10
    for name, item in found.items():
        if name in edited:
            assert (item["first"], item["last"], item["seen"]) == ({"S": "new"}, {"S": "one"}, {"N": "1"})
        assert "name" not in item


def test_an_item_that_was_deleted_meanwhile_stays_deleted(client: Any, table: Table, folder: Path) -> None:
    fill(client, table, 5)
    deleting = Editing(client, lambda key: client.delete_item(TableName=table.name, Key=key), 2)
    Virtual(deleting, table, folder).up()
    assert len(users(client, table)) == 3


def test_a_change_that_reads_some_attributes_takes_no_notice_of_others(
    client: Any, table: Table, folder: Path
) -> None:
    fill(client, table, 1)
    (folder / "1_split.py").write_text(SPLIT.replace("(up, down)", "(up, down, ['name', 'first', 'last'])"))
    edits = []

    def edit(key: Mapping[str, Any]) -> None:
        edits.append(key)
        values = {":one": {"N": "1"}}
        client.update_item(
            TableName=table.name, Key=key, UpdateExpression="ADD likes :one", ExpressionAttributeValues=values
        )

    Virtual(Editing(client, edit), table, folder).up()
    assert len(edits) == 1
    assert users(client, table)["USER#0"] == split(0) | {"likes": {"N": "1"}}


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        ("return item | {'n': item.get('n', 0) + 1}", Unsettled, "made of its own result"),
        ("return item | {'SK': 'OTHER'}", ValueError, "another key"),
        ("item['n'] = 1", TypeError, "return the item's values, or DELETE"),
    ],
)
def test_a_change_that_would_do_harm_is_refused(
    client: Any, table: Table, tmp_path: Path, body: str, error: type[Exception], words: str
) -> None:
    fill(client, table, 1)
    (tmp_path / "1_wrong.py").write_text(
        f"from hashrange_patterns.migrations import Change\ndef up(item):\n    {body}\nsteps = [Change(up)]\n"
    )
    migrations = Virtual(client, table, tmp_path)
    with pytest.raises(error, match=words):
        migrations.plan()
    with pytest.raises(error, match=words):
        migrations.up()
    assert users(client, table) == {"USER#0": person(0)}
    with pytest.raises(Irreversible):  # (and the lock is free)
        migrations.down()


def test_items_that_programs_write_again_are_found(client: Any, table: Table, folder: Path) -> None:
    fill(client, table, 3)
    migrations = Virtual(client, table, folder)
    migrations.up()
    assert migrations.verify().to_change == 0
    client.put_item(TableName=table.name, Item=person(9))
    assert (migrations.verify().to_change, migrations.verify().items) == (1, 4)

    class Back(Intercepted):
        """A program that writes the old form behind the walk."""

        def perform(self, operation: str, parameters: dict[str, Any]) -> Mapping[str, Any]:
            answer = super().perform(operation, parameters)
            if operation == "update_item" and parameters["Key"]["PK"]["S"] == "USER#9":
                client.put_item(TableName=table.name, Item=person(9))
            return answer

    migrations.down()
    with pytest.raises(Unfinished, match="deploy the program"):
        Virtual(Back(client), table, folder).up()
    assert [one.state for one in migrations.status()] == ["up"]
    assert migrations.up() == ["1_split"]
    assert users(client, table)["USER#9"] == split(9)


def test_two_runs_never_work_at_once(client: Any, table: Table, folder: Path) -> None:
    locks = Locks(client, table)
    held = locks.acquire("MIGRATIONS")
    assert held is not None

    class Alive(Intercepted):
        """The other run gives a sign of life before each look at the lock."""

        def perform(self, operation: str, parameters: dict[str, Any]) -> Mapping[str, Any]:
            nonlocal held
            if operation == "get_item" and held is not None:
                held = locks.renew(held)
            return super().perform(operation, parameters)

    with pytest.raises(Locked, match="another run"):
        Virtual(Alive(client), table, folder).up()
    assert [one.state for one in Virtual(client, table, folder).status()] == ["pending"]
    # (now the other is dead, and this one watches its lease pass)
    assert Virtual(client, table, folder).up() == ["1_split"]


def test_the_rate_limits_reads_and_writes(client: Any, table: Table, folder: Path) -> None:
    fill(client, table, 100)
    migrations = Virtual(client, table, folder, segments=1, units_per_second=10)
    migrations.up()
    assert 10 <= migrations.seconds <= 14  # (100 writes of a unit, and a read of 100 items)
    [status] = migrations.status()
    assert status.changed == 100


def test_a_throttled_table_is_waited_for(client: Any, table: Table, folder: Path) -> None:
    fill(client, table, 10)

    class Throttled(Intercepted):
        left = 40

        def perform(self, operation: str, parameters: dict[str, Any]) -> Mapping[str, Any]:
            if operation == "scan" and self.left > 0:
                self.left -= 1
                raise answer_of("ThrottlingException")
            return super().perform(operation, parameters)

    throttled = Throttled(client)
    assert Virtual(throttled, table, folder, segments=1).up() == ["1_split"]
    assert throttled.left == 0


class Person(Entity[str], pk="USER#{username}", sk="USER", name="User"):
    username: str
    name: str


SHAPE = """
from hashrange_patterns import Entity
from hashrange_patterns.migrations import Shape

def split(values):
    first, _, last = values.pop("name").partition(" ")
    return {**values, "first": first, "last": last}

class Person(Entity[str], pk="USER#{username}", sk="USER", name="User", migrations=[split]):
    username: str
    first: str
    last: str

steps = [Shape(Person)]
"""


def test_entities_get_their_newest_shape(client: Any, table: Table, tmp_path: Path) -> None:
    store = Entities(client, table)
    store.create(Person("alice", "Alice Doe"))
    stale = store.get(Person.key("alice"), consistent=True)
    assert stale is not None
    (tmp_path / "1_shape.py").write_text(SHAPE)
    client.put_item(TableName=table.name, Item={"PK": {"S": "OTHER"}, "SK": {"S": "USER"}})
    migrations = Virtual(client, table, tmp_path)
    migrations.up()
    item = users(client, table)["USER#alice"]
    assert (item["first"], item["last"], item["_shape"]) == ({"S": "Alice"}, {"S": "Doe"}, {"N": "1"})
    assert "name" not in item
    stale.name = "Alice Roe"
    with pytest.raises(Changed):
        store.update(stale)
    with pytest.raises(Irreversible):
        migrations.down()


INDEX = """
from hashrange_patterns import Index
from hashrange_patterns.migrations import AddIndex, Change, Switch

def up(item):
    return item | {"city_key": "CITY#Riga", "joined_key": "2026"} if item["SK"] == "USER" else item

def down(item):
    return {name: value for name, value in item.items() if name not in ("city_key", "joined_key")}

steps = [AddIndex(Index("cities", "city_key", "joined_key")), Change(up, down), Switch("cities")]
"""


def test_an_index_is_added_filled_and_switched_on(client: Any, table: Table, tmp_path: Path) -> None:
    fill(client, table, 3)
    (tmp_path / "1_cities.py").write_text(INDEX)
    migrations = Migrations(client, table, tmp_path)
    switches = Switches(client, table)
    assert not switches.is_on("cities")
    assert [planned.look is None for planned in migrations.plan()] == [True, False, True]
    migrations.up()
    answer = client.query(
        TableName=table.name,
        IndexName="cities",
        KeyConditionExpression="city_key = :city",
        ExpressionAttributeValues={":city": {"S": "CITY#Riga"}},
    )
    assert answer["Count"] == 3
    assert switches.is_on("cities")
    migrations.down()
    assert not switches.is_on("cities")
    assert "GlobalSecondaryIndexes" not in client.describe_table(TableName=table.name)["Table"]
    assert users(client, table) == {f"USER#{serial}": person(serial) for serial in range(3)}


def test_a_file_that_was_edited_half_way_begins_again(client: Any, table: Table, folder: Path) -> None:
    fill(client, table, 4)

    class Failing(Intercepted):
        def perform(self, operation: str, parameters: dict[str, Any]) -> Mapping[str, Any]:
            if operation == "update_item" and parameters["Key"]["PK"]["S"].startswith("USER#"):
                raise answer_of("ValidationException")
            return super().perform(operation, parameters)

    with pytest.raises(Exception, match="by a fault"):
        Virtual(Failing(client), table, folder).up()
    (folder / "1_split.py").write_text(SPLIT.replace("partition", "rpartition"))
    migrations = Virtual(client, table, folder)
    [status] = migrations.status()
    assert (status.state, status.is_edited) == ("up", True)
    assert migrations.up() == ["1_split"]
    assert users(client, table) == {f"USER#{serial}": split(serial) for serial in range(4)}


def test_the_command_line(
    client: Any, table: Table, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(client, table, 2)

    def told(*arguments: str, status: int = 0) -> str:
        given = ["--table", table.name, "--folder", str(folder), "--rate", "1000", *arguments]
        assert main(given, cast(Client, client)) == status
        captured = capsys.readouterr()
        return captured.out + captured.err

    assert told("status") == "1_split, pending\n"
    plan = told("plan", "--show", "1")
    assert "2 of 2 items" in plan
    assert "2 write units, 0.0 minutes, $0.00" in plan
    assert "-> (none)" in plan
    assert told("up") == "applied 1_split\n"
    assert "2 of 2 items changed" in told("status")
    assert told("verify") == "0 of 2 items are not changed\n"
    client.put_item(TableName=table.name, Item=person(1))
    assert told("verify", status=1).startswith("1 of 2 items are not changed\n")
    assert told("down") == "took back 1_split\n"
    assert told("down") == "nothing is applied\n"
    path = Path(told("new", 'Say "x"').strip())
    assert path.name.endswith("_say_x.py")
    assert told("up") == f"applied 1_split\napplied {path.stem}\n"
    assert "no migration 'x'" in told("up", "--to", "x", status=1)
    (folder / "2_empty.py").write_text("")
    assert "defines no steps" in told("status", status=1)


class Meeting(Intercepted):
    """An asynchronous client whose walks begin when all segments have asked; then one fails."""

    def __init__(self, client: Any, segments: int) -> None:
        super().__init__(client)
        self._barrier = asyncio.Barrier(segments)

    def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
        async def answer() -> Any:
            if operation == "scan" and "Segment" in parameters:
                await asyncio.wait_for(self._barrier.wait(), 60)
                if parameters["Segment"] == 1:
                    raise RuntimeError("segment 1 fails")
            return Intercepted.perform(self, operation, parameters)

        return answer()


def test_an_asynchronous_program_migrates_with_segments_side_by_side(
    client: Any, table: Table, folder: Path
) -> None:
    fill(client, table, 150)
    alone = Migrations(client, table, folder)

    async def migrate() -> None:
        failing = AsyncMigrations(cast(Any, Meeting(client, 3)), table, folder, segments=3)
        with pytest.raises(RuntimeError, match="segment 1 fails"):
            await failing.up()
        assert [one.state for one in alone.status()] == ["up"]
        assert await AsyncMigrations(asynchronous(client), table, folder, segments=3).up() == ["1_split"]

    asyncio.run(migrate())
    assert users(client, table) == {f"USER#{serial}": split(serial) for serial in range(150)}
    [status] = alone.status()
    assert (status.state, status.seen, status.changed) == ("applied", 150, 150)

    async def go_back() -> str | None:
        return await AsyncMigrations(asynchronous(client), table, folder).down()

    assert asyncio.run(go_back()) == "1_split"
    assert users(client, table) == {f"USER#{serial}": person(serial) for serial in range(150)}
