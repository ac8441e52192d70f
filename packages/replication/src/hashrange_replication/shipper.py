"""Ships the committed batches of an engine: the follower of its commits, and the thread that cuts segments.

    commit thread          queue           shipping thread
    committed() ─ batch ──> in memory ───> frames ─ each second, or 4 MiB ─> segment ─> spool ─> bucket

`committed` only appends to the queue, and compares the time with the lease's deadline. With `acks` it waits
until the bucket has the batch. A segment goes to the bucket from memory, and to the spool's disk only if the
bucket does not take it. If the spool is full, or the queue is, the chain is broken: everything that waits is
dropped, and `bases` begins a new one.

Refuses to know: what records mean, how a base is made.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from threading import Condition, Event
from typing import Final, NamedTuple

from hashrange import pace
from hashrange.buckets import CHANGED, BucketError
from hashrange_replication.chain import Position
from hashrange_replication.format.batches import add_frame
from hashrange_replication.format.sealing import Data, Key
from hashrange_replication.format.segments import SegmentHeader, encode_segment, root_of
from hashrange_replication.lease import Lease
from hashrange_replication.place import Place
from hashrange_replication.spool import Spool, Spooled, spooled_of

_log = logging.getLogger("hashrange.replication")

CUT_SECONDS: Final = 1.0
"""How often what was committed becomes a segment."""
SEGMENT_BYTES: Final = 4 * 1024 * 1024
"""About how large the batches of a segment get."""
COMPRESSED_BYTES_MAX: Final = 1024 * 1024
"""Segments with more bytes are not compressed: so that takes at most some half percent of a core."""
QUEUE_BYTES_MAX: Final = 64 * 1024 * 1024
"""What may wait in memory; more waits only if the shipping thread does not run."""
ACK_SECONDS: Final = 10.0
"""How long a commit waits for the bucket before its requests end with an error."""
_PAUSE_SECONDS_MIN: Final = 0.5
_PAUSE_SECONDS_MAX: Final = 30.0
_MILLIS: Final = 1_000
# What a record takes beside the bytes that the engine counts.
_BATCH_OVERHEAD_BYTES: Final = 100


class Waiting(NamedTuple):
    """A batch in the queue; its moment is in epoch milliseconds, its size about that of its records."""

    number: int
    moment: int
    records: Mapping[bytes, bytes | None]
    bytes: int


class Shipper:
    """A `storage.capabilities.Follower`. `clock` gives the time of batches (epoch seconds), `now` that of
    pauses (monotonic).

    `broken` says why the chain has to begin again, "" if it need not. `problem` is why the bucket did not
    take the last object.
    """

    def __init__(
        self,
        place: Place,
        key: Key | None,
        spool: Spool,
        lease: Lease,
        *,
        clock: Callable[[], float],
        now: Callable[[], float],
        acks: bool = False,
        ack_seconds: float = ACK_SECONDS,
    ) -> None:
        self._place = place
        self._key = key
        self._spool = spool
        self._lease = lease
        self._clock = clock
        self._now = now
        self._acks = acks
        self._ack_seconds = ack_seconds
        # The commit thread appends and counts in, the shipping thread takes and counts out: without a lock.
        self._queue: deque[Waiting] = deque()
        self._bytes_in = 0
        self._bytes_out = 0
        self._moment = 0
        self._collects = False
        self._overflows = False
        self.told = 0  # the last batch that was committed
        # The shipping thread's: the batches of the next segment, of which it knows the first and the last.
        self._frames = bytearray()
        self._batches = 0
        self._first: Waiting | None = None
        self._last: Waiting | None = None
        self._retry_at = 0.0
        self._pause_seconds = _PAUSE_SECONDS_MIN
        self._changed = Condition()  # guards what follows
        self.end = Position(0, 1, "", 0)
        self.shipped = 0  # the last batch that the bucket has
        self.has_base = False  # whether a restore would find these batches
        self.broken = "no batch was shipped yet"
        self._lacks_since = int(clock() * _MILLIS)
        self.problem = ""
        self.segments = 0
        self.shipped_bytes = 0
        self.wake = Event()

    # The follower, on the commit thread.

    def committed(self, batch: int, records: Mapping[bytes, bytes | None], bytes_: int) -> str | None:
        """As `Follower.committed`."""
        moment = int(self._clock() * _MILLIS)
        if moment > self._moment:
            self._moment = moment
        self.told = batch
        if self._collects:
            bytes_ += _BATCH_OVERHEAD_BYTES
            self._queue.append(Waiting(batch, self._moment, records, bytes_))
            self._bytes_in += bytes_
            waiting = self._bytes_in - self._bytes_out
            if waiting > SEGMENT_BYTES or self._acks:
                if waiting > QUEUE_BYTES_MAX:
                    self._collects, self._overflows = False, True
                self.wake.set()
        if self._acks:
            return self._acknowledged(batch)
        return self._lease.refusing()

    def refusing(self) -> str | None:
        """As `Follower.refusing`."""
        if self._acks and not self.broken and self.shipped < self.told:
            return self._late()
        return self._lease.refusing()

    def _acknowledged(self, batch: int) -> str | None:
        """Wait until the bucket has a batch. Returns why it may not be acknowledged."""
        pace.end_commit()  # the event loop need not make way for this thread
        until = self._now() + self._ack_seconds
        with self._changed:
            while self.shipped < batch or not self.has_base:
                left = until - self._now()
                if self.broken:
                    return f"the copy at {self._place.shown} begins again: {self.broken}"
                if left <= 0 or self._lease.fenced is not None:
                    return self._lease.fenced or self._late()
                self._changed.wait(left)
        # Only now: a standby that has taken over meanwhile may not have seen the batch.
        return self._lease.refusing()

    def _late(self) -> str:
        why = f": {self.problem}" if self.problem else ""
        return f"the copy at {self._place.shown} lacks the last writes, and --copy-ack waits for it{why}"

    # The chain. `follow_on` and `begin` are called by the maker of bases.

    def follow_on(self, end: Position, batch: int) -> None:
        """Go on behind the segment that `end` names; `batch` is the last batch in it or before. Segments of
        an earlier process may wait in the spool."""
        waiting = self._spool.first()
        with self._changed:
            self.end = end
            self.told = batch
            self.shipped = batch if waiting is None else min(batch, waiting.after)
            self.has_base = True
            self.broken = ""
        self._collects = True

    @property
    def lacks_since(self) -> int:
        """The moment before which the copy lacks nothing, in epoch milliseconds. Who knows better while there
        is no base sets it."""
        oldest = self._oldest()
        return int(self._clock() * _MILLIS) if oldest is None else oldest

    @lacks_since.setter
    def lacks_since(self, moment: int) -> None:
        self._lacks_since = moment

    def begin(self, epoch: int, index: int) -> None:
        """Begin a new chain; its base is still to be made."""
        self._queue.clear()
        self._bytes_out = self._bytes_in
        self._spool.drop()
        with self._changed:
            self.end = Position(epoch, index, root_of(epoch), 0)
            self.has_base = False
            self.broken = ""
        self._collects = True

    def based(self, epoch: int, batch: int) -> None:
        """A base of an epoch is in the bucket, with all batches up to this one."""
        with self._changed:
            if epoch == self.end.epoch and not self.broken:
                self.has_base = True
                self.shipped = max(self.shipped, batch)
                self._changed.notify_all()

    def break_off(self, why: str) -> None:
        """The chain is broken: drop what waits. On the shipping thread."""
        self._collects = self._overflows = False
        with self._changed:
            # First of all: what is dropped was not shipped, and `lag` must not forget it for a moment.
            self._lacks_since = self.lacks_since
            self.has_base = False
        self._queue.clear()
        self._bytes_out = self._bytes_in
        self._clear()
        self._spool.drop()
        with self._changed:
            self.broken = why
            self._changed.notify_all()
        _log.warning("the copy begins again", extra={"fields": {"copy": self._place.shown, "cause": why}})

    # Shipping, on a thread of its own.

    def step(self, *, at_once: bool = False) -> None:
        """Cut a segment of what was committed, and ship what waits. `at_once`: without regard to pauses."""
        if self._overflows:
            self.break_off(f"more than {QUEUE_BYTES_MAX >> 20} MiB waited in memory")
        if self._lease.fenced is not None:
            if not self.broken:
                self.break_off(self._lease.fenced)
            return
        is_full = True
        while is_full and not self.broken and self._gather():
            is_full = len(self._frames) >= SEGMENT_BYTES  # what is committed meanwhile has time
            self._cut()
            self._ship_all(at_once)
        self._ship_all(at_once)

    def _gather(self) -> bool:
        """Take the batches of a segment from the queue; returns whether there are any."""
        queue = self._queue
        while queue and len(self._frames) < SEGMENT_BYTES:
            waiting = queue[0]
            add_frame(self._frames, waiting.number, waiting.moment, waiting.records)
            # (`lag` looks at the queue first, so it finds a batch here or there)
            self._last = waiting
            if self._first is None:
                self._first = waiting._replace(records={})
            self._batches += 1
            queue.popleft()
            self._bytes_out += waiting.bytes
        return self._first is not None

    def _clear(self) -> None:
        self._frames = bytearray()
        self._batches = 0
        self._first = self._last = None

    def _cut(self) -> None:
        first, last, end = self._first, self._last, self.end
        assert first is not None
        assert last is not None
        header = SegmentHeader(
            epoch=end.epoch,
            index=end.index,
            predecessor=end.predecessor,
            after=end.after,
            first=first.number,
            last=last.number,
            batches=self._batches,
            first_moment=first.moment,
            last_moment=last.moment,
            bytes=len(self._frames),
        )
        content, digest = encode_segment(header, self._frames, self._key, quick=self._is_busy())
        size = sum(map(len, content))
        if not self._spool.has_room(size):
            self.break_off(f"the spool has its {self._spool.bytes_max >> 20} MiB, and the bucket is away")
            return
        self._spool.add(spooled_of(header, size), content)
        self._clear()
        with self._changed:
            self.end = Position(end.epoch, end.index + 1, digest, last.number)

    def _is_busy(self) -> bool:
        """Whether so much is written that compressing it would take time that the server misses, while the
        bucket takes it as it is."""
        keeps_up = self._bytes_in - self._bytes_out < SEGMENT_BYTES and self._spool.first() is None
        return len(self._frames) >= COMPRESSED_BYTES_MAX and keeps_up

    def _ship_all(self, at_once: bool) -> None:
        """Ship what waits in the spool; what the bucket does not take goes to its disk."""
        while (spooled := self._spool.first()) is not None and not self.broken:
            if self._now() < self._retry_at and not at_once:
                break
            if not self._ship(spooled):
                break
        if not self.broken:
            try:
                self._spool.save()
            except OSError as error:
                self.break_off(f"the spool cannot be written: {error}")

    def _ship(self, spooled: Spooled) -> bool:
        """Put a segment into the bucket; returns whether it is there."""
        try:
            content = self._spool.content(spooled)
        except OSError as error:
            self.break_off(f"the spool cannot be read: {error}")
            return False
        try:
            if not self._put(spooled, content):
                self.break_off(f"somebody else has written {spooled.name.name}")
                return False
        except (OSError, BucketError) as error:
            self._failed(str(error))
            return False
        self._spool.shipped(spooled)
        self._lease.shipped = spooled.name.index
        self._retry_at, self._pause_seconds = 0.0, _PAUSE_SECONDS_MIN
        with self._changed:
            self.problem = ""
            self.segments += 1
            self.shipped_bytes += spooled.bytes
            self.shipped = max(self.shipped, spooled.last)
            self._changed.notify_all()
        return True

    def _put(self, spooled: Spooled, content: Sequence[Data]) -> bool:
        """Returns whether the bucket has this segment. An earlier try may have written it."""
        try:
            self._place.put(spooled.name.name, content, new=True)
        except BucketError as error:
            if error.code != CHANGED:
                raise
            return self._place.read(spooled.name.name)[0] == b"".join(content)
        return True

    def _failed(self, why: str) -> None:
        if why != self.problem:
            fields = {"copy": self._place.shown, "error": why}
            _log.warning("the copy's bucket fails", extra={"fields": fields})
        self.problem = why
        self._retry_at = self._now() + self._pause_seconds
        self._pause_seconds = min(2 * self._pause_seconds, _PAUSE_SECONDS_MAX)

    # How far it is.

    def lag(self) -> tuple[float, int]:
        """How far the bucket is behind: the age in seconds of the oldest batch that it lacks, and about how
        many bytes wait."""
        oldest = self._oldest()
        waiting = self._bytes_in - self._bytes_out + len(self._frames) + self._spool.bytes
        seconds = 0.0 if oldest is None else max(0.0, self._clock() - oldest / _MILLIS)
        return seconds, waiting

    def _oldest(self) -> int | None:
        """The moment of the oldest batch that the bucket lacks."""
        if not self.has_base:
            return self._lacks_since
        if self.told <= self.shipped:
            return None
        # Looked at in the order in which batches go, so that none slips through.
        found: list[Waiting | Spooled | None] = []
        with contextlib.suppress(IndexError):
            found.append(self._queue[0])
        found.append(self._first)
        found.append(self._spool.first())
        return min((one.moment for one in found if one is not None), default=None)
