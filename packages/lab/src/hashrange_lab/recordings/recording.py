"""Records the requests of a database in a file, for `hashrange serve --record` or somebody else.

    with recording(database, "load.hashrange"):
        ...

A recording is an observer of requests: it keeps each as it was sent, and writes it with its outcome when it
has ended. `hashrange_lab.recordings` has the form of the file, and writes it. Requests that come by the admin
plane are left out.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import orjson

from hashrange.database import Database
from hashrange.errors import AnswerLost, InternalServerError, ServiceError
from hashrange.interchange.descriptions import IncompleteDescription, create_request, portable
from hashrange.observing.observer import ObservedRequest, Observer
from hashrange.operations.context import OPERATOR, Caller
from hashrange.storage.failures import StorageError
from hashrange_lab.recordings.lines import Entry
from hashrange_lab.recordings.writer import Define, Taken, Writer

BYTES_MAX: Final = 1024 * 1024 * 1024


class Recordings:
    """The recordings of one database: the `current` one, if requests are being recorded, and the `last`.
    `directory` is where the admin plane may make some, "" for nowhere, of at most `bytes_max` each."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.current: Recording | None = None
        self.last: Recording | None = None
        self.directory = ""
        self.bytes_max = BYTES_MAX


def recording(
    database: Database, path: str | Path, *, hashed: bool = False, bytes_max: int = BYTES_MAX
) -> Recording:
    """A recording of the requests to a database, in the file `path`."""

    def define(caller: Caller, table: str) -> dict[str, Any] | None:
        operator = Caller(caller.region, caller.account_id, OPERATOR)
        try:
            described = database.execute("DescribeTable", {"TableName": table}, operator)
            return portable(create_request(described["Table"]))
        except (ServiceError, StorageError, IncompleteDescription):
            return None

    return Recording(
        database.part("lab", "recordings"),
        Path(path),
        hashed=hashed,
        bytes_max=bytes_max,
        define=define,
    )


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
        self,
        recordings: Recordings,
        path: Path,
        *,
        hashed: bool = False,
        bytes_max: int = BYTES_MAX,
        define: Define,
    ) -> None:
        self.path = path
        self.hashed = hashed
        self.bytes_max = bytes_max
        self.writer: Writer | None = None
        self._recordings = recordings
        self._define = define
        self._threads: dict[int, int] = {}

    def begin(self) -> None:
        """Begin to record."""
        recordings = self._recordings
        running = recordings.current
        if running is not None and running.writer is not None and running.writer.is_on:
            raise ValueError(
                f"Requests are being recorded already, in {running.path}; stop that recording first."
            )
        self.writer = Writer(
            self.path,
            hashed=self.hashed,
            bytes_max=self.bytes_max,
            now=recordings.database.clock.now(),
            by="hashrange",
            define=self._define,
            failed=self._failed,
        )
        if running is not None:
            running.leave()
        recordings.current = recordings.last = self
        recordings.database.observers.observe(self)

    def end(self) -> None:
        """End the recording: the file is complete when this returns. Idempotent."""
        self.leave()
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

    @property
    def wants_answers(self) -> bool:
        """Whether it takes digests of answers. Those of hashed requests would say nothing."""
        return not self.hashed

    def _failed(self, error: Exception) -> None:
        self._recordings.database.observers.failed(self.name, error)

    def leave(self) -> None:
        """Observe no longer: requests need not pay for it."""
        if self._recordings.current is self:
            self._recordings.current = None
        self._recordings.database.observers.observe(self, False)

    def begins(self, seen: ObservedRequest) -> None:
        """Keep a request as it was sent; it is changed when it is prepared."""
        sent = b"{}"
        with suppress(TypeError):  # nested too deeply, or with numbers that are too long
            sent = orjson.dumps(seen.request)
        seen.keep(self, sent)

    def ended(self, seen: ObservedRequest) -> None:
        """Write a request that has ended; one that cannot be written is counted."""
        try:
            self._take(seen)
        except Exception:
            if self.writer is not None:
                self.writer.miss()
            raise

    def _take(self, seen: ObservedRequest) -> None:
        writer, caller = self.writer, seen.caller
        if writer is None or caller.access_key == OPERATOR:
            return
        if not writer.is_on:
            # It has ended by itself: requests need not pay for it any longer.
            self.leave()
            return
        record, answer, sent = seen.record, seen.answer, seen.kept(self)
        if sent is None:
            writer.miss()
            return
        if isinstance(answer, dict):
            answer = orjson.dumps(answer)
        entry = Entry(
            at=max(seen.began - writer.began, 0.0),
            operation=record.operation,
            seconds=seen.seconds,
            connection=caller.connection or self._thread(),
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
        writer.take(Taken(entry, sent, answer if self.wants_answers else None, caller))

    def _thread(self) -> int:
        """The number of this thread, as that of a connection."""
        return self._threads.setdefault(threading.get_ident(), -1 - len(self._threads))


def _status(error: Exception | None) -> int:
    if error is None:
        return 200
    if isinstance(error, AnswerLost):
        return 0
    return error.status if isinstance(error, ServiceError) else InternalServerError.status
