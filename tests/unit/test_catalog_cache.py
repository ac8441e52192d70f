"""Decoded definitions are kept for the tables that exist, and not for those that were changed or deleted."""

from __future__ import annotations

from typing import Any

from hashrange.database import Database
from hashrange.tables.definitions import catalog


def create(database: Database, name: str) -> None:
    database.execute(
        "CreateTable",
        {
            "TableName": name,
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )


def test_definitions_that_are_gone_are_forgotten() -> None:
    with Database.in_memory() as database:
        for number in range(20):
            create(database, f"stays-{number}")
        for number in range(500):
            name = f"goes-{number}"
            create(database, name)
            database.settle()
            database.execute("DeleteTable", {"TableName": name})
            database.settle()
        for _ in range(2):
            database.sweep()
        assert len(catalog.decoded) <= 60


def test_definitions_in_use_are_decoded_once() -> None:
    with Database.in_memory() as database:
        for number in range(200):
            create(database, f"stays-{number}")
        database.settle()
        database.sweep()
        before = catalog.decoded.misses
        for _ in range(5):
            database.sweep()
            for number in range(200):
                answer: Any = database.execute("DescribeTable", {"TableName": f"stays-{number}"})
                assert answer["Table"]["TableStatus"] == "ACTIVE"
        assert catalog.decoded.misses == before


def test_between_two_sweeps_the_cache_is_bounded() -> None:
    kept: Any = catalog.Decoded(entries_max=10, decode=_itself)
    for number in range(1_000):
        text = str(number).encode()
        assert kept.get(text) == text
        assert kept.get(text) == text
        assert len(kept) <= 20
    assert kept.misses == 1_000


def _itself(text: bytes) -> Any:
    return text
