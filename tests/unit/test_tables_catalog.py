"""Tables by name, and the numbers of their spaces."""

from __future__ import annotations

import pytest

from hashrange.errors import ResourceNotFoundException
from hashrange.storage.api import Transaction
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import (
    Index,
    KeyAttribute,
    KeySchema,
    Table,
    TimeToLive,
    decode,
    encode,
)

_KEY = KeySchema((KeyAttribute("p", "S"),))
NOW = 1_000.0


def table(name: str, space: int = 64, **more: object) -> Table:
    return Table(name, "id", space, NOW, _KEY, {"p": "S"}, **more)  # type: ignore[arg-type]


@pytest.fixture
def engine() -> MemoryEngine:
    engine = MemoryEngine()
    for name in ("b", "a", "a.a", "a-a", "c"):
        engine.write(lambda txn, name=name: catalog.save(txn, table(name)))  # type: ignore[misc]
    return engine


def test_names_come_in_order_and_go_on_behind_one(engine: MemoryEngine) -> None:
    assert engine.read(lambda reader: list(catalog.names(reader, ""))) == ["a", "a-a", "a.a", "b", "c"]
    assert engine.read(lambda reader: list(catalog.names(reader, "", "a-a"))) == ["a.a", "b", "c"]
    assert engine.read(lambda reader: list(catalog.names(reader, "", "a-"))) == ["a-a", "a.a", "b", "c"]
    assert engine.read(lambda reader: list(catalog.names(reader, "", "c"))) == []


def test_a_definition_survives_being_stored() -> None:
    index = Index("i", True, 65, _KEY, "INCLUDE", ("v",))
    full = table("t", indexes=(index,), ttl=TimeToLive("ttl", NOW, 66), tags={"k": "v"}, gone_at=2.5)
    assert decode(encode(full)) == full


def test_the_data_plane_opens_active_tables_only(engine: MemoryEngine) -> None:
    def change(txn: Transaction) -> None:
        catalog.save(txn, table("young", 70, creating_until=NOW + 10))
        catalog.save(txn, table("old", gone_at=NOW + 10))

    engine.write(change)
    assert engine.read(lambda reader: catalog.open_active(reader, "a", "")).name == "a"
    for name, message in (
        # [report] all
        ("none", "Requested resource not found"),
        ("young", "Requested resource not found"),
        ("old", "Requested resource not found"),
    ):
        with pytest.raises(ResourceNotFoundException) as caught:
            engine.read(lambda reader, name=name: catalog.open_active(reader, name, ""))  # type: ignore[misc]
        assert caught.value.message == message
    assert engine.read(lambda reader: catalog.open_any(reader, "young", "")).status == "CREATING"
    assert engine.read(lambda reader: catalog.open_any(reader, "old", "")).status == "DELETING"


def test_a_table_that_is_none_cannot_be_opened(engine: MemoryEngine) -> None:
    with pytest.raises(ResourceNotFoundException) as caught:
        engine.read(lambda reader: catalog.open_any(reader, "old", ""))
    # [report]
    assert caught.value.message == "Requested resource not found: Table: old not found"


def test_space_numbers_are_never_given_twice(engine: MemoryEngine) -> None:
    spaces = [engine.write(catalog.new_space) for _ in range(3)]
    assert spaces == [64, 65, 66]
    assert engine.read(catalog.spaces_end) == 67


def test_removing_a_table_removes_all_its_records() -> None:
    engine = MemoryEngine()
    index = Index("i", False, 65, _KEY, "ALL")
    whole = table("t", 64, indexes=(index,), collection_space=66, ttl=TimeToLive("ttl", NOW, 67))

    def fill(txn: Transaction) -> None:
        catalog.save(txn, whole)
        for space in catalog.spaces_of(whole):
            txn.put(space, b"p", b"s", b"v")
            txn.count(space, 1, 1)

    engine.write(fill)
    engine.write(lambda txn: catalog.remove(txn, whole, NOW))
    assert engine.read(lambda reader: catalog.find(reader, "t", "")) is None
    for space in (64, 65, 66, 67):
        assert engine.read(lambda reader, space=space: list(reader.scan_space(space))) == []  # type: ignore[misc]
        assert engine.read(lambda reader, space=space: reader.totals(space)) == (0, 0)  # type: ignore[misc]
