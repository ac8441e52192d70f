"""Decoded definitions are kept for the tables that exist, and not for those that were changed or deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hashrange.database import Database
from hashrange.tables.background import sweeps
from hashrange.tables.background.units import Background, Unit
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from worlds import create


def test_definitions_that_are_gone_are_forgotten() -> None:
    with Database.in_memory() as database:
        for number in range(20):
            create(database, f"stays-{number}", "pk")
        for number in range(500):
            name = f"goes-{number}"
            create(database, name, "pk")
            database.settle()
            database.execute("DeleteTable", {"TableName": name})
            database.settle()
        for _ in range(2):
            database.sweep()
        assert len(catalog.decoded) <= 60


def test_definitions_in_use_are_decoded_once() -> None:
    with Database.in_memory() as database:
        for number in range(200):
            create(database, f"stays-{number}", "pk")
        database.settle()
        database.sweep()
        before = catalog.decoded.misses
        for _ in range(5):
            database.sweep()
            for number in range(200):
                answer: Any = database.execute("DescribeTable", {"TableName": f"stays-{number}"})
                assert answer["Table"]["TableStatus"] == "ACTIVE"
        assert catalog.decoded.misses == before


def test_jobs_that_list_the_tables_while_a_sweep_does_let_go_of_none() -> None:
    """Jobs run beside the sweep, on a thread of their own."""
    with Database.in_memory() as database:
        for number in range(300):
            create(database, f"stays-{number}", "pk")
        database.settle()
        database.sweep()
        listed: list[int] = []

        def list_tables(tables: Callable[[], list[Table]]) -> Iterator[Unit]:
            listed.append(len(tables()))
            return iter(())

        def jobs() -> None:
            beside = Background()
            engine, clock = database.engine, database.clock
            lane = beside.aside["backups"]
            sweeps.sweep_aside(engine, clock.now, database.settings, beside, [list_tables], lane)

        database.background.pause = jobs
        before = catalog.decoded.misses
        database.background.forget()
        database.sweep_tables()
        assert 300 in listed
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
