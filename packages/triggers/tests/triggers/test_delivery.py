"""What happens to a batch, without a stream: retries, halves, partial failures, age."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange_triggers.delivery import Attempt, Lane, Policy, delivered_of
from hashrange_triggers.events import Record


def record(number: int, created: float = 0.0) -> Record:
    return {"dynamodb": {"SequenceNumber": str(number), "ApproximateCreationDateTime": created}}


def numbers(records: list[Record]) -> list[int]:
    return [int(record["dynamodb"]["SequenceNumber"]) for record in records]


class Outcome:
    """Runs a lane to its end, on a clock that jumps to when the next attempt is due."""

    def __init__(self, batches: list[list[Record]], policy: Policy, function: Any, now: float = 0.0) -> None:
        self.calls: list[tuple[float, list[int]]] = []
        self.discarded: list[tuple[list[int], str, int]] = []
        self.attempts: list[Attempt] = []
        lane = Lane(batches, policy)

        def call(records: list[Record], attempt: int) -> Any:
            self.calls.append((now, numbers(records)))
            return function(numbers(records))

        while lane:
            now = max(now, lane.due)
            self.attempts.append(
                lane.attempt(
                    now,
                    call,
                    lambda records, why, count: self.discarded.append((numbers(records), why, count)),
                )
            )
            assert len(self.attempts) < 1000


def fails_for(*poison: int) -> Any:
    def function(records: list[int]) -> None:
        if set(poison) & set(records):
            raise RuntimeError("poison")

    return function


def test_batches_are_delivered_in_order() -> None:
    outcome = Outcome([[record(1), record(2)], [record(3)]], Policy(), lambda records: None)
    assert [records for _, records in outcome.calls] == [[1, 2], [3]]
    assert [attempt.delivered for attempt in outcome.attempts] == [2, 1]


def test_pauses_double_up_to_a_minute() -> None:
    outcome = Outcome([[record(1)]], Policy(retries=12), fails_for(1))
    times = [time for time, _ in outcome.calls]
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses[:4] == [0.25, 0.5, 1.0, 2.0]
    assert max(pauses) == 60.0
    assert outcome.discarded == [([1], "RetryAttemptsExhausted", 13)]


def test_without_retries_a_batch_is_given_up_at_once() -> None:
    outcome = Outcome([[record(1), record(2)], [record(3)]], Policy(retries=0), fails_for(2))
    assert [records for _, records in outcome.calls] == [[1, 2], [3]]
    assert outcome.discarded == [([1, 2], "RetryAttemptsExhausted", 1)]


def test_halving_finds_the_one_record_that_fails() -> None:
    policy = Policy(retries=1, bisect_on_error=True)
    outcome = Outcome([[record(number) for number in range(8)]], policy, fails_for(5))
    assert outcome.discarded == [([5], "RetryAttemptsExhausted", 2)]
    assert [records for _, records in outcome.calls] == [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [4, 5],
        [4],
        [5],
        [5],
        [6, 7],
    ]


def test_old_records_are_given_up_before_the_call() -> None:
    policy = Policy(max_record_age=60.0)
    outcome = Outcome([[record(1, 0.0), record(2, 50.0)]], policy, lambda records: None, now=100.0)
    assert [records for _, records in outcome.calls] == [[2]]
    assert outcome.discarded == [([1], "RecordAgeExceeded", 0)]


def test_retries_without_end_stop_when_the_records_are_too_old() -> None:
    outcome = Outcome([[record(1, 0.0)]], Policy(max_record_age=100.0), fails_for(1))
    assert len(outcome.calls) > 5
    assert [why for _, why, _ in outcome.discarded] == ["RecordAgeExceeded"]


# [docs] Lambda Developer Guide, "Reporting batch item failures": success and failure conditions
@pytest.mark.parametrize(
    ("answer", "delivered"),
    [
        (None, 3),
        ({}, 3),
        ("text", 3),
        ({"batchItemFailures": None}, 3),
        ({"batchItemFailures": []}, 3),
        ({"batchItemFailures": [{"itemIdentifier": "2"}]}, 1),
        ({"batchItemFailures": [{"itemIdentifier": "3"}, {"itemIdentifier": "2"}]}, 1),
        ({"batchItemFailures": [{"itemIdentifier": ""}]}, 0),
        ({"batchItemFailures": [{"itemIdentifier": None}]}, 0),
        ({"batchItemFailures": [{"wrong": "2"}]}, 0),
        ({"batchItemFailures": [{"itemIdentifier": "9"}]}, 0),
    ],
)
def test_an_answer_says_how_far_the_function_came(answer: Any, delivered: int) -> None:
    assert delivered_of([record(1), record(2), record(3)], answer) == delivered


@given(
    sizes=st.lists(st.integers(1, 9), max_size=5),
    poison=st.sets(st.integers(0, 45), max_size=6),
    retries=st.integers(0, 3),
    bisect=st.booleans(),
    report=st.booleans(),
)
def test_every_record_is_delivered_or_given_up_in_order(
    sizes: list[int], poison: set[int], retries: int, bisect: bool, report: bool
) -> None:
    batches, number = [], 0
    for size in sizes:
        batches.append([record(number + place) for place in range(size)])
        number += size
    done: list[int] = []

    def function(records: list[int]) -> Any:
        bad = [one for one in records if one in poison]
        if not bad:
            done.extend(records)
            return None
        if report:
            done.extend(records[: records.index(bad[0])])
            return {"batchItemFailures": [{"itemIdentifier": str(one)} for one in bad]}
        raise RuntimeError("poison")

    policy = Policy(retries=retries, bisect_on_error=bisect, report_batch_item_failures=report)
    outcome = Outcome(batches, policy, function)
    given_up = [one for records, _, _ in outcome.discarded for one in records]
    assert done == sorted(done)
    assert given_up == sorted(given_up)
    assert sorted(done + given_up) == list(range(number))
    assert sum(attempt.delivered for attempt in outcome.attempts) == len(done)
    assert sum(attempt.discarded for attempt in outcome.attempts) == len(given_up)
    if bisect:
        assert set(given_up) == poison & set(range(number))
