"""The checker of histories finds what it is there to find."""

from __future__ import annotations

from typing import Any

import pytest

from serializability import Transaction, anomalies


def committed(began: float, ended: float, reads: Any, appends: Any) -> Transaction:
    return Transaction(appends, began, reads, "committed", ended)


def test_a_serial_history_is_sound() -> None:
    history = [
        committed(0, 1, {1: []}, {1: 10}),
        committed(2, 3, {1: [10], 2: []}, {2: 20}),
        Transaction({1: 11}, 4.0),  # unknown, and there
        Transaction({1: 12}, 4.0),  # unknown, and not there
        Transaction({1: 13}, 4.0, {}, "failed", 5.0),
        committed(6, 7, {1: [10, 11], 2: [20]}, {}),
    ]
    assert anomalies(history, {1: [10, 11], 2: [20]}) == []


@pytest.mark.parametrize(
    ("history", "final", "words"),
    [
        ([committed(0, 1, {}, {1: 10})], {}, "lost"),
        ([Transaction({1: 10}, 0.0, {}, "failed", 1.0)], {1: [10]}, "failed is there"),
        ([Transaction({1: 10, 2: 20}, 0.0)], {1: [10]}, "in part"),
        ([committed(0, 1, {}, {1: 10})], {1: [10, 10]}, "twice"),
        ([committed(0, 1, {1: [9]}, {1: 10})], {1: [10]}, "no beginning"),
        # Write skew: each of two reads what the other one is about to append to.
        (
            [committed(0, 9, {1: [], 2: []}, {1: 10}), committed(0, 9, {1: [], 2: []}, {2: 20})],
            {1: [10], 2: [20]},
            "cycle",
        ),
        # A lost update: both read the empty list.
        ([committed(0, 9, {1: []}, {1: 10}), committed(0, 9, {1: []}, {1: 11})], {1: [10, 11]}, "cycle"),
        # A torn read: it sees one append of a transaction and not the other one.
        (
            [committed(0, 9, {}, {1: 10, 2: 20}), committed(0, 9, {1: [10], 2: []}, {})],
            {1: [10], 2: [20]},
            "cycle",
        ),
        # A stale read: the append had ended before the read began.
        ([committed(0, 1, {}, {1: 10}), committed(2, 3, {1: []}, {})], {1: [10]}, "cycle"),
    ],
)
def test_an_anomaly_is_found(history: list[Transaction], final: dict[int, list[int]], words: str) -> None:
    found = anomalies(history, final)
    assert found
    assert words in found[0]
