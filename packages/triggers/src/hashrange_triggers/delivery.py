"""Delivers batches: calls the function, and retries, halves or gives up failed batches, as Lambda does for
streams.

    call the function ── returns ─────────────────────────────→ done
          │            └ names failed items (if reported) ───→ the rest, from the first of them, again
          └ raises ── bisect, and more than one record ──────→ the two halves, one after the other
                   ├─ no retry left ─────────────────────────→ discarded, to the on-failure destination
                   └─ otherwise ─────────────────────────────→ again, after a pause that doubles

A `Lane` holds batches in order and never begins the next batch before the first is done or discarded, so the
records of an item stay in order. It never waits: it returns when it wants to be called again. Time is an
argument. Knows nothing of streams or checkpoints.

Source: Lambda Developer Guide, "Error handling", "Reporting batch item failures".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from hashrange_triggers.events import Record, created_at, sequence_of

Reason = Literal["RetryAttemptsExhausted", "RecordAgeExceeded"]

_PAUSE_SECONDS: Final = 0.25
PAUSE_SECONDS_MAX: Final = 60.0


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules for failures.

    retries: calls after the first before a batch is given up; None: it is never given up.
    bisect_on_error: halve a batch that fails, to find the record that causes the failure.
    max_record_age: seconds after which a record is given up; None: it is never given up.
    report_batch_item_failures: the function's answer names the records that failed.
    """

    retries: int | None = None
    bisect_on_error: bool = False
    max_record_age: float | None = None
    report_batch_item_failures: bool = False


@dataclass(slots=True)
class Batch:
    """Records to be delivered in one call, the number of failed calls, and the time of the next call."""

    records: list[Record]
    failures: int = 0
    due: float = 0.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of one attempt: how many records are done, and how many of these were given up."""

    delivered: int
    discarded: int
    error: Exception | SystemExit | None = None


Call = Callable[[list[Record], int], Any]
"""Calls the function with records; the second argument is the number of the attempt, from 1."""

Discard = Callable[[list[Record], Reason, int], None]
"""Takes records that were given up, why, and after how many calls."""


class PartialFailure(Exception):
    """The function's answer names records that failed."""


class Lane:
    """Batches to be delivered one after the other."""

    __slots__ = ("_batches", "_policy")

    def __init__(self, batches: Iterable[list[Record]], policy: Policy) -> None:
        self._batches = deque(Batch(records) for records in batches if records)
        self._policy = policy

    def __bool__(self) -> bool:
        return bool(self._batches)

    @property
    def first(self) -> Record | None:
        """The first record that is not done."""
        return self._batches[0].records[0] if self._batches else None

    @property
    def due(self) -> float:
        """When the next attempt is due."""
        return self._batches[0].due if self._batches else 0.0

    def attempt(self, now: float, call: Call, discard: Discard) -> Attempt:
        """Try the first batch once. If `discard` raises, the exception passes through, and the batch
        stays."""
        batch = self._batches[0]
        aged = self._discard_aged(batch, now, discard)
        if not batch.records:
            self._batches.popleft()
            return Attempt(0, aged)
        error: Exception | SystemExit | None = None
        try:
            answer = call(batch.records, batch.failures + 1)
            done = delivered_of(batch.records, answer) if self._policy.report_batch_item_failures else None
        except (Exception, SystemExit) as raised:  # a function that ends its program has failed
            done, error = 0, raised
        if done is None or done == len(batch.records):
            self._batches.popleft()
            return Attempt(len(batch.records), aged)
        if done:
            # Some records succeeded, so the count of failed calls starts again for the rest.
            del batch.records[:done]
            batch.failures = 0
        error = error or PartialFailure(f"{len(batch.records)} records from the first that failed on")
        return Attempt(done, aged + self._failed(batch, now, discard), error)

    def _discard_aged(self, batch: Batch, now: float, discard: Discard) -> int:
        if self._policy.max_record_age is None:
            return 0
        oldest = now - self._policy.max_record_age
        aged = 0
        while aged < len(batch.records) and created_at(batch.records[aged]) < oldest:
            aged += 1
        if aged:
            discard(batch.records[:aged], "RecordAgeExceeded", batch.failures)
            del batch.records[:aged]
        return aged

    def _failed(self, batch: Batch, now: float, discard: Discard) -> int:
        """Halve, give up or postpone a failed batch; returns how many records were given up."""
        policy = self._policy
        batch.due = now + min(_PAUSE_SECONDS * 2.0 ** min(batch.failures, 16), PAUSE_SECONDS_MAX)
        if policy.bisect_on_error and len(batch.records) > 1:
            # Halving does not count as a retry.
            middle = len(batch.records) // 2
            self._batches.popleft()
            self._batches.appendleft(Batch(batch.records[middle:], batch.failures))
            self._batches.appendleft(Batch(batch.records[:middle], batch.failures, batch.due))
            return 0
        batch.failures += 1
        if policy.retries is not None and batch.failures > policy.retries:
            discard(batch.records, "RetryAttemptsExhausted", batch.failures)
            self._batches.popleft()
            return len(batch.records)
        return 0


def delivered_of(records: list[Record], answer: Any) -> int:
    """How many records precede the first record that the function's answer reports as failed.

    Without `batchItemFailures` all records succeeded; if the answer names a record that was not in the
    batch, all failed.
    """
    failures = answer.get("batchItemFailures") if isinstance(answer, Mapping) else None
    if not failures:
        return len(records)
    places = {sequence_of(record): place for place, record in enumerate(records)}
    first = len(records)
    for failure in failures:
        identifier = failure.get("itemIdentifier") if isinstance(failure, Mapping) else None
        if identifier not in places:
            return 0
        first = min(first, places[identifier])
    return first
