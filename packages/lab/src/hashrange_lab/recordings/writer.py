"""Writes a recording, on a thread of its own.

The server passes requests to `Writer.take`, which never waits: they go into a queue of
bounded length and size. What finds no room is left out, and counted. The thread makes the lines, and writes a
block when it is large enough, and at least once a second. It ends when the file has as many bytes as it may
have, when it cannot be written, and with `close`.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import IO, Any, Final, NamedTuple

import msgspec
import orjson

from hashrange.files.durable import private
from hashrange.operations.context import Caller
from hashrange_lab.recordings import blocks, digests
from hashrange_lab.recordings.hashing import Hashing
from hashrange_lab.recordings.lines import (
    FULL,
    HASHED,
    KEPT,
    STOPPED,
    VERSION,
    Dropped,
    End,
    Entry,
    Head,
    Line,
    TableLine,
    encode,
)

QUEUE_MAX: Final = 20_000
QUEUE_BYTES_MAX: Final = 64 * 1024 * 1024
BLOCK_BYTES: Final = 256 * 1024
BLOCK_SECONDS: Final = 1.0
TABLES_MAX: Final = 10_000
_FAILED: Final = "failed"
_SECRET_BYTES: Final = 32

_log = logging.getLogger("hashrange.lab")

Define = Callable[[Caller, str], dict[str, Any] | None]
"""The CreateTable request of a table, by its name for a caller; None if there is no such table."""


class EndedRequest(NamedTuple):
    """A request that has ended. `entry` has no request and no digest yet: `sent` is the request as JSON, and
    `answer` that of its answer, if it is to have a digest."""

    entry: Entry
    sent: bytes
    answer: bytes | memoryview | None
    caller: Caller


class Writer:
    """A recording that is being written. Thread-safe. `state`: "recording", or why it has ended. `written`
    are the requests in the file, `dropped` those that are missing, `written_bytes` its size.

    A request that cannot be written is missing, and the others follow. `problem` says why a recording has
    failed, "" if none did; `failed` is called with that error.

    `hashed`: without the values of items. `now` is the moment at which it begins, in epoch seconds. Raises
    OSError, FileExistsError for a file that exists.
    """

    def __init__(
        self,
        path: Path,
        *,
        hashed: bool,
        bytes_max: int,
        now: float,
        by: str,
        define: Define,
        failed: Callable[[Exception], None],
    ) -> None:
        self.path = path
        self.began = perf_counter()
        self.state = "recording"
        self.problem = ""
        self.written = 0
        self.dropped = 0
        self.written_bytes = 0
        self._hashing = Hashing(os.urandom(_SECRET_BYTES)) if hashed else None
        self._bytes_max = bytes_max
        self._define = define
        self._failed = failed
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[EndedRequest | None] = queue.SimpleQueue()
        self._queued = 0
        self._queued_bytes = 0
        self._told_dropped = 0
        self._tables: set[tuple[str, str, str]] = set()
        self._lines: list[bytes] = []
        self._gathered_bytes = 0
        self._file: IO[bytes] = open(path, "xb", opener=private)  # noqa: SIM115 (the thread closes it)
        self._add(Head(VERSION, now, HASHED if hashed else KEPT, by))
        self._write_block()
        self._thread = threading.Thread(target=self._run, name="hashrange-recording", daemon=True)
        self._thread.start()

    @property
    def is_on(self) -> bool:
        """Whether it still takes requests."""
        return self.state == "recording"

    @property
    def seconds(self) -> float:
        """How long it has been recording."""
        return perf_counter() - self.began

    def take(self, taken: EndedRequest) -> None:
        """Write a request soon. Never waits, and never raises."""
        size = len(taken.sent) + (len(taken.answer) if taken.answer is not None else 0)
        with self._lock:
            if not self.is_on:
                return
            if self._queued >= QUEUE_MAX or self._queued_bytes + size > QUEUE_BYTES_MAX:
                self.dropped += 1
                return
            self._queued += 1
            self._queued_bytes += size
        self._queue.put(taken)

    def miss(self) -> None:
        """Count a request that could not be recorded."""
        with self._lock:
            self.dropped += 1

    def close(self) -> None:
        """Write what is still in the queue, and end. Idempotent."""
        self._queue.put(None)
        self._thread.join()

    # -- The thread -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        why = _FAILED
        try:
            why = self._ended(self._write_all())
        except OSError as error:
            self.problem = str(error)
            self._failed(error)
            _log.error("the recording ended: %s", error, extra={"fields": {"file": str(self.path)}})
        except Exception as error:  # (a thread that ends by an error would end the server)
            self.problem = repr(error)
            self._failed(error)
            _log.exception("the recording ended")
        finally:
            with self._lock:
                self.state = why
            # (what is left in the file's buffer after an error cannot be written here either)
            with suppress(OSError):
                self._file.close()

    def _ended(self, why: str) -> str:
        """Write the last line. Returns `why`."""
        self._add_dropped()
        self._add(End(self.seconds, self.written, why))
        self._write_block()
        return why

    def _write_all(self) -> str:
        """Write requests until there are to be no more; returns why."""
        block_began = perf_counter()
        while True:
            try:
                taken = self._queue.get(timeout=BLOCK_SECONDS)
            except queue.Empty:
                self._write_block()
                continue
            if taken is None:
                return STOPPED
            with self._lock:
                self._queued -= 1
                self._queued_bytes -= len(taken.sent) + (len(taken.answer) if taken.answer is not None else 0)
            if self.written_bytes + self._gathered_bytes // 2 >= self._bytes_max:
                # Text takes less than half when it is compressed; how much less shows when it is written.
                self._write_block()
                if self.written_bytes >= self._bytes_max:
                    return FULL
            try:
                self._add_request(taken)
            except Exception:
                if not self.dropped:
                    _log.exception("a request could not be recorded")
                self.miss()
            now = perf_counter()
            if self._gathered_bytes >= BLOCK_BYTES or now - block_began >= BLOCK_SECONDS:
                block_began = now
                self._write_block()

    def _add_request(self, taken: EndedRequest) -> None:
        caller = taken.caller
        for table in taken.entry.tables:
            named = caller.account_id, caller.region, table
            if named not in self._tables and len(self._tables) < TABLES_MAX:
                create = self._define(caller, table)
                if create is not None:
                    self._tables.add(named)
                    self._add(TableLine(create))
        self._add_dropped()
        sent = taken.sent
        if self._hashing is not None:
            sent = orjson.dumps(self._hashing.request(orjson.loads(sent)))
        digest = digests.digest(taken.answer) if taken.answer is not None else ""
        request: Any = msgspec.Raw(sent)
        self._add(msgspec.structs.replace(taken.entry, request=request, digest=digest))
        self.written += 1

    def _add_dropped(self) -> None:
        missing = self.dropped - self._told_dropped
        if missing:
            self._told_dropped += missing
            self._add(Dropped(missing))

    def _add(self, line: Line) -> None:
        text = encode(line)
        self._lines.append(text)
        self._gathered_bytes += len(text) + 1

    def _write_block(self) -> None:
        if not self._lines:
            return
        block = blocks.compressed(b"\n".join([*self._lines, b""]))
        self._lines.clear()
        self._gathered_bytes = 0
        self._file.write(block)
        self._file.flush()
        self.written_bytes += len(block)
