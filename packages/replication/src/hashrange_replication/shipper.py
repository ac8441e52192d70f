"""Ships the committed batches of an engine: the follower of its commits, and the thread that cuts segments.

    commit thread          queue           shipping thread
    committed() ─ batch ──> in memory ───> frames ─ each second, or 4 MiB ─> segment ─> spool ─> bucket

`committed` only appends to the queue, and compares the time with the lease's deadline. With `acks` it waits
until the bucket has the batch. Whatever goes wrong with the bucket, the spool takes the segments; if it is
full, or the queue is, the chain is broken: everything that waits is dropped, and `bases` begins a new one.

Refuses to know: what records mean, how a base is made.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from threading import Condition, Event
from typing import Final, NamedTuple

from hashrange import pace
from hashrange.buckets import CHANGED, BucketError
from hashrange_replication.chain import Position
from hashrange_replication.format.batches import frame
from hashrange_replication.format.sealing import Key
from hashrange_replication.format.segments import SegmentHeader, encode_segment, root_of
from hashrange_replication.lease import Lease
from hashrange_replication.place import Place
from hashrange_replication.spool import Spool, Spooled

_log = logging.getLogger("hashrange.replication")

CUT_SECONDS: Final = 1.0
"""How often what was committed becomes a segment."""
SEGMENT_BYTES: Final = 4 * 1024 * 1024
"""About how large the batches of a segment get."""
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
        # The shipping thread's.
        self._frames: list[bytes] = []
        self._frames_bytes = 0
        self._taken: list[Waiting] = []
        self._retry_at = 0.0
        self._pause_seconds = _PAUSE_SECONDS_MIN
        self._changed = Condition()  # guards what follows
        self.end = Position(0, 1, "", 0)
        self.shipped = 0  # the last batch that the bucket has
        self.has_base = False  # whether a restore would find these batches
        self.broken = "no batch was shipped yet"
        self._broken_at = int(clock() * _MILLIS)
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
        """Go on behind the segment that `end` names; `batch` is the last batch in it or before."""
        with self._changed:
            self.end = end
            self.told = self.shipped = batch
            self.has_base = True
            self.broken = ""
        self._collects = True

    def begin(self, epoch: int, index: int) -> None:
        """Begin a new chain; its base is still to be made."""
        self._queue.clear()
        self._bytes_out = self._bytes_in
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
        self._queue.clear()
        self._bytes_out = self._bytes_in
        self._frames, self._taken, self._frames_bytes = [], [], 0
        self._spool.drop()
        with self._changed:
            self.broken = why
            self._broken_at = int(self._clock() * _MILLIS)
            self.has_base = False
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
        if not self.broken:
            self._gather()
        while (spooled := self._spool.first()) is not None and not self.broken:
            if self._now() < self._retry_at and not at_once:
                return
            if not self._ship(spooled):
                return

    def _gather(self) -> None:
        while self._queue and not self.broken:
            waiting = self._queue.popleft()
            framed = frame(waiting.number, waiting.moment, waiting.records)
            self._frames.append(framed)
            self._taken.append(waiting._replace(records={}))
            self._frames_bytes += len(framed)
            self._bytes_out += waiting.bytes
            if self._frames_bytes >= SEGMENT_BYTES:
                self._cut()
        if self._frames and not self.broken:
            self._cut()

    def _cut(self) -> None:
        first, last = self._taken[0], self._taken[-1]
        end = self.end
        header = SegmentHeader(
            epoch=end.epoch,
            index=end.index,
            predecessor=end.predecessor,
            after=end.after,
            first=first.number,
            last=last.number,
            batches=len(self._taken),
            first_moment=first.moment,
            last_moment=last.moment,
            bytes=self._frames_bytes,
        )
        content, digest = encode_segment(header, b"".join(self._frames), self._key)
        self._frames, self._taken, self._frames_bytes = [], [], 0
        if not self._spool.has_room(len(content)):
            self.break_off(f"the spool has its {self._spool.bytes_max >> 20} MiB, and the bucket is away")
            return
        try:
            self._spool.add(header.name, content, last.number, first.moment)
        except OSError as error:
            self.break_off(f"the spool cannot be written: {error}")
            return
        with self._changed:
            self.end = Position(end.epoch, end.index + 1, digest, last.number)

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

    def _put(self, spooled: Spooled, content: bytes) -> bool:
        """Returns whether the bucket has this segment. An earlier try may have written it."""
        try:
            self._place.put(spooled.name.name, content, new=True)
        except BucketError as error:
            if error.code != CHANGED:
                raise
            return self._place.read(spooled.name.name)[0] == content
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
        waiting = self._bytes_in - self._bytes_out + self._frames_bytes + self._spool.bytes
        oldest = self._oldest()
        seconds = 0.0 if oldest is None else max(0.0, self._clock() - oldest / _MILLIS)
        return seconds, waiting

    def _oldest(self) -> int | None:
        """The moment of the oldest batch that the bucket lacks."""
        if self.told <= self.shipped and self.has_base:
            return None
        if self.broken or not self.has_base:
            return self._broken_at
        spooled = self._spool.first()
        if spooled is not None and spooled.moment:
            return spooled.moment
        try:
            return (self._taken or self._queue)[0].moment
        except IndexError:  # it was taken just now
            return None
