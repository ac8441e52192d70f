"""Sends the changes in the outboxes of tables to their Kinesis data streams, and ends the states of these.

Each table with a live destination is a unit of the background work, in a lane of its own: an endpoint that
does not answer delays neither writes nor other background work, and each request to it has a deadline.

The changes of an item arrive in their order, each at least once. A request to Kinesis has at most one change
of an item, because Kinesis may take some records of a request and refuse others; the next change of an item
is sent when the one before it has arrived. The place that was reached is stored after the changes arrived, so
the last ones are sent again after a crash.

A change that Kinesis refuses for good, such as one that is too large, is dropped, and so are those that are
older than 24 hours, as the service does; both are logged and counted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple, Never

import msgspec

from hashrange import kinesis
from hashrange.clock import has_come
from hashrange.kinesis import Kinesis, KinesisError, Refused
from hashrange.settings import Settings
from hashrange.storage.api import Engine, Reader, Transaction
from hashrange.storage.failures import StorageError
from hashrange.tables import streams
from hashrange.tables.background.units import Bite, Tables, Unit, described
from hashrange.tables.bites import Damage
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Destination, Table
from hashrange.tables.jobs.deliveries import messages, outboxes
from hashrange.tables.jobs.steps import Steps
from hashrange.tables.streams import Stream

KEPT_SECONDS: Final = streams.RETENTION_SECONDS
"""How old a change gets before it is dropped."""

DRAIN_SECONDS: Final = 60.0
"""How long a destination that was disabled may go on to get the changes from before."""

STEP_SECONDS: Final = 2.0
"""A bite sends no further request after this time."""

WINDOW_RECORDS: Final = 1_000
WINDOW_BYTES: Final = 4 * 1024 * 1024
"""How many changes are read at a time, and how many bytes, of which one change may exceed the limit."""

_log = logging.getLogger("hashrange")


class Undelivered(StorageError):
    """Kinesis takes no changes of a table now; they are sent later."""


class _Record(NamedTuple):
    """A change that is to be sent, and when it was made (epoch seconds)."""

    key: str
    data: bytes
    time: float


class _Window:
    """The first changes of an outbox, above the sequence `after`. `sequences` are theirs, `records` those
    that are still to be sent. The next `alone` of these are sent one by one."""

    def __init__(self, outbox: Stream, after: int) -> None:
        self.outbox = outbox
        self.after = after
        self.sequences: list[int] = []
        self.records: dict[int, _Record] = {}
        self.alone = 0

    def next_batch(self) -> list[int]:
        """The sequences of the next request: the first change of each item, up to Kinesis' limits."""
        batch: list[int] = []
        items: set[str] = set()
        size = 0
        for sequence, record in self.records.items():
            if record.key in items:
                continue
            items.add(record.key)
            size += len(record.key) + len(record.data)
            if batch and (size > kinesis.BYTES_MAX or len(batch) == kinesis.RECORDS_MAX or self.alone):
                break
            batch.append(sequence)
        return batch

    def take_old(self, oldest: float) -> int:
        """Leave out the changes from before `oldest`; returns their number."""
        old = [sequence for sequence, record in self.records.items() if record.time < oldest]
        for sequence in old:
            del self.records[sequence]
        return len(old)

    def reached(self) -> list[int]:
        """The sequences at the beginning of the window that need not be sent any more."""
        first = next(iter(self.records), None)
        return [sequence for sequence in self.sequences if first is None or sequence < first]


