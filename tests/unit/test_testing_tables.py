"""Tables in their short form, and items of values and files, made in a database."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hashrange.interchange.plain_json import NoItem, typed
from hashrange.testing import DeclarationError, LocalDatabase


@pytest.fixture
def database() -> Iterator[LocalDatabase]:
    with LocalDatabase(region="eu-west-1", account_id="111122223333") as database:
        yield database


def scanned(database: LocalDatabase, name: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = database.execute("Scan", {"TableName": name})["Items"]
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))


@pytest.mark.parametrize("key", ["", "pk:X", "a, b, c", "pk, pk:N", ", sk"])
def test_a_key_that_cannot_be_read(database: LocalDatabase, key: str) -> None:
    with pytest.raises(DeclarationError, match="is not a key"):
        database.create_table("tab", key)


WIRE = [
    {"pk": {"S": "a"}, "n": {"N": "1.10"}, "m": {"M": {"x": {"L": [{"BOOL": True}, {"NULL": True}]}}}},
    {"pk": {"S": "b"}},
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("typed.json", json.dumps(WIRE)),
        ("scanned.json", json.dumps({"Items": WIRE, "Count": 2})),
        ("exported.jsonl", "\n".join(json.dumps({"Item": item}) for item in WIRE) + "\n\n"),
        ("requests.json", json.dumps([{"PutRequest": {"Item": item}} for item in WIRE])),
        ("plain.json", '[{"pk": "a", "n": 1.10, "m": {"x": [true, null]}}, {"pk": "b"}]'),
        ("batch.json", json.dumps({"tab": [{"PutRequest": {"Item": item}} for item in WIRE], "other": []})),
        ("unpacked.json", "\n".join(json.dumps({"Item": item}) for item in WIRE)),
        ("export.json.gz", "\n".join(json.dumps({"Item": item}) for item in WIRE)),
        ("seed", json.dumps({"tab": [{"PutRequest": {"Item": item}} for item in WIRE]}, indent=2)),
        ("plain.jsonl", '{"pk": "a", "n": 1.10, "m": {"x": [true, null]}}\n{"pk": "b"}'),
    ],
)
def test_items_of_json_files(database: LocalDatabase, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    database.create_table("tab", "pk")
    assert database.load("tab", tmp_path / name) == 2
    assert scanned(database, "tab") == [
        {"pk": {"S": "a"}, "n": {"N": "1.1"}, "m": {"M": {"x": {"L": [{"BOOL": True}, {"NULL": True}]}}}},
        {"pk": {"S": "b"}},
    ]


def test_numbers_of_plain_json_keep_their_digits(database: LocalDatabase, tmp_path: Path) -> None:
    (tmp_path / "items.json").write_text('[{"pk": "a", "n": 0.1234567890123456789012345678901234567}]')
    database.create_table("tab", "pk")
    database.load("tab", str(tmp_path / "items.json"))
    assert scanned(database, "tab")[0]["n"] == {"N": "0.1234567890123456789012345678901234567"}


def test_items_of_a_csv(database: LocalDatabase, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(
        '\ufeffpk,sk,title,price:N,sold:BOOL\na,1,"one, two",1.50,TRUE\nb,2,,,\n\nc,3,x\n', encoding="utf-8"
    )
    database.create_table("tab", "pk, sk:N")
    assert database.load("tab", tmp_path / "items.csv") == 3
    assert scanned(database, "tab") == [
        {
            "pk": {"S": "a"},
            "sk": {"N": "1"},
            "title": {"S": "one, two"},
            "price": {"N": "1.5"},
            "sold": {"BOOL": True},
        },
        {"pk": {"S": "b"}, "sk": {"N": "2"}},
        {"pk": {"S": "c"}, "sk": {"N": "3"}, "title": {"S": "x"}},
    ]


def test_items_of_python_values(database: LocalDatabase) -> None:
    database.create_table("tab", "pk")
    database.load(
        "tab",
        [
            {"pk": "a", "f": 0.5, "d": Decimal("1E2"), "b": b"\x00", "l": (1, None), "s": {"y", "x"}},
            {"pk": {"S": "b"}},
            {"pk": "c", "m": {"S": "not typed, because pk is not"}},
        ],
    )
    items = {item["pk"]["S"]: item for item in scanned(database, "tab")}
    assert items["a"] == {
        "pk": {"S": "a"},
        "f": {"N": "0.5"},
        "d": {"N": "100"},
        "b": {"B": "AA=="},
        "l": {"L": [{"N": "1"}, {"NULL": True}]},
        "s": {"SS": ["x", "y"]},
    }
    assert items["b"] == {"pk": {"S": "b"}}
    assert items["c"]["m"] == {"M": {"S": {"S": "not typed, because pk is not"}}}


@pytest.mark.parametrize("value", [object(), {1, "a"}, set(), {None}, range(3)])
def test_values_that_no_attribute_has(value: object) -> None:
    with pytest.raises(NoItem):
        typed(value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("items.json", '{"other": [{"PutRequest": {"Item": {}}}]}', "the items are for other"),
        ("items.json", "[1]", "an item is an object"),
        ("items.json", "[", r"items\.json"),
        ("items.csv", "", "the first line"),
        ("items.csv", "a,b\n1,2,3\n", "line 2 has 3 fields, the header 2"),
        ("items.txt", "", r"name a CSV \.csv"),
    ],
)
def test_items_that_cannot_be_read_are_named(
    database: LocalDatabase, tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    database.create_table("tab", "a")
    with pytest.raises(DeclarationError, match=message):
        database.load("tab", tmp_path / name)


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [("itmes", "items"), ("index", "indexes"), ("billingMode", "BillingMode"), ("TTL", "ttl"), ("xyz", None)],
)
def test_a_misspelt_member_is_refused(database: LocalDatabase, misspelt: str, meant: str | None) -> None:
    named: dict[str, Any] = {misspelt: []}
    with pytest.raises(DeclarationError, match=meant or "there are name, key, indexes") as caught:
        database.create_table("tab", "pk", **named)
    assert repr(misspelt) in str(caught.value)
    assert database.execute("ListTables", {})["TableNames"] == []


def test_items_and_members_of_create_table_are_taken(database: LocalDatabase) -> None:
    database.create_table("tab", "pk", items=[{"pk": {"S": "a"}}], DeletionProtectionEnabled=True)
    assert database.execute("Scan", {"TableName": "tab"})["Count"] == 1
    assert database.execute("DescribeTable", {"TableName": "tab"})["Table"]["DeletionProtectionEnabled"]
