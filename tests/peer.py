"""A connection of the data plane over a fake transport, seen from the client's side."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

from hashrange import errors
from hashrange.database import Caller
from hashrange.operations.execution import Execution
from hashrange.pace import Task, TurnOver
from hashrange.protocol import Wire
from hashrange.server.frames import Frames
from hashrange.server.http import Connection
from hashrange.server.plane import Plane
from hashrange.server.settings import ServerSettings
from hashrange.storage.loops import Done

SIGNED = (
    b"Host: localhost\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Date: 20260101T000000Z\r\n"
    b"Authorization: AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/dynamodb/aws4_request, "
    b"SignedHeaders=host, Signature=00\r\n"
)


def request(
    operation: str = "ListTables", body: bytes = b"{}", extra: bytes = b"", version: bytes = b"1.1"
) -> bytes:
    return (
        b"POST / HTTP/%b\r\n%bX-Amz-Target: DynamoDB_20120810.%b\r\nContent-Length: %d\r\n%b\r\n"
        % (version, SIGNED, operation.encode(), len(body), extra)
    ) + body


class FakeTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.writes = 0
        self.closed = self.aborted = self.half_closed = self.paused = False

    def write(self, data: Any) -> None:
        assert not self.closed
        assert not self.half_closed
        self.written += data
        self.writes += 1

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.aborted = True

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.half_closed = True

    def pause_reading(self) -> None:
        assert not self.paused
        self.paused = True

    def resume_reading(self) -> None:
        assert self.paused
        self.paused = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


class FakeDatabase:
    """Answers `Now` at once, `Fail` with an error, `Break` by raising an exception; stops the first
    preparation of `Stop`; keeps the rest for later, `Long` as a task of a thread. `aside` holds the threads'
    work, which the test has to do."""

    def __init__(self) -> None:
        self.stopped = False
        self.calls: list[tuple[str, dict[str, Any], Caller]] = []
        self.unfinished: list[Done] = []
        self.tasks: list[Task] = []
        self.aside: list[Callable[[], None]] = []

    def submit(self, execution: Execution) -> Task | None:
        operation, request = execution.operation, execution.request
        done, encode = execution.done, execution.encode
        self.calls.append((operation, request, execution.caller))
        if operation == "Now":
            done(encode(request), None)
        elif operation == "Fail":
            done(None, errors.ResourceNotFoundException("Requested resource not found"))
        elif operation == "Break":
            raise ZeroDivisionError
        elif operation == "Stop" and not self.stopped:
            self.stopped = True
            request.clear()  # a request is normalised in place while it is prepared
            raise TurnOver
        elif operation == "Stop":
            done(encode(request), None)
        else:
            self.unfinished.append(
                lambda answer, error: done(encode(answer) if error is None else None, error)
            )
            if operation == "Long":
                self.tasks.append(Task())
                return self.tasks[-1]
        return None

    def start_aside(self, work: Callable[[], None]) -> Task:
        self.tasks.append(Task())
        self.aside.append(work)
        return self.tasks[-1]

    def run_aside(self, execution: Execution) -> None:
        self.submit(execution)

    def deliver(self, callback: Callable[[], None]) -> None:
        callback()


class Peer:
    """A connection under test, seen from the client's side."""

    def __init__(self, **limits: Any) -> None:
        self.database = FakeDatabase()
        self.soon: list[Callable[[], None]] = []
        self.plane = Plane(
            self.database,
            Wire(region="us-east-1", account_id="000000000000"),
            Frames(0),
            replace(ServerSettings(), **limits),
            self.soon.append,
        )
        self.plane.round_seconds = float("inf")  # the machine may be slow
        self.time = 0.0
        self.plane.sweep(self.time)
        self._connect()

    def _connect(self) -> None:
        self.transport = FakeTransport()
        self.connection = Connection(self.plane)
        self.connection.connection_made(self.transport)

    def another(self) -> Peer:
        """Another client of the server."""
        peer = copy(self)
        peer._connect()
        return peer

    def send(self, data: bytes) -> Peer:
        self.connection.data_received(data)
        return self

    def half_close(self) -> None:
        if not self.connection.eof_received():
            self.connection.connection_lost(None)

    def run_round(self) -> None:
        """Run one round of the event loop."""
        callbacks = self.soon[:]
        self.soon.clear()
        for callback in callbacks:
            callback()

    def run_soon(self) -> None:
        while self.soon:
            self.soon.pop(0)()

    def pass_time(self, until: float) -> None:
        """Check the time-outs four times a second, as an unblocked server does."""
        while self.time < until:
            self.time = min(self.time + 0.25, until)
            self.plane.sweep(self.time)

    def answers(self) -> list[tuple[int, bytes]]:
        """The answers, as (status, body); asserts that they are well formed."""
        rest = self.transport.written
        found: list[tuple[int, bytes]] = []
        while rest:
            head, _, rest = rest.partition(b"\r\n\r\n")
            match = re.match(rb"HTTP/1\.1 (\d{3}) ", head)
            assert match is not None
            length = re.search(rb"Content-Length: (\d+)", head)
            body_bytes = int(length[1]) if length else 0
            assert length or match[1] == b"100"
            found.append((int(match[1]), rest[:body_bytes]))
            rest = rest[body_bytes:]
        return found

    def statuses(self) -> list[int]:
        return [status for status, _ in self.answers()]
