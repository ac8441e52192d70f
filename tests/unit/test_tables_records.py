"""The stored form of items, and how items of very many values are decoded without holding others up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange import pace
from hashrange.pace import turns
from hashrange.pace.workers import Workers
from hashrange.tables.items import records
from hashrange.values import Item

MANY: Item = {"p": {"S": "x"}, "l": {"L": [{"N": str(number)} for number in range(20_000)]}}
LONG: Item = {"p": {"S": "x"}, "s": {"S": "y" * 300_000}}


def on_a_worker(work: Callable[[], Any]) -> Any:
    """The result of `work` on a thread of the workers."""
    workers, ended, results = Workers(), threading.Event(), []

    def run() -> None:
        try:
            results.append(work())
        finally:
            ended.set()

    workers.start(run)
    assert ended.wait(30)
    workers.close()
    return results[0]


@pytest.mark.parametrize("item", [MANY, LONG])
def test_an_item_is_decoded_as_it_was_packed_wherever_it_is(item: Item) -> None:
    record = records.pack(item, 1)
    assert records.item_of(record) == item
    assert on_a_worker(lambda: records.item_of(record)) == item


NAMES = st.text(st.characters(codec="utf-8") | st.sampled_from('"\\\n\x7f/é😀'), max_size=5)
VALUES = st.sampled_from([{"S": '"p":{"S":"no"}'}, {"N": "-1.5E+30"}, {"B": "AAE="}, {"S": ""}])


@given(st.dictionaries(NAMES, VALUES, min_size=3, max_size=6), st.data())
def test_some_attributes_are_those_of_the_whole_item(item: dict[str, Any], data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(item)), min_size=1, max_size=3, unique=True))
    item["l"] = {"L": [{"M": dict(item)}]}
    record = records.pack(item, 1)
    shown = records.members_of(record, tuple(names))
    assert list(shown.items()) == [(name, item[name]) for name in names]


def test_work_can_be_stopped_between_the_large_items_of_an_answer() -> None:
    """The copies of a batch of 16 MB take 20 ms."""
    record = records.pack(LONG, 1)
    turn = pace.turn()
    turn.begin(-1.0)
    turns._watch.due = 0.0
    try:
        with pytest.raises(pace.TurnOver):
            records.fragment_of(record)
    finally:
        turn.end()
    assert orjson.loads(orjson.dumps(records.fragment_of(record))) == LONG


def test_what_is_shown_of_an_item_outlives_it() -> None:
    record = records.pack(MANY, 1)
    shown = on_a_worker(lambda: records.shown(record, lambda item: {"l": item["l"]}))
    assert shown == {"l": MANY["l"]}
    first = on_a_worker(lambda: records.shown(record, lambda item: {"l": {"L": item["l"]["L"][:1]}}))
    assert first == {"l": {"L": [{"N": "0"}]}}


@pytest.mark.parametrize("count", [1, 30_000, 130_000])
def test_an_item_of_many_values_is_not_decoded_on_the_event_loop(count: int) -> None:
    """No `pace.point` can divide its decoding, which would keep the loop for 25 ms."""
    item: Item = {"pk": {"S": "x" * 70_000}, "l": {"L": [{"N": str(n)} for n in range(count)]}}
    record = records.pack(item, 1)
    turn = pace.turn()
    turn.begin(3600.0)
    try:
        if count == 1:
            assert records.item_of(record) == item
        else:
            with pytest.raises(pace.TurnOver):
                records.item_of(record)
    finally:
        turn.end()
    assert records.item_of(record) == item
