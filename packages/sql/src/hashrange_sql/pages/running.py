"""Runs a statement of the page in a process of its own, with limits.

The process asks for items by its pipes, and the answers are those that the console's other pages would get,
so nobody reads more here than there. Only requests that read are answered.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from hashrange.errors import ServiceError
from hashrange.server.admin import data
from hashrange.server.admin.application import subject_of
from hashrange_console.reach import Refused, View
from hashrange_sql import messages
from hashrange_sql.messages import SECONDS_MAX, Done, Failure, Form, Job, Message

READ_BYTES_MAX: Final = 512 << 20
FILE_BYTES_MAX: Final = 64 << 20
AT_ONCE_MAX: Final = 2
"""The most statements at once, of all users."""
_READS: Final = frozenset(("DescribeTable", "ListTables", "Query", "Scan"))
_LESS: Final = "Ask for less, by a key or LIMIT; `hashrange sql` in a shell has no such limit."
_BUSY: Final = f"{AT_ONCE_MAX} statements run at the moment: try again when one has ended."
_LATE: Final = f"The statement took more than {{}} s, and was stopped. {_LESS}"
_READ: Final = f"The statement reads more than {READ_BYTES_MAX >> 20} MiB. {_LESS}"
_FILE: Final = f"The file has more than {FILE_BYTES_MAX >> 20} MiB. {_LESS}"
_DIED: Final = f"The statement needed more memory than it may have, or it failed. {_LESS}"
_COMMAND: Final = (sys.executable, "-P", "-m", "hashrange_sql.child")

_places = threading.BoundedSemaphore(AT_ONCE_MAX)

Ask = Callable[[str, bytes], bytes]
"""The API's answer to an operation and its request. Raises ServiceError."""


class TooMuch(Exception):
    """The answers for a statement are too large."""


class Statement:
    """A statement, which runs once. `seconds` are those that it may take."""

    def __init__(self, ask: Ask, seconds: float = SECONDS_MAX) -> None:
        self._ask, self._seconds = ask, seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = ""
        self._lock = threading.Lock()
        self._read_bytes = 0

    def stop(self, why: str) -> None:
        """Stop it from another thread; `why` becomes the text of its error."""
        with self._lock:
            self._stopped = self._stopped or why
            if self._process is not None:
                self._process.kill()

    def run(self, sql: str, region: str, form: Form, *, only_plan: bool) -> tuple[Done, bytes]:
        """What came of it, and the file of a form. Waits. Raises Refused."""
        if not _places.acquire(blocking=False):
            raise Refused(_BUSY)
        try:
            with tempfile.TemporaryDirectory(prefix="hashrange-sql-", ignore_cleanup_errors=True) as folder:
                done = self._performed(Job(sql, folder, region, only_plan, form))
                return done, _content(done.file) if form else b""
        finally:
            _places.release()

    def _performed(self, job: Job) -> Done:
        process = subprocess.Popen(_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with self._lock:
            self._process = process
            if self._stopped:
                process.kill()
        timer = threading.Timer(self._seconds, self.stop, [_LATE.format(f"{self._seconds:g}")])
        timer.start()
        try:
            message = self._talk(process, job)
        except TooMuch:
            raise Refused(_READ) from None
        except (CancelledError, OSError):  # (the server ends; the process has ended)
            message = None
        finally:
            timer.cancel()
            process.kill()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]
            process.wait()
        if message is None or message.done is None:
            raise Refused(message.refused if message else self._stopped or _DIED)
        return message.done

    def _talk(self, process: subprocess.Popen[bytes], job: Job) -> Message | None:
        """Answer the questions of the process; its last message, None if it ended without one."""
        assert process.stdin is not None
        assert process.stdout is not None
        messages.send(process.stdin, msgspec.json.encode(job))
        while (line := process.stdout.readline(messages.LINE_BYTES_MAX)).endswith(b"\n"):
            message = msgspec.json.decode(line, type=Message)
            if not message.ask:
                return message
            try:
                body, failed = self._answer(message), False
            except ServiceError as error:
                wire = error.wire()
                text = str(wire.get("message") or wire.get("Message") or "")
                body, failed = msgspec.json.encode(Failure(error.code, f"{error.code}: {text}")), True
            messages.send(process.stdin, body, failed=failed)
        return None

    def _answer(self, message: Message) -> bytes:
        assert message.ask in _READS, message.ask
        body = self._ask(message.ask, bytes(message.request))
        self._read_bytes += len(body)
        if self._read_bytes > READ_BYTES_MAX:
            raise TooMuch
        return body


def _content(file: str) -> bytes:
    """The bytes of a file. Raises Refused."""
    if Path(file).stat().st_size > FILE_BYTES_MAX:
        raise Refused(_FILE)
    return Path(file).read_bytes()


async def run(view: View, sql: str, form: Form = "", *, only_plan: bool = False) -> tuple[Done, bytes]:
    """Run a statement for a page, until the browser has gone. Raises Refused."""
    loop = asyncio.get_running_loop()
    subject = subject_of(view.request)
    try:
        region = data.caller_of(subject, view.scope).region
    except ServiceError as error:
        raise Refused(str(error)) from None

    def ask(operation: str, sent: bytes) -> bytes:
        asked = data.ask(subject, operation, sent, view.scope)
        return asyncio.run_coroutine_threadsafe(asked, loop).result()

    statement = Statement(ask)
    work = asyncio.ensure_future(asyncio.to_thread(statement.run, sql, region, form, only_plan=only_plan))
    gone = asyncio.ensure_future(_gone(view))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            statement.stop("The browser has gone.")
        return await work
    finally:
        gone.cancel()
        if not work.done():
            statement.stop("The server ends.")


async def _gone(view: View) -> None:
    """Wait until the browser has gone."""
    while (await view.request.receive())["type"] != "http.disconnect":
        pass
