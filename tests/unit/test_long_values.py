"""Updates that put long lists together, and large sets: bounded in memory and time, and right all the same.

Lists that no item can hold are refused without being put together, and nothing else is.
"""

from __future__ import annotations

import tracemalloc
from base64 import b64decode, b64encode
from decimal import Decimal
from typing import Any

import pytest

from hashrange.expressions.substitutions import Substitutions
from hashrange.expressions.updates import update
from hashrange.limits import ITEM_BYTES_MAX
from hashrange.values import admit_item, item_size
from hashrange.values.compare import canonical, canonical_members

LONG: Any = {"L": [{"NULL": True}] * 100_000}
VALUE: Any = {":one": {"L": [{"N": "1"}]}}


def prepared(text: str) -> Any:
    return update(text, Substitutions(None, VALUE))


def test_lists_beyond_what_an_item_holds_take_no_memory() -> None:
    changes = prepared("SET " + ",".join(f"a{n}=list_append(l,l)" for n in range(150)))
    tracemalloc.start()
    try:
        after = changes.apply({"l": LONG})
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert item_size(after) > ITEM_BYTES_MAX
    assert peak_bytes < 20 << 20


def test_a_list_as_long_as_an_item_holds_is_put_together() -> None:
    changes = prepared("SET l = list_append(l, :one), " + ",".join(f"a{n} = :one" for n in range(20)))
    assert changes.apply({"l": LONG})["l"] == {"L": LONG["L"] + VALUE[":one"]["L"]}


@pytest.mark.parametrize("name", ["SS", "NS", "BS"])
def test_the_order_of_a_large_set_is_that_of_a_small_one(name: str) -> None:
    numbers = [(n * 7919) % 20_011 - 10_000 for n in range(20_011)]
    members = {
        "SS": [f"é{n}" if n % 3 else f"{n}" for n in numbers],
        "NS": [f"{n}e-2" for n in numbers],
        "BS": [b64encode(str(n).encode()).decode() for n in numbers],
    }[name]
    value: Any = {name: list(members)}
    admit_item({"pk": {"S": "x"}, "set": value})
    key: Any = {"SS": str.encode, "NS": Decimal, "BS": b64decode}[name]
    assert len(value[name]) == len(members)
    assert [key(member) for member in value[name]] == sorted(map(key, members))


def test_the_members_of_a_long_list_are_found_wherever_they_are() -> None:
    plain: list[Any] = [{"N": str(n)} for n in range(10_000)]
    mixed: list[Any] = [*plain, {"SS": ["b", "a"]}, {"M": {"y": {"S": "1"}, "x": {"NS": ["2", "1"]}}}]
    members = canonical_members(mixed)
    assert len(members) == len(mixed)
    assert members == frozenset(map(canonical, mixed))
    for wanted in ({"SS": ["a", "b"]}, {"M": {"x": {"NS": ["1", "2"]}, "y": {"S": "1"}}}, {"N": "9999"}):
        assert canonical(wanted) in members
    assert canonical({"N": "10000"}) not in members
