"""The work on one shard, one step at a time: read, filter, wait for a batch, deliver, save the checkpoint.

A `ShardRun` never waits: `step` does the work that is due and returns when to call it again. Its checkpoint
is the last record before the first record that is not done, even if later records of other lanes are done. So
after a restart records may be repeated, but none is missed.

With a parallelization factor, the records of several batches are distributed by their keys to this many
lanes, which deliver at the same time. All records of an item are in the same lane, so they stay in order.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

import orjson

from hashrange.clock import has_come
from hashrange_triggers.delivery import PAUSE_SECONDS_MAX, Attempt, Call, Discard, Lane, Policy
from hashrange_triggers.events import Record, keys_of, sequence_of
from hashrange_triggers.filters import Predicate


class Reader(Protocol):
    """The source of records. Implementations: `source.Cursor`, and lists in tests."""

    after: str | None
    exhausted: bool

    def read(self) -> list[Record]:
        """The next records, perhaps none."""
        ...


@dataclass(frozen=True, slots=True)
class Batching:
    """The rules that make batches of records: sizes in records, times in seconds."""

    batch_size: int = 100
    batch_window: float = 0.0
    parallelization_factor: int = 1
    poll_interval: float = 0.25


@dataclass(frozen=True, slots=True)
class Handling:
    """The functions that handle records: the filter, the trigger's function, and the function for records
    that are given up."""

    matches: Predicate
    call: Call
    discard: Discard
    policy: Policy


class ShardRun:
    """The state of the work on one shard."""

    def __init__(
        self,
        reader: Reader,
        batching: Batching,
        handling: Handling,
        *,
        save: Callable[[str], None],
        report: Callable[[Attempt, Record | None], None],
    ) -> None:
        self._reader = reader
        self._batching = batching
        self._handling = handling
        self._save = save
        self._report = report
        self._buffer: list[Record] = []
        self._buffered_at = 0.0
        self._lanes: list[Lane] = []
        self._under_way: list[str] = []
        self._reached: str | None = reader.after
        self._saved: str | None = reader.after
        factor = batching.parallelization_factor
        self._pool = ThreadPoolExecutor(factor) if factor > 1 else None

    @property
    def finished(self) -> bool:
        """Whether the shard was read to its end and all its records are done."""
        idle = not self._buffer and not self._lanes and not self._unsaved
        return self._reader.exhausted and idle

    @property
    def _unsaved(self) -> bool:
        # If all records were trimmed before the first read, there is no checkpoint to save.
        return self._reached is not None and self._reached != self._saved

    def close(self) -> None:
        """Release the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def save(self) -> None:
        """Save the checkpoint if it has changed."""
        if self._reached is not None and self._unsaved:
            self._save(self._reached)
            self._saved = self._reached

    def step(self, now: float) -> float:
        """Do the work that is due at `now`. Returns the seconds until the next step, 0 if there is more to
        do."""
        self.save()
        if not self._lanes:
            seconds = self._fill(now)
            if not self._lanes:
                return seconds
        seconds = self._deliver(now)
        self.save()
        return seconds

    def _fill(self, now: float) -> float:
        """Read until there is a batch. Returns the seconds to wait if there are not enough records yet."""
        batching = self._batching
        records_max = batching.batch_size * batching.parallelization_factor
        if len(self._buffer) < records_max and not self._reader.exhausted:
            read = self._reader.read()
            if not self._buffer:
                self._buffered_at = now
            self._buffer += [record for record in read if self._handling.matches(record)]
            if not self._buffer:
                # Records that the filter dropped are done.
                self._reached = self._reader.after
                self.save()
                return 0.0 if read else batching.poll_interval
        if not self._buffer:
            return 0.0
        full_at = self._buffered_at + batching.batch_window
        waits = not has_come(full_at, now, batching.batch_window)
        if len(self._buffer) < records_max and waits and not self._reader.exhausted:
            return min(full_at - now, batching.poll_interval)
        filling, self._buffer = self._buffer[:records_max], self._buffer[records_max:]
        self._under_way = [sequence_of(record) for record in filling]
        self._lanes = [Lane(batches, self._handling.policy) for batches in self._spread(filling)]
        return 0.0

    def _spread(self, records: list[Record]) -> list[list[list[Record]]]:
        """The batches of each lane that has any."""
        factor, size = self._batching.parallelization_factor, self._batching.batch_size
        lanes: list[list[Record]] = [[] for _ in range(factor)]
        for record in records:
            number = crc32(orjson.dumps(keys_of(record), option=orjson.OPT_SORT_KEYS)) if factor > 1 else 0
            lanes[number % factor].append(record)
        return [[lane[start : start + size] for start in range(0, len(lane), size)] for lane in lanes if lane]

    def _deliver(self, now: float) -> float:
        due = [lane for lane in self._lanes if has_come(lane.due, now, PAUSE_SECONDS_MAX)]
        try:
            self._attempt_all(due, now)
        finally:
            # Even if a lane raised an error: the next step must not run a lane that is done.
            self._lanes = [lane for lane in self._lanes if lane]
        if not self._lanes:
            # The buffer may be empty, and the reader past records that the filter dropped.
            self._reached = self._under_way[-1] if self._buffer else self._reader.after
            return 0.0
        waiting = [lane.first for lane in self._lanes]
        first = min(self._under_way.index(sequence_of(record)) for record in waiting if record is not None)
        if first > 0:
            self._reached = self._under_way[first - 1]
        return max(0.0, min(lane.due for lane in self._lanes) - now)

    def _attempt_all(self, lanes: list[Lane], now: float) -> None:
        """Attempt lanes at the same time, and wait for all of them, even if a lane raises an error. Otherwise
        the next step could run a lane that is still running, and two threads would take batches from it."""
        if self._pool is None or len(lanes) < 2:
            for lane in lanes:
                self._attempt(lane, now)
            return
        attempts = [self._pool.submit(self._attempt, lane, now) for lane in lanes]
        wait(attempts)
        for attempt in attempts:
            attempt.result()

    def _attempt(self, lane: Lane, now: float) -> None:
        last = lane.first
        attempt = lane.attempt(now, self._handling.call, self._handling.discard)
        self._report(attempt, last)
