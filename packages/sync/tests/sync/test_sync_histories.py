"""Random histories: see `histories`."""

from __future__ import annotations

import pytest

from hashrange_sync.items import Item
from sync.histories import CounterHistories, Histories, check
from sync.world import Places


def united(old: Item | None, ours: Item | None, theirs: Item | None) -> Item | None:
    """A merge: the attributes of both."""
    return {**(ours or {}), **(theirs or {})} or None


@pytest.mark.parametrize(
    "policy",
    ["cloud", "edge", "newest: a", f"merge: {__name__}:united"],
    ids=lambda policy: policy[:6].strip(": "),
)
def test_histories(places: Places, policy: str) -> None:
    check(lambda: Histories(places, conflicts=policy))


@pytest.mark.parametrize("mark", ["", "mark"], ids=["plain", "marked"])
def test_histories_of_counters(places: Places, mark: str) -> None:
    check(lambda: CounterHistories(places, mark))
