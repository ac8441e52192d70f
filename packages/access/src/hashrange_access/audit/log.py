"""Writes the audit log: `AuditLog.add` never waits, a thread writes in batches.

- The queue has a limit. What does not fit is lost and counted, and the log gets an entry that says how many.
- If the disk takes nothing, what is in the queue waits, and is tried again; requests go on. `problem` says
  what is wrong.
- A file that has reached its size is renamed to FILE.1, the former FILE.1 to FILE.2, and so on.
- A server that starts again goes on in the file. A last line that a crash cut off is removed first: it never
  was complete. Where the log does not end with `stopped`, entries may be missing: `started` says so.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from hashrange.clock import show_moment
from hashrange.files.durable import private, sync
from hashrange.operations.context import Caller
from hashrange_access.audit.entries import (
    ALLOWED,
    DENIED,
    UNSIGNED,
    Ended,
    KeyNames,
    Note,
    code_of,
    fields_of,
    incomplete_fields_of,
    note,
)

ENTRIES_MAX: Final = 20_000
"""The most entries that wait to be written."""

_BATCH_MAX: Final = 500
_GATHER_SECONDS: Final = 0.1
"""How long entries gather before they are written together."""
_RETRY_SECONDS: Final = 1.0
_LINE_BEGINS: Final = b'{"time":'
_LINE_BYTES_MAX: Final = 1024 * 1024
_STARTED: Final = "started"
_STOPPED: Final = "stopped"

_log = logging.getLogger("hashrange.access")

Entry = Ended | dict[str, Any]
"""A request, or the fields of another entry."""


class AuditError(Exception):
    """A log that cannot be used. The text says why, and the remedy."""


class AuditLog:
    """The audit log in `path`. `now` is the machine's time in epoch seconds. Thread-safe.

    `problem` says why nothing can be written, "" if nothing fails; `lost`, `incomplete` and `written` count
    entries.
    """

    def __init__(
        self, path: Path, now: Callable[[], float], key_names: KeyNames, *, bytes_max: int, files_max: int
    ) -> None:
        self.path = path
        self.problem = ""
        self.lost = 0
        self.incomplete = 0
        self.written = 0
        self._now = now
        self._key_names = key_names
        self._bytes_max = bytes_max
        self._files_max = files_max
        self._entries: deque[Entry] = deque()
        self._lock = threading.Lock()
        self._told_lost = 0
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._file: int | None = None
        self._size = 0
        self._thread = threading.Thread(target=self._run, name="hashrange-audit", daemon=True)

    def open(self, version: str) -> None:
        """Continue or begin the log. Raises `AuditError`."""
        try:
            self._open()
            entry = {"time": self._time(), "event": _STARTED, "version": version}
            self._append([entry if self._ended_well() else {**entry, "unclean": True}])
        except (OSError, ValueError) as error:
            self._close_file()
            raise AuditError(f"The audit log {self.path} cannot be written: {error}") from error
        self._thread.start()

    def add(self, entry: Entry) -> None:
        """Write an entry soon."""
        if len(self._entries) >= ENTRIES_MAX:
            with self._lock:
                self.lost += 1
            return
        self._entries.append(entry)
        if not self._wake.is_set():
            self._wake.set()

    def note(self, caller: Caller, operation: str, request: Mapping[str, Any], peer: str) -> Note:
        """What is known of a request, which may have any form."""
        return note(operation, dict(request), caller, peer)

    def ended(self, noted: object, error: Exception | None, request_id: str) -> None:
        """Write soon that a request has ended."""
        assert isinstance(noted, Note)
        self.add(Ended(noted, self._now(), code_of(error), request_id))

    def refused(self, operation: str, access_key: str, code: str, peer: str, request_id: str) -> None:
        """Write soon that a request was refused before it was a call."""
        caller = Caller(account_id="", access_key=access_key)
        self.add(Ended(Note(caller, operation, (), peer), self._now(), code, request_id))

    def operated(
        self, operation: str, by: Mapping[str, Any], peer: str, status: int, *, denied: bool
    ) -> None:
        """Write soon that a request to the admin plane was answered."""
        decision = DENIED if denied else ALLOWED if by["verified"] else UNSIGNED
        self.event(
            event="admin", source=peer, who=by, operation=operation, decision=decision, result=status
        )

    def event(self, **fields: Any) -> None:
        """Write another entry than that of a request soon."""
        self.add({"time": self._time(), **fields})

    def close(self) -> None:
        """Write what waits, and end. What cannot be written now is lost."""
        self.event(event=_STOPPED)
        self._closing.set()
        self._wake.set()
        self._thread.join()
        if self._entries:
            _log.error("audit entries were lost", extra={"fields": {"entries": len(self._entries)}})
        self._close_file()

    def _time(self) -> str:
        return show_moment(self._now())

    # -- the thread --

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._closing.wait(_RETRY_SECONDS if self.problem else _GATHER_SECONDS)
            self._wake.clear()
            while self._write_batch():
                pass
            if self._closing.is_set():
                return
            if self.problem:
                self._wake.set()

    def _write_batch(self) -> bool:
        """Write the entries that wait, or some of many; whether there may be more to write now."""
        batch = [self._entries.popleft() for _ in range(min(len(self._entries), _BATCH_MAX))]
        lost = self.lost
        if not batch and lost == self._told_lost:
            return False
        entries = list(batch)
        if lost > self._told_lost:
            entries.append({"time": self._time(), "event": "lost", "lost": lost - self._told_lost})
        try:
            self._append(entries)
        except Exception as error:  # (a thread that ends by an error would end the server)
            self._entries.extendleft(reversed(batch))
            self._fail(error)
            return False
        self._told_lost = lost
        if self.problem:
            self.problem = ""
            _log.info("the audit log is written again", extra={"fields": {"lost": self.lost}})
        return True

    def _fail(self, error: Exception) -> None:
        if not self.problem:
            _log.error("the audit log cannot be written", extra={"fields": {"why": str(error)}})
        why = error.strerror if isinstance(error, OSError) and error.strerror else repr(error)
        self.problem = f"{self.path} cannot be written: {why}"
        self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None

    def _line(self, entry: Entry) -> bytes:
        """The line of an entry. A request may have any form: one that cannot be shown has a line that says
        so."""
        try:
            fields = fields_of(entry, self._key_names) if isinstance(entry, Ended) else entry
            return orjson.dumps(fields) + b"\n"
        except Exception as error:
            if not self.incomplete:
                _log.error("a line of the audit log is incomplete", exc_info=error)
            self.incomplete += 1
            return orjson.dumps(incomplete_fields_of(entry, error)) + b"\n"

    def _append(self, entries: list[Entry]) -> None:
        """Write entries as one: after an error none of them counts. Raises OSError."""
        text = b"".join([self._line(entry) for entry in entries])
        if self._file is None:
            self._open()
            # Remove what a write that failed has left.
            self._truncate(self._size)
        if self._size and self._size + len(text) > self._bytes_max:
            self._rotate()
        assert self._file is not None
        left = memoryview(text)
        while left:
            left = left[os.write(self._file, left) :]
        sync(self._file)
        self._size += len(text)
        self.written += len(entries)

    # -- files --

    def _open(self) -> None:
        self._file = private(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            _lock_alone(self._file)
        except OSError:
            raise OSError(f"another server writes to {self.path}; give each one a file of its own") from None

    def _truncate(self, size: int) -> None:
        assert self._file is not None
        if os.fstat(self._file).st_size > size:
            os.ftruncate(self._file, size)

    def _rotate(self) -> None:
        self._close_file()  # Windows renames no open file
        for number in range(self._files_max - 1, 0, -1):
            source = self.path if number == 1 else _numbered(self.path, number - 1)
            if source.exists():
                os.replace(source, _numbered(self.path, number))
        if self._files_max == 1:
            self.path.unlink()
        self._size = 0
        self._open()

    def _ended_well(self) -> bool:
        """Whether the last server wrote everything, or there was none. Removes what it did not complete.
        Raises ValueError for a file that is no log."""
        size = self.path.stat().st_size
        with open(self.path, "rb") as file:
            file.seek(max(0, size - _LINE_BYTES_MAX))
            tail = file.read()
        *whole, torn = tail.split(b"\n")
        last = whole[-1] if whole else torn
        if not _LINE_BEGINS.startswith(last[: len(_LINE_BEGINS)]):
            raise ValueError(f"{self.path} is not an audit log; move the file away")
        self._size = size - len(torn)
        self._truncate(self._size)
        is_new = size == 0 and not _numbered(self.path, 1).exists()
        return is_new or (not torn and b'"event":"%b"' % _STOPPED.encode() in last)


def _numbered(path: Path, number: int) -> Path:
    """The file of a log that was renamed `number` times."""
    return path.with_name(f"{path.name}.{number}")


def _lock_alone(descriptor: int) -> None:
    """Lock a file against other servers. Raises OSError."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover (Windows)
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
