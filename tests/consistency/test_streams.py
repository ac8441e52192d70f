"""The judge of streams: each anomaly is found, and a sound history is not accused."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consistency import registers, transfers
from consistency.drawn import done, names, open_ended, refused
from consistency.history import Operation
from consistency.streams import NAME, fold, judge
from consistency.tables import INDEXES, KEY

TABLE: Final = "t"


def item(key: str, value: int) -> dict[str, Any]:
    return {KEY: {"S": key}, "value": {"N": str(value)}}


def record(number: int, key: str, old: int | None, new: int | None) -> dict[str, Any]:
    return {
        "number": str(number),
        "time": number,
        "event": "INSERT" if old is None else "REMOVE" if new is None else "MODIFY",
        "key": key,
        "old": None if old is None else item(key, old),
        "new": None if new is None else item(key, new),
    }


def page(shard: str, *records: dict[str, Any]) -> Operation:
    return done(NAME, "records", 90, 91, list(records), table=TABLE, shard=shard)


def content(*items: dict[str, Any]) -> dict[str, Any]:
    by_key = {one[KEY]["S"]: one for one in items}
    return {"items": by_key, "indexes": {"by-amount": {}, "by-value": dict(by_key)}}


def end(*items: dict[str, Any]) -> Operation:
    return done(NAME, "table", 92, 93, content(*items), table=TABLE)


def put(key: str, value: int, invoked: float, ended: float) -> Operation:
    return done(registers.NAME, "put", invoked, ended, key=key, value=value)


FIRST, SECOND = record(1, "a", None, 1), record(2, "a", 1, 2)
OTHER, GONE = record(3, "b", None, 3), record(4, "b", 3, None)
SOUND: Final = [
    [],
    [end()],
    [page("1", FIRST), page("2", OTHER), page("1", SECOND), page("2", GONE), end(item("a", 2))],
    [put("a", 1, 0, 2), put("a", 2, 1, 3), page("1", FIRST, SECOND), end(item("a", 2))],
    [put("a", 2, 0, 2), put("a", 1, 1, 3), page("1", FIRST, SECOND), end(item("a", 2))],
    [
        open_ended(registers.NAME, "put", 0, key="a", value=1),
        refused(registers.NAME, "put", 4, 5, key="a", value=7),
        put("a", 2, 1, 3),
        page("1", FIRST, SECOND),
        end(item("a", 2)),
    ],
]
WRONG: Final = [
    ("gap in a stream", [page("1", SECOND), end(item("a", 2))]),
    ("gap in a stream", [page("1", FIRST), page("2", record(2, "a", 0, 2)), end(item("a", 2))]),
    ("wrong end", [page("1", FIRST), end(item("a", 2))]),
    ("wrong end", [page("1", FIRST), end()]),
    ("wrong end", [page("1", FIRST, SECOND), end(item("a", 2), item("b", 1))]),
    ("wrong record", [page("1", {**FIRST, "event": "MODIFY"}), end(item("a", 1))]),
    ("wrong record", [page("1", FIRST, record(2, "a", 1, 1)), end(item("a", 1))]),
    ("out of order", [page("1", SECOND), page("1", FIRST), end(item("a", 2))]),
    ("out of order", [page("1", FIRST, {**SECOND, "time": 0}), end(item("a", 2))]),
    ("out of time", [put("a", 2, 0, 1), put("a", 1, 2, 3), page("1", FIRST, SECOND), end(item("a", 2))]),
    ("wrong index", [done(NAME, "table", 1, 2, {**content(), "indexes": content(item("a", 1))["indexes"]},
                          table=TABLE)]),
    ("wrong index", [page("1", FIRST), done(NAME, "table", 1, 2, {**content(item("a", 1)),
                     "indexes": content(item("a", 0))["indexes"]}, table=TABLE)]),
]  # fmt: skip


@pytest.mark.parametrize("history", SOUND)
def test_a_sound_history_is_not_accused(history: list[Operation]) -> None:
    assert judge(history) == []


@pytest.mark.parametrize(("name", "history"), WRONG)
def test_an_anomaly_is_found(name: str, history: list[Operation]) -> None:
    assert names(judge(history)) == {name}


def test_receipts_of_transfers_have_their_order() -> None:
    def receipt(number: int, name: str) -> dict[str, Any]:
        new = {KEY: {"S": name}, "times": {"N": "1"}}
        return {"number": str(number), "time": 1, "event": "INSERT", "key": name, "old": None, "new": new}

    records = [receipt(1, "receipt 1"), receipt(2, "receipt 2")]
    history = [
        done(transfers.NAME, "transfer", 0, 1, receipt="receipt 2"),
        done(transfers.NAME, "transfer", 2, 3, receipt="receipt 1"),
        page("1", *records),
        done(NAME, "table", 92, 93, {"items": fold(records)[0], "indexes": {name: {} for name in INDEXES}},
             table=TABLE),
    ]  # fmt: skip
    assert names(judge(history)) == {"out of time"}


changes = st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), min_size=1, max_size=12)


@given(drawn=changes, data=st.data())
def test_a_record_that_is_missing_or_there_twice_is_found(
    drawn: list[tuple[str, bool]], data: st.DataObject
) -> None:
    """A serial execution, in which one record of the stream is then lost, or doubled under a new number."""
    state: dict[str, int] = {}
    records: list[dict[str, Any]] = []
    for number, (key, removes) in enumerate(drawn):
        old, new = state.get(key), None if removes and key in state else number
        records.append(record(2 * number, key, old, new))
        state.pop(key, None)
        if new is not None:
            state[key] = new
    final = end(*(item(key, value) for key, value in state.items()))
    assert judge([page("1", *records), final]) == []
    place = data.draw(st.integers(0, len(records) - 1))
    assert judge([page("1", *records[:place], *records[place + 1 :]), final])
    later = deepcopy(records[place])
    later["number"] = str(2 * data.draw(st.integers(place, len(records) - 1)) + 1)
    assert judge([page("1", *records), page("2", later), final])
