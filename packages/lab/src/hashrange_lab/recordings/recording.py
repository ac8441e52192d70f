"""Records the requests of a database in a file, for `hashrange serve --record` or somebody else.

    with Recording(database, "load.hashrange"):
        ...

A recording observes each request: as it was sent, when it begins, and with its outcome when it has ended. A
`Writer` has the form of the file, and writes it. Requests that come by the admin plane are left out.
"""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from hashrange.database import Database
from hashrange.errors import AnswerLost, InternalServerError, ServiceError
from hashrange.interchange.descriptions import IncompleteDescription, create_request, portable
from hashrange.observing.observer import ObservedRequest, Observer
from hashrange.operations.context import OPERATOR, Caller
from hashrange.storage.failures import StorageError
from hashrange_lab.recordings import BYTES_MAX
from hashrange_lab.recordings.lines import Entry
from hashrange_lab.recordings.writer import EndedRequest, Writer


class Recordings:
    """The recordings of one database: the `last`, which may be running. The admin plane makes recordings in
    the folder `directory` ("" for none), of at most `bytes_max`."""

    def __init__(self, database: Database) -> None:
        self.last: Recording | None = None
        self.directory = ""
        self.bytes_max = BYTES_MAX


def recordings_of(database: Database) -> Recordings:
    """The recordings of a database."""
    recordings: Recordings = database.part("lab", "recordings")
    return recordings


class Recording(Observer):
    """A recording of the requests to one database, which begins and ends with its block, or with `begin` and
    `end`. `hashed`: without the values of items (`recordings.hashing`). It ends by itself when the file has
    `bytes_max` bytes.

    `begin` raises OSError, FileExistsError for a file that exists, ValueError if requests are recorded
    already.
    """

    name = "recording"
    records = True
    numbers_connections = True

    def __init__(
        self, database: Database, path: str | Path, *, hashed: bool = False, bytes_max: int = BYTES_MAX
    ) -> None:
        self.path = Path(path)
        self.hashed = hashed
        self.bytes_max = bytes_max
        self.writer: Writer | None = None
        self._database = database
        self._threads: dict[int, int] = {}

    @property
    def is_on(self) -> bool:
        """Whether it still takes requests."""
        return self.writer is not None and self.writer.is_on

    def begin(self) -> None:
        """Begin to record."""
        recordings, observers = recordings_of(self._database), self._database.observers
        last = recordings.last
        if last is not None and last.is_on:
            raise ValueError(f"A recording is running already, in {last.path}; stop that recording first.")
        self.writer = Writer(
            self.path,
            hashed=self.hashed,
            bytes_max=self.bytes_max,
            now=self._database.clock.now(),
            by="hashrange",
            define=self._define,
            failed=partial(observers.failed, self.name),
        )
        if last is not None:
            observers.observe(last, False)  # (it may have ended by itself, and has seen no request since)
        recordings.last = self
        observers.observe(self)

    def end(self) -> None:
        """End the recording: the file is complete when this returns. Idempotent."""
        self._database.observers.observe(self, False)
        if self.writer is not None:
            self.writer.close()

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def begins(self, seen: ObservedRequest) -> None:
        """Keep the request as it was sent, because it is changed when it is prepared."""
        try:
            seen.keep(self, orjson.dumps(seen.request))
        except TypeError:  # nested too deeply, or with numbers that are too long
            seen.keep(self, b"{}")

    def ended(self, seen: ObservedRequest) -> None:
        """Write a request that has ended; one that cannot be written is counted."""
        writer, sent = self.writer, seen.kept(self)
        if writer is None or seen.caller.access_key == OPERATOR:
            return
        if not writer.is_on:
            # It has ended by itself: requests need not pay for it any longer.
            self._database.observers.observe(self, False)
            return
        try:
            entry = self._entry(seen, writer.began)
            # (digests of hashed answers would say nothing)
            answer = None if self.hashed else seen.answer
            if isinstance(answer, dict):
                answer = orjson.dumps(answer)
        except Exception:
            writer.miss()
            raise
        if sent is None:
            writer.miss()
        else:
            writer.take(EndedRequest(entry, sent, answer, seen.caller))

    def _entry(self, seen: ObservedRequest, began: float) -> Entry:
        record = seen.record
        return Entry(
            at=max(seen.began - began, 0.0),
            operation=record.operation,
            seconds=seen.seconds,
            connection=seen.caller.connection or self._thread(),
            status=_status(seen.error),
            error=record.error,
            tables=record.tables,
            index=record.index,
            read_units=record.read_units,
            write_units=record.write_units,
            index_units=dict(record.index_units),
            read_items=record.read_items,
            returned_items=record.returned_items,
            is_scan=record.is_scan,
            request_bytes=record.request_bytes,
            answer_bytes=record.answer_bytes,
            attempt=record.attempt,
        )

    def _thread(self) -> int:
        """The number of this thread, as that of a connection."""
        return self._threads.setdefault(threading.get_ident(), -1 - len(self._threads))

    def _define(self, caller: Caller, table: str) -> dict[str, Any] | None:
        """The CreateTable request of a table; None if there is none."""
        operator = Caller(caller.region, caller.account_id, OPERATOR)
        try:
            described = self._database.execute("DescribeTable", {"TableName": table}, operator)
            return portable(create_request(described["Table"]))
        except (ServiceError, StorageError, IncompleteDescription):
            return None


def _status(error: Exception | None) -> int:
    if error is None:
        return 200
    if isinstance(error, AnswerLost):
        return 0
    return error.status if isinstance(error, ServiceError) else InternalServerError.status
