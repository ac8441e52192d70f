"""Index entries: where they lie, what they hold, and totals while an index is being filled."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hashrange.clock import ManualClock
from hashrange.database import Database, Settings
from hashrange.errors import ValidationException
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.background import sweeps
from hashrange.tables.definitions.table import Index, KeyAttribute, KeySchema, Table
from hashrange.tables.inspection import check
from hashrange.tables.items import indexes, keys, records
from hashrange.values import Item, item_size
from worlds import create, new_index

_P, _K, _G = KeyAttribute("p", "S"), KeyAttribute("k", "S"), KeyAttribute("g", "S")
LOCAL = Index("local", False, 2, KeySchema((_P,), (_G,)), "KEYS_ONLY")
GLOBAL = Index("global", True, 3, KeySchema((_G,), (KeyAttribute("h", "N"),)), "INCLUDE", ("v", "w"))
WHOLE = Index("whole", True, 4, KeySchema((_G,)), "ALL")
TABLE = Table(
    "t", "id", 1, 0.0, KeySchema((_P,), (_K,)), {"p": "S", "k": "S", "g": "S", "h": "N"},
    (LOCAL, GLOBAL, WHOLE),
)  # fmt: skip
ITEM: Item = {**{name: {"S": name * 2} for name in "pkgvz"}, "h": {"N": "1"}}


def entry_of(index: Index, item: Item) -> indexes.Entry | None:
    record = records.pack(item, item_size(item))
    return indexes.entry_of(TABLE, index, item, *keys.address_of_item(TABLE.key, item), record)


@pytest.mark.parametrize(
    ("index", "names"),
    [(LOCAL, "pkg"), (GLOBAL, "pkghv"), (WHOLE, "pkghvz")],
    ids=["keys only", "included", "all"],
)
def test_an_entry_holds_what_is_projected(index: Index, names: str) -> None:
    entry = entry_of(index, ITEM)
    assert entry is not None
    held = records.item_of(entry.record)
    assert held == {name: ITEM[name] for name in names}
    assert entry.size == item_size(held) == records.size_of(entry.record)


def test_a_local_entry_lies_in_its_items_partition() -> None:
    partition, _ = keys.address_of_item(TABLE.key, ITEM)
    local, other = entry_of(LOCAL, ITEM), entry_of(GLOBAL, ITEM)
    assert local is not None
    assert other is not None
    assert local.partition == partition != other.partition


@pytest.mark.parametrize("missing", ["g", "h"])
def test_an_item_without_a_key_attribute_has_no_entry(missing: str) -> None:
    item = {name: value for name, value in ITEM.items() if name != missing}
    assert entry_of(GLOBAL, item) is None


@pytest.mark.parametrize("value", [{"N": "1"}, {"S": ""}, {"NULL": True}])
def test_an_attribute_that_is_no_key_has_no_entry(value: dict[str, Any]) -> None:
    # Such items are there when an index is created over them; new ones are refused.
    assert entry_of(WHOLE, {**ITEM, "g": value}) is None
    with pytest.raises(ValidationException):
        indexes.check_item(TABLE, {**ITEM, "g": value})


@pytest.mark.parametrize(("name", "bytes_"), [("g", 2049)])
def test_index_keys_are_limited_in_bytes(name: str, bytes_: int) -> None:
    long = {**ITEM, name: {"S": "x" * bytes_}}
    with pytest.raises(ValidationException, match="Index Key g Actual Size: 2049 bytes Max Size: 2048 bytes"):
        indexes.check_item(TABLE, long)
    assert entry_of(WHOLE, long) is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"N": "1"}, "secondary index key to unsupported type"),
        ({"S": "x" * 2049}, "secondary index key beyond allowed size limits"),
    ],
)
def test_what_lay_there_before_the_index_is_in_the_way_of_updates(
    value: dict[str, Any], message: str
) -> None:
    # [docs] GSI.OnlineOps.ViolationDetection: once the index is filled, writes of such items are rejected.
    before = {**ITEM, "g": value}
    with pytest.raises(ValidationException, match=message):
        indexes.check_update(TABLE, before, {**before, "x": {"S": "1"}})
    filling = msgspec.structs.replace(
        TABLE, indexes=tuple(msgspec.structs.replace(index, backfilling=True) for index in TABLE.indexes)
    )
    indexes.check_update(filling, before, {**before, "x": {"S": "1"}})
    indexes.check_update(TABLE, before, ITEM)


CREATE = new_index("table", "by-g", "g")


@pytest.mark.parametrize("lag", [0.0, 5.0])
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_totals_are_right_after_items_change_while_an_index_fills(
    monkeypatch: pytest.MonkeyPatch, lag: float, steps: int
) -> None:
    """An item that the filling has not reached yet has no entry: changing it must not count one as gone."""
    monkeypatch.setattr(sweeps, "BITE_ITEMS", 3)
    clock = ManualClock()
    database = Database(
        MemoryEngine(), clock=clock, settings=Settings(update_seconds=1.0, gsi_delay_seconds=lag)
    )
    create(database, "table", "p:N")

    def put(number: int, value: str) -> None:
        item = {"p": {"N": str(number)}, "g": {"S": value}, "v": {"S": value * number}}
        database.execute("PutItem", {"TableName": "table", "Item": item})

    for number in range(12):
        put(number, "before")
    database.execute("UpdateTable", CREATE)
    for _ in range(steps):
        database.sweep()
    for number in range(0, 12, 2):
        put(number, "after")
    for number in (3, 7):
        database.execute("DeleteItem", {"TableName": "table", "Key": {"p": {"N": str(number)}}})
    put(20, "new")
    assert list(check.check(database.engine)) == []
    clock.advance(10)
    database.settle()
    assert list(check.check(database.engine)) == []
    described = database.execute("DescribeTable", {"TableName": "table"})["Table"]
    [index] = described["GlobalSecondaryIndexes"]
    assert index["IndexStatus"] == "ACTIVE"
    assert (index["ItemCount"], index["IndexSizeBytes"]) == (11, described["TableSizeBytes"])