class Runner:
    """Delivers the changes of all tables. `delivered` and `dropped` are counts since the start."""

    def __init__(
        self, engine: Engine, settings: Settings, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._engine = engine
        self._endpoint = settings.kinesis_endpoint
        self._steady = steady
        self.streams = Kinesis(self._endpoint)
        self._windows: dict[str, _Window] = {}
        self._told: set[tuple[str, float]] = set()
        self._steps: Steps[Never] = Steps(self._close_all)
        self.delivered = 0
        self.dropped = 0

    def units(self, tables: Tables) -> Iterator[Unit]:
        """The work that may be due."""
        names = self._engine.read(outboxes.tables)
        for gone in self._windows.keys() - set(names):
            del self._windows[gone]
        for name in names:
            yield Unit(f"Kinesis data stream of {name}", partial(self._step, name))

    def forget(self) -> None:
        """Forget what was read, because the store's contents were replaced."""
        self._steps.forget()

    def close(self) -> None:
        """Close the connections, because the store is closed."""
        self._steps.end()

    def _close_all(self) -> None:
        self._windows.clear()
        self.streams.close()

    def _step(self, name: str, bite: Bite) -> bool:
        """Do a bite for a table; returns whether more is due. Raises Undelivered."""
        try:
            return self._bite(name, bite)
        except KinesisError as error:
            raise Undelivered(str(error)) from None

    def _bite(self, name: str, bite: Bite) -> bool:
        with self._steps.held():
            table = self._engine.read(lambda reader: catalog.find_full(reader, name))
            destination = outboxes.live(table) if table is not None else None
            if table is None or destination is None:
                self._windows.pop(name, None)
                self._engine.write(partial(_forget_unless_live, name=name))
                return False
            if table.gone_at is not None:
                return False
            now = bite.occasion.now
            is_due = has_come(destination.until, now, bite.occasion.settings.update_seconds)
            if destination.status == "ENABLING":
                return is_due and self._conclude(name, destination, now)
            if destination.status == "DISABLING":
                return is_due and self._finish(name, table, destination, bite)
            if destination.status == "UPDATING" and is_due:
                self._change(name, destination, msgspec.structs.replace(destination, status="ACTIVE"))
            if not self._endpoint:
                self._tell(name, destination)
            elif table.outbox is None:
                self._engine.write(partial(_open_outbox, name=name, now=now))
                return True
            return table.outbox is not None and self._deliver(name, table.outbox, destination, bite)

    def _conclude(self, name: str, destination: Destination, now: float) -> bool:
        """End the state ENABLING. Returns True, because changes may already wait. Raises KinesisError."""
        reason = destination.reason
        if reason is None and self._endpoint:
            stream = kinesis.parse(destination.arn)
            status = self.streams.status(stream) if stream is not None else None
            if status not in _USABLE:
                reason = kinesis.NO_STREAM if status is None else kinesis.NOT_ACTIVE

        def body(txn: Transaction) -> None:
            table = catalog.find_full(txn, name)
            if table is not None and destination in table.destinations and table.gone_at is None:
                told = msgspec.structs.replace(destination, reason=reason)
                catalog.save(txn, outboxes.concluded(txn, table, told))

        self._engine.write(body)
        if reason is not None:
            fields = {"table": name, "stream": destination.arn, "reason": reason}
            _log.warning("a Kinesis data stream could not be enabled", extra={"fields": fields})
        return True

    def _finish(self, name: str, table: Table, destination: Destination, bite: Bite) -> bool:
        """End the state DISABLING when nothing waits any more, or when the time for that is over. Returns
        whether more is due. Raises KinesisError."""
        outbox, now = table.outbox, bite.occasion.now
        is_late = not bite.is_held and has_come(destination.changed + DRAIN_SECONDS, now, DRAIN_SECONDS)
        over = is_late or not self._endpoint
        if outbox is not None and not over and self._deliver(name, outbox, destination, bite):
            return True

        def any_left(reader: Reader) -> bool:
            reached = outboxes.progress(reader, name).delivered
            return outbox is not None and not outboxes.is_empty(reader, outbox, reached)

        left = self._engine.read(any_left)
        if left and not over:
            return False
        if left:
            fields = {"table": name, "stream": destination.arn}
            _log.warning(
                "changes that a disabled Kinesis data stream did not take are dropped",
                extra={"fields": fields},
            )

        def body(txn: Transaction) -> None:
            current = catalog.find_full(txn, name)
            if current is not None and destination in current.destinations:
                disabled = msgspec.structs.replace(destination, status="DISABLED", until=0.0, precision=None)
                catalog.save(txn, outboxes.ended(txn, current, disabled))

        self._engine.write(body)
        self._windows.pop(name, None)
        return False

    def _change(self, name: str, before: Destination, after: Destination) -> None:
        """Store a change of a destination, unless a request has changed it meanwhile."""

        def body(txn: Transaction) -> None:
            table = catalog.find_full(txn, name)
            if table is not None and before in table.destinations:
                catalog.save(txn, outboxes.with_destination(table, after))

        self._engine.write(body)

    def _tell(self, name: str, destination: Destination) -> None:
        """Log once that the changes of a table go nowhere."""
        mark = name, destination.changed
        if mark not in self._told and destination.status == "ACTIVE":
            self._told.add(mark)
            fields = {"table": name, "stream": destination.arn}
            _log.warning(
                "changes are not sent to Kinesis, because --kinesis-endpoint is not set",
                extra={"fields": fields},
            )

    def _deliver(self, name: str, outbox: Stream, destination: Destination, bite: Bite) -> bool:
        """Send changes for a moment. Returns whether more are waiting and can be sent at once. Raises
        KinesisError."""
        began = self._steady()
        stream = kinesis.parse(destination.arn)
        while (window := self._window(name, outbox, destination, bite)) is not None:
            try:
                if window.records and not self._endpoint:
                    return False
                if window.records and stream is not None and not self._send(stream, window, name):
                    return False
            finally:
                self._store(name, window)
            if self._steady() - began >= STEP_SECONDS:
                return True
        return False

    def _window(self, name: str, outbox: Stream, destination: Destination, bite: Bite) -> _Window | None:
        """The first changes that wait; None if none do. Those that are too old are left out."""
        after = self._engine.read(lambda reader: outboxes.progress(reader, name)).delivered
        window = self._windows.get(name)
        if window is None or window.outbox.space != outbox.space or window.after != after:
            window = None
        if window is None or not window.sequences:
            window = self._read(outbox, after, destination, bite)
        if not window.sequences:
            self._windows.pop(name, None)
            return None
        self._windows[name] = window
        too_old = 0 if bite.is_held else window.take_old(bite.occasion.now - KEPT_SECONDS)
        if too_old:
            self._drop(name, too_old, "they are older than 24 hours")
        return window

    def _read(self, outbox: Stream, after: int, destination: Destination, bite: Bite) -> _Window:
        """The first changes above the sequence `after`, as many as may be read at a time."""

        def read(reader: Reader) -> list[outboxes.Waiting]:
            size = 0
            found = []
            for waiting in outboxes.waiting(reader, outbox, after, WINDOW_RECORDS):
                found.append(waiting)
                size += waiting.size
                if size >= WINDOW_BYTES:
                    break
            return found

        window = _Window(outbox, after)
        for sequence, change, _, error in self._engine.read(read):
            window.sequences.append(sequence)
            if change is not None:
                try:
                    data = messages.message(outbox.table, outbox.space, sequence, change, destination)
                    window.records[sequence] = _Record(messages.partition_key(change), data, change.time)
                    continue
                except Exception as raised:  # otherwise no later change would be sent
                    error = described(raised)
            bite.damaged([Damage(outboxes.LOG, sequence.to_bytes(8), error)])
            self.dropped += 1
        return window

    def _send(self, stream: kinesis.StreamName, window: _Window, name: str) -> bool:
        """Send the next request of a window. Returns whether the stream took all of it, or refuses it for
        good; raises KinesisError if it took nothing."""
        batch = window.next_batch()
        records = [window.records[sequence] for sequence in batch]
        window.alone = max(window.alone - 1, 0)
        try:
            errors = self.streams.put(stream, [(record.key, record.data) for record in records])
        except Refused as refusal:
            if len(batch) > 1:
                window.alone = len(batch)  # one of them is at fault
            else:
                self._drop(name, 1, f"the stream refuses them: {refusal}")
                del window.records[batch[0]]
            return True
        arrived = [sequence for sequence, error in zip(batch, errors, strict=True) if not error]
        for sequence in arrived:
            del window.records[sequence]
        self.delivered += len(arrived)
        if not arrived:
            raise KinesisError(f"{stream.name} takes no records: {next(filter(None, errors))}")
        return len(arrived) == len(batch)

    def _drop(self, name: str, number: int, reason: str) -> None:
        self.dropped += number
        fields = {"table": name, "changes": number, "reason": reason}
        _log.error("changes are not sent to Kinesis", extra={"fields": fields})

    def _store(self, name: str, window: _Window) -> None:
        """Store the place that was reached."""
        reached = window.reached()
        if not reached:
            return
        body = partial(
            outboxes.deliver, full_name=name, outbox=window.outbox, before=window.after, sequences=reached
        )
        if self._engine.write(body):
            window.sequences = window.sequences[len(reached) :]
            window.after = reached[-1]
        else:
            self._windows.pop(name, None)


_USABLE: Final = ("ACTIVE", "UPDATING")
"""The states of a stream that takes records."""


def _forget_unless_live(txn: Transaction, name: str) -> None:
    table = catalog.find_full(txn, name)
    if table is None or outboxes.live(table) is None:
        outboxes.forget(txn, name)


def _open_outbox(txn: Transaction, name: str, now: float) -> None:
    """Begin to keep the changes of a table whose destination was enabled when no endpoint was known."""
    table = catalog.find_full(txn, name)
    if table is not None and table.outbox is None and outboxes.live(table) is not None:
        catalog.save(txn, outboxes.opened(txn, table, now))
