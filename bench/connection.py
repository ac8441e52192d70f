"""A kept-alive HTTP/1.1 connection, which sends bytes and reads answers in order; and many requests over
several connections.

It does what wrk cannot: it can send a request before the previous one is answered (pipelining), leave in the
middle, and look at each answer.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable, Iterable
from types import TracebackType

from bench.wire import HOST

RECEIVED_BYTES = 1 << 18


class Closed(OSError):
    """The server closed the connection before the answer was complete."""


class Connection:
    """One connection. Every wait raises TimeoutError after `timeout_seconds`."""

    def __init__(self, port: int, timeout_seconds: float) -> None:
        self._socket = socket.create_connection((HOST, port), timeout_seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def set_timeout(self, seconds: float) -> None:
        self._socket.settimeout(max(0.001, seconds))

    def send(self, request: bytes) -> None:
        self._socket.sendall(request)

    def end(self) -> None:
        """Close the sending side: no further requests follow, but answers still arrive."""
        self._socket.shutdown(socket.SHUT_WR)

    def answer(self) -> tuple[int, bytes, bytes]:
        """The next answer: its status, its head and its body. Raises Closed if there is none."""
        while (end := self._received.find(b"\r\n\r\n")) < 0:
            self._receive()
        head = bytes(self._received[: end + 2])
        length = content_length(head)
        while len(self._received) < end + 4 + length:
            self._receive()
        body = bytes(self._received[end + 4 : end + 4 + length])
        del self._received[: end + 4 + length]
        return int(head[9:12]), head, body

    def _receive(self) -> None:
        received = self._socket.recv(RECEIVED_BYTES)
        if not received:
            raise Closed(f"the connection was closed, {len(self._received)} bytes into an answer")
        self._received += received

    def close(self) -> None:
        self._socket.close()


def content_length(head: bytes) -> int:
    """The length of an answer's body, according to its head; 0 if the head lacks it."""
    start = head.lower().find(b"\r\ncontent-length:")
    if start < 0:
        return 0
    return int(head[start + 17 : head.index(b"\r\n", start + 17)])


def send_all(
    port: int,
    requests: Iterable[bytes],
    connections: int = 8,
    under_way: int = 2,
    timeout_seconds: float = 60.0,
    note: Callable[[int], None] = lambda answered: None,
) -> int:
    """Send requests over several connections, `under_way` at a time on each; return how many were answered.

    Raises ValueError if an answer is not a 200, or leaves something unprocessed. `note` gets the number of
    answered requests about once a second.
    """
    opened = [Connection(port, timeout_seconds) for _ in range(connections)]
    waiting: deque[Connection] = deque()
    answered, noted = 0, time.monotonic()
    try:
        for turn, request in enumerate(requests):
            if turn >= under_way * connections:
                _expect_success(waiting.popleft())
                answered += 1
            opened[turn % connections].send(request)
            waiting.append(opened[turn % connections])
            if answered % 64 == 0 and time.monotonic() - noted >= 1:
                note(answered)
                noted = time.monotonic()
        while waiting:
            _expect_success(waiting.popleft())
            answered += 1
    finally:
        for connection in opened:
            connection.close()
    return answered


def _expect_success(connection: Connection) -> None:
    status, _, body = connection.answer()
    if status != 200 or (b'"UnprocessedItems"' in body and b'"UnprocessedItems":{}' not in body):
        raise ValueError(f"expected a 200 with nothing unprocessed, got {status} {body[:300]!r}")
