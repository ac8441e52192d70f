"""Read and write units, and the ConsumedCapacity of an answer."""

from __future__ import annotations

import pytest

from hashrange.tables.definitions.table import Index, KeyAttribute, KeySchema, Table
from hashrange.tables.items import capacity
from hashrange.tables.items.capacity import Consumed, WriteUnits

_KEY = KeySchema((KeyAttribute("p", "S"),))
TABLE = Table(
    "t", "id", 1, 0.0, _KEY, {"p": "S"},
    (Index("local", False, 2, _KEY, "ALL"), Index("global", True, 3, _KEY, "ALL")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("size", "units"), [(0, 1), (1, 1), (1024, 1), (1025, 2), (3 * 1024, 3), (400 * 1024, 400)]
)
def test_write_units(size: int, units: int) -> None:
    assert capacity.write_units(size) == units


@pytest.mark.parametrize(("size", "units"), [(0, 1), (1, 1), (4096, 1), (4097, 2), (400 * 1024, 100)])
def test_read_units(size: int, units: int) -> None:
    assert capacity.read_units(size, consistent=True) == units
    assert capacity.read_units(size, consistent=False) == units / 2


def test_totals_of_a_write() -> None:
    consumed = Consumed("t", writes=True)
    consumed.add_write(TABLE, WriteUnits(3, {"local": 1, "global": 2}))
    consumed.add_write(TABLE, WriteUnits(1, {"global": 1}))
    assert consumed.wire("TOTAL") == {"TableName": "t", "CapacityUnits": 8.0}
    assert consumed.wire("INDEXES") == {
        "TableName": "t",
        "CapacityUnits": 8.0,
        "Table": {"CapacityUnits": 4.0},
        "LocalSecondaryIndexes": {"local": {"CapacityUnits": 1.0}},
        "GlobalSecondaryIndexes": {"global": {"CapacityUnits": 3.0}},
    }


def test_a_transaction_costs_double_on_the_table_and_splits() -> None:
    consumed = Consumed("t", writes=True)
    consumed.add_write(TABLE, WriteUnits(2, {"global": 1}), 2)
    assert consumed.wire("INDEXES", splits=True) == {
        "TableName": "t",
        "CapacityUnits": 5.0,
        "WriteCapacityUnits": 5.0,
        "Table": {"CapacityUnits": 4.0, "WriteCapacityUnits": 4.0},
        "GlobalSecondaryIndexes": {"global": {"CapacityUnits": 1.0, "WriteCapacityUnits": 1.0}},
    }


def test_a_read_of_an_index_shows_the_table_too() -> None:
    consumed = Consumed("t", writes=True)
    consumed.add_index("global", 0.5, is_global=True)
    shown = consumed.wire("INDEXES")
    assert shown["Table"] == {"CapacityUnits": 0.0}
    assert shown["GlobalSecondaryIndexes"] == {"global": {"CapacityUnits": 0.5}}


@pytest.mark.parametrize(
    ("request_", "mode"),
    [
        ({}, None),
        ({"ReturnConsumedCapacity": "NONE"}, None),
        ({"ReturnConsumedCapacity": "TOTAL"}, "TOTAL"),
        ({"ReturnConsumedCapacity": "INDEXES"}, "INDEXES"),
    ],
)
def test_capacity_is_reported_on_request(request_: dict[str, str], mode: str | None) -> None:
    assert capacity.wanted(request_, billed=False) == mode
    assert capacity.wanted(request_, billed=True) == (mode or capacity.SILENT)
