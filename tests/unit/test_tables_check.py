"""The integrity checker finds each kind of damage, and nothing in a whole store."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import msgspec
import pytest

from hashrange.clock import ManualClock
from hashrange.database import Database, Settings
from hashrange.encoding import PARTITION_BYTES
from hashrange.storage.api import Transaction
from hashrange.storage.memory import MemoryEngine
from hashrange.tables import spaces
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table, TimeToLive
from hashrange.tables.definitions.table import encode as encode_definition
from hashrange.tables.inspection import check, mending
from hashrange.tables.inspection.owners import owners
from hashrange.tables.inspection.problems import Problem
from hashrange.tables.items import records
from hashrange.tables.spaces import BACKFILL_SPACE, CATALOG_SPACE, FIRST_TABLE_SPACE
from hashrange.tables.writes import backfill, builds, expiry, lag
from hashrange.values import Item, item_size
from hashrange_engine_tests.reruns import Reruns
from worlds import create, expiry_of, new_index

NOW = 1_700_000_000
ITEMS = 8


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> MemoryEngine:
    """A store with one table that has everything: indexes of both kinds, item collections, expiry."""
    monkeypatch.setattr(check, "BITE_RECORDS", 3)
    engine = MemoryEngine()
    database = Database(engine, clock=ManualClock(NOW))
    create_table(database, "everything")
    fill(database, "everything")
    return engine


def create_table(database: Database, name: str) -> None:
    local, everywhere = {"local": "p, g | KEYS_ONLY"}, {"global": "g | v"}
    create(database, name, "p, k", local_indexes=local, indexes=everywhere)
    database.execute("UpdateTimeToLive", expiry_of(name))


def fill(database: Database, name: str) -> None:
    for number in range(ITEMS):
        item: Item = {"p": {"S": f"p{number % 2}"}, "k": {"S": f"k{number}"}, "v": {"S": "x" * number}}
        item["ttl"] = {"N": str(NOW + 100 + number)}
        if number != 3:
            item["g"] = {"S": f"g{number % 3}"}
        database.execute("PutItem", {"TableName": name, "Item": item})


def problems(engine: MemoryEngine) -> list[Problem]:
    found = list(check.check(engine))
    # An engine may run each body several times.
    assert list(map(str, check.check(Reruns(engine, alone=True)))) == list(map(str, found))
    return found


def damage(engine: MemoryEngine, do: Callable[[Transaction, Table], None]) -> list[str]:
    """Do something to the table's records behind the database's back; the messages that the check gives."""

    def body(txn: Transaction) -> None:
        do(txn, catalog.open_any(txn, "everything", ""))

    engine.write(body)
    found = problems(engine)
    assert all(problem.table in ("everything", "") for problem in found)
    return [problem.message for problem in found]


def first(txn: Transaction, space: int) -> tuple[bytes, bytes, bytes]:
    return next(iter(txn.scan_space(space)))


def ttl_of(table: Table) -> TimeToLive:
    assert table.ttl is not None
    return table.ttl


def test_a_whole_store_has_no_problems(engine: MemoryEngine) -> None:
    assert problems(engine) == []
    assert problems(MemoryEngine()) == []


def test_progress_is_reported_meanwhile(engine: MemoryEngine) -> None:
    reported: list[tuple[str, int]] = []
    assert (
        list(check.check(engine, progress=lambda what, looked_at: reported.append((what, looked_at)))) == []
    )
    assert [(what, n) for what, n in reported if what == "everything"][:3] == [
        ("everything", 3),
        ("everything", 6),
        ("everything", 8),
    ]
    assert {"everything/local", "everything/global"} <= {what for what, _ in reported}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda record: b"", "the record has no header of a known format"),
        (lambda record: b"\x63" + record[1:], "the record has no header of a known format"),
        (lambda record: record[:-3], "the record cannot be decoded"),
        (lambda record: record[:5] + b"[]", "the record does not hold an item"),
        (lambda record: record[:5] + b'{"p":{"Q":"x"}}', "the record does not hold an item"),
        (lambda record: record[:1] + b"\x00\x00\x00\x01" + record[5:], "the header says 1 bytes"),
    ],
)
def test_a_spoilt_record_is_found(
    engine: MemoryEngine, spoil: Callable[[bytes], bytes], message: str
) -> None:
    def do(txn: Transaction, table: Table) -> None:
        partition, sort, record = first(txn, table.space)
        txn.put(table.space, partition, sort, spoil(record))

    assert any(found.startswith(message) for found in damage(engine, do))


def test_a_spoilt_index_entry_is_found(engine: MemoryEngine) -> None:
    def do(txn: Transaction, table: Table) -> None:
        space = table.indexes[1].space
        partition, sort, record = first(txn, space)
        txn.put(space, partition, sort, record[:-1])

    assert any(found.startswith("the record cannot be decoded") for found in damage(engine, do))


def test_an_item_at_another_address_is_found(engine: MemoryEngine) -> None:
    def do(txn: Transaction, table: Table) -> None:
        partition, sort, record = first(txn, table.space)
        txn.put(table.space, partition, sort + b"x", record)

    assert "the item's key belongs to another address" in damage(engine, do)


@pytest.mark.parametrize("index", [0, 1])
def test_a_missing_index_entry_is_found(engine: MemoryEngine, index: int) -> None:
    def do(txn: Transaction, table: Table) -> None:
        space = table.indexes[index].space
        partition, sort, record = first(txn, space)
        txn.delete(space, partition, sort)
        txn.count(space, -1, -records.size_of(record))

    assert damage(engine, do) == ["the item has no entry in the index"]


@pytest.mark.parametrize("index", [0, 1])
def test_an_index_entry_without_its_item_is_found(engine: MemoryEngine, index: int) -> None:
    def do(txn: Transaction, table: Table) -> None:
        space = table.indexes[index].space
        partition, sort, record = first(txn, space)
        item = {**records.item_of(record), "k": {"S": "nowhere"}}
        txn.put(space, partition, sort + b"x", records.pack(item, item_size(item)))
        txn.count(space, 1, item_size(item))

    assert damage(engine, do) == ["the entry's item does not exist"]


def test_an_index_entry_at_another_place_is_found(engine: MemoryEngine) -> None:
    def do(txn: Transaction, table: Table) -> None:
        space = table.indexes[1].space
        partition, sort, record = first(txn, space)
        txn.put(space, partition, sort + b"x", record)
        txn.count(space, 1, records.size_of(record))

    assert damage(engine, do) == ["the entry's item belongs elsewhere in the index"]


def test_an_index_entry_that_names_no_item_is_found(engine: MemoryEngine) -> None:
    def do(txn: Transaction, table: Table) -> None:
        space = table.indexes[1].space
        partition, sort, record = first(txn, space)
        item = {"v": {"S": "x"}}
        txn.put(space, partition, sort, records.pack(item, item_size(item)))
        txn.count(space, 0, item_size(item) - records.size_of(record))

    assert set(damage(engine, do)) == {
        "the entry does not hold what the item says",
        "the entry does not name an item",
    }


@pytest.mark.parametrize("projected", [{"v": {"S": "other"}}, {"more": {"S": "x"}}])
def test_an_index_entry_with_other_content_is_found(engine: MemoryEngine, projected: Item) -> None:
    def do(txn: Transaction, table: Table) -> None:
        space = table.indexes[1].space
        partition, sort, record = first(txn, space)
        item = {**records.item_of(record), **projected}
        txn.put(space, partition, sort, records.pack(item, item_size(item)))
        txn.count(space, 0, item_size(item) - records.size_of(record))

    assert damage(engine, do) == ["the entry does not hold what the item says"]


def test_the_order_of_attributes_is_no_damage(engine: MemoryEngine) -> None:
    def do(txn: Transaction, table: Table) -> None:
        space = table.indexes[1].space
        partition, sort, record = first(txn, space)
        item = dict(reversed(records.item_of(record).items()))
        txn.put(space, partition, sort, records.pack(item, item_size(item)))

    assert damage(engine, do) == []


def test_the_order_of_a_set_is_no_damage(engine: MemoryEngine) -> None:
    database = Database(engine, clock=ManualClock(NOW))
    for members in (["a", "b"], ["b", "a"]):
        item = {"p": {"S": "p"}, "k": {"S": "k"}, "g": {"S": "g"}, "v": {"SS": members}}
        database.execute("PutItem", {"TableName": "everything", "Item": item})
    assert problems(engine) == []


@pytest.mark.parametrize("what", ["table", "local", "global"])
@pytest.mark.parametrize("change", [(1, 0), (0, 1), (-1, -7)])
def test_wrong_totals_are_found(engine: MemoryEngine, what: str, change: tuple[int, int]) -> None:
    def do(txn: Transaction, table: Table) -> None:
        index = table.index(what)
        txn.count(table.space if index is None else index.space, *change)

    [message] = damage(engine, do)
    assert message.startswith("the totals are ")


def test_a_place_missing_in_the_expiry_queue_is_found(engine: MemoryEngine) -> None:
    def do(txn: Transaction, table: Table) -> None:
        expiry.forget(txn, ttl_of(table), next(expiry.queued(txn, ttl_of(table))))

    assert damage(engine, do) == [f"the item expires at {NOW + 100}, but the expiry queue does not hold it"]


def test_a_place_too_many_in_the_expiry_queue_is_found(engine: MemoryEngine) -> None:
    def do(txn: Transaction, table: Table) -> None:
        expiring: Item = {"ttl": {"N": str(NOW + 5)}}
        expiry.requeue(txn, ttl_of(table), b"p" * 24, b"k", None, expiring)
        _, partition, sort = next(expiry.queued(txn, ttl_of(table)))
        _, partition, sort = list(expiry.queued(txn, ttl_of(table)))[-1]
        expiry.requeue(txn, ttl_of(table), partition, sort, None, expiring)

    message = f"the expiry queue says {NOW + 5}, but no item here expires then"
    assert damage(engine, do) == [message, message]


def test_a_wrong_collection_size_is_found(engine: MemoryEngine) -> None:
    def do(txn: Transaction, table: Table) -> None:
        partition, sort, stored = first(txn, table.collection_space)
        txn.put(table.collection_space, partition, sort, str(int(stored) + 1).encode())

    [message] = damage(engine, do)
    assert message.startswith("the item collection's size is ")


def test_a_missing_collection_size_is_found(engine: MemoryEngine) -> None:
    def do(txn: Transaction, table: Table) -> None:
        partition, sort, _ = first(txn, table.collection_space)
        txn.delete(table.collection_space, partition, sort)

    [message] = damage(engine, do)
    assert message.startswith("the item collection's size is 0")


def test_the_size_of_a_collection_without_items_is_found(engine: MemoryEngine) -> None:
    def do(txn: Transaction, table: Table) -> None:
        txn.put(table.collection_space, b"p" * 24, b"", b"12")

    assert damage(engine, do) == ["there is a size for an item collection without items"]


def test_records_that_no_table_owns_are_found(engine: MemoryEngine) -> None:
    def do(txn: Transaction, table: Table) -> None:
        txn.put(catalog.new_space(txn), b"p", b"s", b"v")
        txn.put(catalog.new_space(txn) + 5, b"p", b"s", b"v")

    found = damage(engine, do)
    assert len(found) == 2
    assert all(message.endswith("holds records, but no table owns it") for message in found)


def test_records_that_no_table_owns_are_deleted_by_a_repair(engine: MemoryEngine) -> None:
    def do(txn: Transaction) -> None:
        for space in (catalog.new_space(txn), catalog.new_space(txn) + 5):
            txn.put(space, b"p", b"s", b"v")
            txn.count(space, 1, -3)

    engine.write(do)
    found = list(mending.mend(engine))
    assert [problem.orphan is not None for problem in found] == [True, True]
    assert problems(engine) == []


def test_a_repair_keeps_the_records_of_a_table_whose_definition_is_spoilt(engine: MemoryEngine) -> None:
    before = engine.read(lambda reader: catalog.open_any(reader, "everything", ""))
    spoilt = encode_definition(before)[:-1]
    engine.write(lambda txn: txn.put(CATALOG_SPACE, b"table", b"/everything", spoilt))
    assert list(mending.mend(engine)) == []
    assert engine.read(lambda reader: len(list(reader.scan_space(before.space))))
    assert any("no table owns it" in problem.message for problem in problems(engine))


def test_a_spoilt_definition_is_found(engine: MemoryEngine) -> None:
    def do(txn: Transaction, table: Table) -> None:
        txn.put(CATALOG_SPACE, b"table", b"/everything", encode_definition(table)[:-1])

    assert damage(engine, do)[0].startswith("the definition cannot be decoded")


def test_a_definition_under_another_name_is_found(engine: MemoryEngine) -> None:
    def do(txn: Transaction, table: Table) -> None:
        txn.put(CATALOG_SPACE, b"table", b"other", encode_definition(table))

    engine.write(lambda txn: do(txn, catalog.open_any(txn, "everything", "")))
    [problem] = problems(engine)
    assert (problem.table, problem.message) == (
        "other",
        "the definition stored under this name is that of everything",
    )


def test_tables_that_share_a_space_are_found(engine: MemoryEngine) -> None:
    def do(txn: Transaction, table: Table) -> None:
        catalog.save(txn, msgspec.structs.replace(table, name="twin"))

    engine.write(lambda txn: do(txn, catalog.open_any(txn, "everything", "")))
    shared = [one for one in problems(engine) if one.message.endswith("belongs to everything too")]
    assert len(shared) == 5
    assert all(one.table == "twin" for one in shared)


def test_a_counter_of_spaces_that_was_set_back_is_found(engine: MemoryEngine) -> None:
    def do(txn: Transaction, table: Table) -> None:
        txn.put(CATALOG_SPACE, b"next-space", b"", b"64")

    found = damage(engine, do)
    assert f"space {FIRST_TABLE_SPACE} is not below the next free one, 64" in found


def test_an_index_that_lags_is_compared_with_itself_only() -> None:
    engine = MemoryEngine()
    clock = ManualClock(NOW)
    database = Database(engine, clock=clock, settings=Settings(gsi_delay_seconds=10))
    create_table(database, "everything")
    fill(database, "everything")
    assert problems(engine) == []
    clock.advance(11)
    database.sweep()
    assert problems(engine) == []


def test_an_index_that_would_not_wait_for_its_waiting_changes_is_found_and_put_right() -> None:
    engine = MemoryEngine()
    clock = ManualClock(NOW)
    database = Database(engine, clock=clock, settings=Settings(gsi_delay_seconds=10))
    create_table(database, "everything")
    fill(database, "everything")
    table = engine.read(lambda reader: catalog.open_any(reader, "everything", ""))
    engine.write(lambda txn: lag.mark_indexes(txn, "everything", False))
    waiting = "changes of the index wait, but later ones would not wait for them"
    assert {problem.message for problem in problems(engine)} == {waiting}
    list(mending.mend(engine))
    assert engine.read(lambda reader: catalog.open_any(reader, "everything", "")) == table


def test_a_table_whose_index_is_half_filled_has_no_problems() -> None:
    engine = MemoryEngine()
    database = Database(engine, clock=ManualClock(NOW), settings=Settings(update_seconds=1))
    create_table(database, "everything")
    fill(database, "everything")
    database.execute("UpdateTable", new_index("everything", "late", "g"))
    assert problems(engine) == []


def test_a_problem_is_described_in_one_line() -> None:
    problem = Problem("orders", "it is broken", "by-date", b"\x01\xff", b"")
    assert str(problem) == "orders, index by-date, record 01ff/: it is broken"
    assert str(Problem("", "it is broken")) == "store: it is broken"
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.message = "all is well"  # type: ignore[misc]


def test_a_record_is_decoded_or_refused_with_a_reason() -> None:
    item: Item = {"p": {"S": "x"}}
    assert check.decoded(records.pack(item, 2)) == item
    with pytest.raises(ValueError, match="the header says 3 bytes, but the item has 2"):
        check.decoded(records.pack(item, 3))
    with pytest.raises(ValueError, match="cannot be decoded"):
        check.decoded(records.pack(item, 2)[:-1])


def test_an_index_that_was_being_filled_is_filled_from_the_beginning_by_a_repair(
    engine: MemoryEngine,
) -> None:
    """Its notes of changed items may be among what was lost."""

    def being_filled(txn: Transaction) -> None:
        table = catalog.open_any(txn, "everything", "")
        index = next(one for one in table.indexes if one.name == "global")
        filling = msgspec.structs.replace(index, backfilling=True, status="CREATING")
        catalog.save(txn, table.with_index(filling))
        # A build that had come to its end, and the only note that is left of it.
        build = backfill.build_of(filling)
        builds.note(txn, build, b"\x01" * PARTITION_BYTES, b"")
        txn.put(build.space, build.name, b"", b"\xff" * PARTITION_BYTES)

    before = engine.read(lambda reader: catalog.open_any(reader, "everything", ""))
    entries = next(index for index in before.indexes if index.name == "global")
    totals = engine.read(lambda reader: reader.totals(entries.space))
    assert totals.records
    engine.write(being_filled)
    found = [str(problem) for problem in mending.mend(engine)]
    assert found == ["everything, index global: the index was being filled, and is filled from the beginning"]
    assert problems(engine) == []
    assert not list(engine.read(lambda reader: list(reader.scan_space(BACKFILL_SPACE))))
    Database(engine, clock=ManualClock(NOW)).settle()
    after = engine.read(lambda reader: catalog.open_any(reader, "everything", ""))
    filled = next(index for index in after.indexes if index.name == "global")
    assert (filled.status, filled.backfilling) == ("ACTIVE", False)
    assert engine.read(lambda reader: reader.totals(filled.space)) == totals
    assert problems(engine) == []


def test_each_space_has_an_owner_that_check_can_name(engine: MemoryEngine) -> None:
    named = dict(engine.read(owners))
    fixed = {name: space for name, space in vars(spaces).items() if name.endswith("_SPACE")}
    del fixed["FIRST_TABLE_SPACE"]
    assert {name.removesuffix("_SPACE"): named.pop(space) for name, space in fixed.items()} == {
        "CATALOG": "the catalog",
        "TOKEN": "the tokens of transactions",
        "LAG": "the changes that wait for lagging indexes",
        "BACKFILL": "the progress of index builds",
        "HOLD": "the holds on items",
        "IMPORT": "the imports",
        "EXPORT": "the exports",
        "BACKUP": "the backups",
        "BULK": "the bulk operations",
        "SERVER": "the servers that share the background work",
        "CONSOLE": "what the users of the console saved",
        "DELIVERY": "the progress of deliveries to Kinesis",
        "ACCESS": "the access keys",
    }
    assert sorted(named.values()) == [
        "index global of everything",
        "index local of everything",
        "table everything",
        "the expiry queue of everything",
        "the sizes of item collections of everything",
    ]
