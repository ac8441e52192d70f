"""What a first copy takes for granted, and what happens if somebody writes at any moment of it."""

from __future__ import annotations

from functools import partial

import pytest

from hashrange_sync.items import digest
from hashrange_sync.stored import table
from hashrange_sync.stored.table import Held
from sync.test_sync_behaviours import equal, text
from sync.world import Places, Users, World, before, performed, texts

KEYS = [f"k{number}" for number in range(4)]


def put_all(users: Users, value: str) -> None:
    for key in KEYS:
        users.put(key, a=value)


def copying(places: Places, side: str) -> tuple[World, Users, Users]:
    """A pair of which only one side has items; its users and the others."""
    world = World(places, conflicts=side)
    ours, theirs = (world.cloud, world.edge) if side == "cloud" else (world.edge, world.cloud)
    put_all(ours, "1")
    return world, ours, theirs


@pytest.mark.parametrize("side", ["cloud", "edge"])
def test_what_cannot_be_there_is_not_read(places: Places, side: str) -> None:
    world, _, _ = copying(places, side)
    world.once()
    assert equal(world)
    operations = [operation for _, operation in world.requests]
    assert "batch_get_item" not in operations
    assert operations.count("scan") == 8  # (four segments of each side, once)


def moments(places: Places, side: str) -> range:
    """The requests of a first copy by their numbers, from the first scan on, until all was written."""
    world, _, _ = copying(places, side)
    world.once()
    operations = [operation for _, operation in world.requests]
    last = len(operations) - operations[::-1].index("scan")
    return range(operations.index("scan") + 1, last + 5)


@pytest.mark.parametrize("side", ["cloud", "edge"])
def test_somebody_writes_to_the_empty_side(places: Places, side: str) -> None:
    for number in moments(places, side):
        world, _, theirs = copying(places, side)
        world.meets(number, before(partial(put_all, theirs, "late"), performed))
        world.once()
        assert equal(world), number
        for key in KEYS:
            item = world.cloud.get(key)
            logged = [conflict for conflict in world.log() if conflict.key["pk"]["S"] == key]
            known = texts(item).union(*(texts(one.cloud) | texts(one.edge) for one in logged))
            assert "late" in known | theirs.replaced, number
            assert "1" in known | theirs.replaced, number


@pytest.mark.parametrize("side", ["cloud", "edge"])
def test_what_was_scanned_ahead_changes(places: Places, side: str) -> None:
    for number in moments(places, side):
        world, ours, _ = copying(places, side)
        world.meets(number, before(partial(put_all, ours, "2"), performed))
        world.once()
        assert equal(world), number
        assert {text(world.cloud.get(key)) for key in KEYS} == {"2"}, number
        assert world.log() == [], number


def test_which_items_may_have_a_state() -> None:
    held = Held()
    marks = [digest({"pk": {"N": str(number)}}) for number in range(40_000)]
    for mark in marks[::2]:
        held.add(mark)
    assert all(mark in held for mark in marks[::2])
    assert sum(mark in held for mark in marks[1::2]) < 5


def test_forgotten_states_are_read(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_RECENT_MAX", 4)
    world, ours, theirs = copying(places, "cloud")
    world.once()
    for number, users in enumerate((ours, theirs)):
        for key in KEYS:
            users.set(key, b=str(number))
        world.once()
        assert equal(world)
    assert world.log() == []
    assert ("edge", "batch_get_item") in world.requests
