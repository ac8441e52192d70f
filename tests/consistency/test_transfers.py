"""The judge of transfers: each anomaly is found, and a sound history is not accused."""

from __future__ import annotations

from typing import Any

import pytest

from consistency.drawn import done, names, open_ended, refused
from consistency.history import Operation
from consistency.transfers import NAME, judge

MADE: dict[str, Any] = {"giver": 0, "taker": 1, "amount": 10}


def ended(amounts: list[int], receipts: dict[str, int]) -> list[Operation]:
    return [done(NAME, "receipts", 50, 51, receipts), done(NAME, "read", 52, 53, amounts)]


def transfer(number: int) -> dict[str, Any]:
    return {**MADE, "receipt": f"receipt {number}"}


SOUND = [
    [
        done(NAME, "transfer", 0, 1, **transfer(1)),
        refused(NAME, "transfer", 0, 1, **transfer(2)),
        open_ended(NAME, "transfer", 0, **transfer(3)),
        open_ended(NAME, "transfer", 0, **transfer(4)),
        done(NAME, "read", 2, 3, [90, 110, 100, 100, 100]),
        *ended([80, 120, 100, 100, 100], {"receipt 1": 1, "receipt 3": 1}),
    ],
    [],
]
WRONG = [
    ("torn read", [done(NAME, "read", 2, 3, [90, 100, 100, 100, 100])]),
    ("torn read", [done(NAME, "read", 2, 3, [100, None, 100, 100, 100])]),
    ("overdraft", [done(NAME, "read", 2, 3, [-10, 210, 100, 100, 100])]),
    ("lost", [done(NAME, "transfer", 0, 1, **transfer(1)), *ended([100] * 5, {})]),
    (
        "aborted write",
        [
            refused(NAME, "transfer", 0, 1, **transfer(1)),
            *ended([90, 110, 100, 100, 100], {"receipt 1": 1}),
        ],
    ),
    (
        "carried out twice",
        [
            open_ended(NAME, "transfer", 0, **transfer(1)),
            *ended([80, 120, 100, 100, 100], {"receipt 1": 2}),
        ],
    ),
    ("torn write", [open_ended(NAME, "transfer", 0, **transfer(1)), *ended([100] * 5, {"receipt 1": 1})]),
    (
        "torn write",
        [open_ended(NAME, "transfer", 0, **transfer(1)), *ended([90, 110, 100, 100, 100], {})],
    ),
    ("phantom", ended([100] * 5, {"receipt 9": 1})),
]


@pytest.mark.parametrize("history", SOUND)
def test_a_sound_history_is_not_accused(history: list[Operation]) -> None:
    assert judge(history) == []


@pytest.mark.parametrize(("name", "history"), WRONG)
def test_an_anomaly_is_found(name: str, history: list[Operation]) -> None:
    assert names(judge(history)) == {name}
