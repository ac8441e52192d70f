"""Records the requests of a database in a file, for `hashrange serve --record` or somebody else.

    with recording(database, "load.hashrange"):
        ...

A `watching.watch.Passage` hands each request over: as it was sent, when it begins, and with its outcome when
it has ended. `hashrange_lab.recordings` has the form of the file, and writes it. Requests that come by the
admin plane are left out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

import orjson

from hashrange.clock import Clock
from hashrange.observing.record import Record
from hashrange.errors import AnswerLost, InternalServerError, ServiceError
from hashrange.interchange.descriptions import IncompleteDescription, create_request, portable
from hashrange.operations.context import OPERATOR, Caller, Request
from hashrange.storage.failures import StorageError
from hashrange_lab.recordings.lines import Entry
from hashrange_lab.recordings.writer import Define, Taken, Writer

BYTES_MAX: Final = 1024 * 1024 * 1024


class Taped(Protocol):
    """The part of a `watching.interest.Interest` that a tape uses."""

    @property
    def tape(self) -> Tape | None: ...

    def put_on(self, tape: Tape | None) -> None: ...


class Recorded(Protocol):
    """The part of a `Database` that is recorded."""

    @property
    def interest(self) -> Taped: ...

    @property
    def clock(self) -> Clock: ...

    def execute(self, operation: str, request: Request, caller: Caller) -> dict[str, Any]: ...


def recording(
    database: Recorded, path: str | Path, *, hashed: bool = False, bytes_max: int = BYTES_MAX
) -> Tape:
    """A recording of the requests to a database, in the file `path`."""

    def define(caller: Caller, table: str) -> dict[str, Any] | None:
        operator = Caller(caller.region, caller.account_id, OPERATOR)
        try:
            described = database.execute("DescribeTable", {"TableName": table}, operator)
            return portable(create_request(described["Table"]))
        except (ServiceError, StorageError, IncompleteDescription):
            return None

    return Tape(
        database.interest,
        Path(path),
        hashed=hashed,
        bytes_max=bytes_max,
        now=lambda: database.clock.now(),
        define=define,
    )


class Tape:
    """A recording of the requests to one database, which begins and ends with its block, or with `begin` and
    `end`. `hashed`: without the values of items (`recordings.hashing`). It ends by itself when the file has
    `bytes_max` bytes.

    `begin` raises OSError, FileExistsError for a file that exists, ValueError if requests are recorded
    already.
    """

    def __init__(
        self,
        interest: Taped,
        path: Path,
        *,
        hashed: bool = False,
        bytes_max: int = BYTES_MAX,
        now: Callable[[], float],
        define: Define,
    ) -> None:
        self.path = path
        self.hashed = hashed
        self.bytes_max = bytes_max
        self.writer: Writer | None = None
        self._interest = interest
        self._now = now
        self._define = define
        self._threads: dict[int, int] = {}

    def begin(self) -> None:
        """Begin to record."""
        tape = self._interest.tape
        if tape is not None and tape.writer is not None and tape.writer.is_on:
            raise ValueError(
                f"Requests are being recorded already, in {tape.path}; stop that recording first."
            )
        self.writer = Writer(
            self.path,
            hashed=self.hashed,
            bytes_max=self.bytes_max,
            now=self._now(),
            by="hashrange",
            define=self._define,
        )
        self._interest.put_on(self)

    def end(self) -> None:
        """End the recording: the file is complete when this returns. Idempotent."""
        if self._interest.tape is self:
            self._interest.put_on(None)
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

    def sent(self, request: Request) -> bytes:
        """A request as it was sent; it is changed when it is prepared."""
        with suppress(TypeError):  # nested too deeply, or with numbers that are too long
            return orjson.dumps(request)
        return b"{}"

    def take(
        self,
        record: Record,
        sent: bytes,
        caller: Caller,
        began: float,
        seconds: float,
        error: Exception | None,
        answer: Any,
    ) -> bool:
        """Write a request that has ended. `began`: by the performance counter; `answer`: its JSON, or the
        answer before it is encoded; None: it has none. Returns True."""
        writer = self.writer
        if writer is None or caller.access_key == OPERATOR:
            return True
        if not writer.is_on:
            # It has ended by itself: requests need not pay for it any longer.
            if self._interest.tape is self:
                self._interest.put_on(None)
            return True
        if isinstance(answer, dict):
            answer = orjson.dumps(answer)
        entry = Entry(
            at=max(began - writer.began, 0.0),
            operation=record.operation,
            seconds=seconds,
            connection=caller.connection or self._thread(),
            status=_status(error),
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
        return True

    def miss(self) -> None:
        """Count a request that could not be recorded."""
        if self.writer is not None:
            self.writer.miss()

    def _thread(self) -> int:
        """The number of this thread, as that of a connection."""
        return self._threads.setdefault(threading.get_ident(), -1 - len(self._threads))


def _status(error: Exception | None) -> int:
    if error is None:
        return 200
    if isinstance(error, AnswerLost):
        return 0
    return error.status if isinstance(error, ServiceError) else InternalServerError.status
