"""The types of columns, which fit every row."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest

from hashrange_sql.shapes import NAMES_MAX, columns_of

Json = dict[str, Any]


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as database:
        yield database


def columns(database: duckdb.DuckDBPyConnection, *values: Json) -> tuple[str, list[Any], list[str]]:
    """The type of an attribute with such values, how they are shown, and what is told."""
    database.execute("create or replace table raw (item json)")
    for value in values:
        database.execute("insert into raw values (?)", [orjson.dumps({"a": value}).decode()])
    found = columns_of(lambda sql: database.execute(sql).fetchall(), "raw")
    selected = f"select {found.sql['a']} as a from {found.source}"
    [(_, type_, *_)] = database.execute(f"describe {selected}").fetchall()
    return type_, [row[0] for row in database.execute(selected).fetchall()], found.told


@pytest.mark.parametrize(
    ("values", "type_", "shown"),
    [
        ([{"S": "x"}, {"NULL": True}], "VARCHAR", ["x", None]),
        ([{"NULL": True}], "VARCHAR", [None]),
        ([{"BOOL": True}, {"BOOL": False}], "BOOLEAN", [True, False]),
        ([{"B": "YWI="}], "BLOB", [b"ab"]),
        ([{"N": "-1.25"}, {"N": "300"}], "DECIMAL(38,2)", [Decimal("-1.25"), Decimal(300)]),
        ([{"N": "1" * 38}], "DECIMAL(38,0)", [Decimal("1" * 38)]),
        ([{"N": "0." + "0" * 36 + "1"}], "DECIMAL(38,37)", [Decimal("1E-37")]),
        ([{"SS": ["a", "b"]}], "VARCHAR[]", [["a", "b"]]),
        ([{"NS": ["1", "2.5"]}], "DECIMAL(38,1)[]", [[Decimal(1), Decimal("2.5")]]),
        ([{"BS": ["YWI="]}], "BLOB[]", [[b"ab"]]),
        (
            [{"L": [{"N": "1"}, {"N": "2.5"}]}, {"L": []}],
            "DECIMAL(38,1)[]",
            [[Decimal(1), Decimal("2.5")], []],
        ),
        ([{"L": []}], "VARCHAR[]", [[]]),
        (
            [{"M": {"x": {"S": "1"}, "y/z": {"L": [{"M": {"n": {"N": "2.50"}}}]}}}, {"M": {"x": {"S": "2"}}}],
            'STRUCT(x VARCHAR, "y/z" STRUCT(n DECIMAL(38,2))[])',
            [{"x": "1", "y/z": [{"n": Decimal("2.50")}]}, {"x": "2", "y/z": None}],
        ),
    ],
)
def test_a_type_fits_every_row(
    database: duckdb.DuckDBPyConnection, values: list[Json], type_: str, shown: list[Any]
) -> None:
    assert columns(database, *values) == (type_, shown, [])


@pytest.mark.parametrize(
    ("values", "type_", "shown", "told"),
    [
        ([{"N": "1E+100"}, {"N": "1"}], "DOUBLE", [1e100, 1.0], "a: numbers that do not fit"),
        ([{"N": "1" * 30}, {"N": "0." + "1" * 10}], "DOUBLE", [float("1" * 30), 0.1111111111], "a: numbers"),
        ([{"S": "x"}, {"N": "1.50"}, {"BOOL": True}], "VARCHAR", ["x", "1.50", "true"], "a: several types"),
        ([{"L": [{"S": "x"}, {"N": "1"}]}], "VARCHAR[]", [["x", "1"]], r"a[*]: several types"),
        ([{"M": {"x": {"N": "1E+99"}}}], "STRUCT(x DOUBLE)", [{"x": 1e99}], "a.x: numbers"),
        ([{"S": "x"}, {"SS": ["y"]}], "JSON", ['{"S":"x"}', '{"SS":["y"]}'], "a: shown as JSON"),
        (
            [{"M": {"x": {"S": "1"}, "X": {"S": "2"}}}],
            "JSON",
            ['{"M":{"x":{"S":"1"},"X":{"S":"2"}}}'],
            "a: shown",
        ),
        ([{"M": {}}], "JSON", ['{"M":{}}'], "a: shown as JSON"),
        (
            [{"M": {str(name): {"S": "1"} for name in range(NAMES_MAX + 1)}}],
            "JSON",
            [orjson.dumps({"M": {str(name): {"S": "1"} for name in range(NAMES_MAX + 1)}}).decode()],
            "a: shown",
        ),
    ],
)
def test_what_has_no_exact_type_is_told(
    database: duckdb.DuckDBPyConnection, values: list[Json], type_: str, shown: list[Any], told: str
) -> None:
    found = columns(database, *values)
    assert found[:2] == (type_, shown)
    assert len(found[2]) == 1
    assert found[2][0].startswith(told)


def test_names_of_any_form(database: duckdb.DuckDBPyConnection) -> None:
    item: Json = {name: {"S": name} for name in ('a"b', "a'b", "a/b~c", "a.b", "1", "é", "$.x", "A b")}
    item |= {"A.B": {"S": "other"}, "m": {"M": {'x"y': {"N": "1"}}}}
    database.execute("create or replace table raw (item json)")
    database.execute("insert into raw values (?)", [orjson.dumps(item).decode()])
    found = columns_of(lambda sql: database.execute(sql).fetchall(), "raw")
    assert found.told == ["A.B: left out, because it differs from a.b in case only"]
    row = database.execute(f"select {', '.join(found.sql.values())} from {found.source}").fetchone()
    assert row == (*(name for name in item if name not in ("A.B", "m")), {'x"y': Decimal(1)})


def test_the_memory_does_not_grow_with_the_items(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "items.duckdb") as database:
        database.execute("set memory_limit = '64MB'")
        database.execute("set threads = 1")
        note = "x" * 400
        item = f"""'{{"id": {{"N": "' || i || '"}}, "note": {{"S": "{note}"}}}}'"""
        database.execute(f"create table raw as select cast({item} as json) as item from range(60_000) t(i)")
        found = columns_of(lambda sql: database.execute(sql).fetchall(), "raw")
        assert [*found.sql] == ["id", "note"]
        with pytest.raises(duckdb.OutOfMemoryException):
            database.execute("select json_group_structure(item) from raw")
