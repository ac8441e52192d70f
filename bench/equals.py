"""Many connections that all send the same request: the wait of each request, and the share of each
connection.

wrk reports neither the share of each connection nor the real waits: it adds the waits of requests that it
could not send. So this is a closed loop of its own, with one request under way on each connection. All
connect at once and are measured from their first request on, because new connections may starve, too.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.connection import RECEIVED_BYTES, content_length
from bench.wire import HOST

P99_MEDIANS_MAX = 4.0
"""The goal: if all send the same request, the 99th percentile is at most this multiple of the median."""


@dataclass(frozen=True, slots=True)
class Equals:
    """The waits of equal connections. `slowest_share`: the requests of the slowest connection, as a fraction
    of the mean."""

    name: str
    p50_ms: float
    p99_ms: float
    worst_ms: float
    slowest_share: float

    @property
    def is_met(self) -> bool:
        return self.p99_ms <= P99_MEDIANS_MAX * self.p50_ms


class _Client:
    """One connection, with a request under way since `began`."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection((HOST, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.began = 0.0
        self.waits: list[float] = []
        self._received = bytearray()

    def send(self, request: bytes) -> None:
        self.began = time.perf_counter()
        self.socket.sendall(request)

    def receive(self) -> bool:
        """Read the bytes that have arrived; return whether the answer is complete. Raises OSError if it is
        not a 200."""
        received = self.socket.recv(RECEIVED_BYTES)
        self._received += received
        end = self._received.find(b"\r\n\r\n")
        if not received or (end >= 0 and self._received[9:12] != b"200"):
            raise OSError(f"no good answer: {bytes(self._received[:200])!r}")
        if end < 0 or len(self._received) < end + 4 + content_length(bytes(self._received[: end + 2])):
            return False
        self._received.clear()
        self.waits.append(time.perf_counter() - self.began)
        return True


def measure(name: str, port: int, requests: Sequence[bytes], connections: int, seconds: float) -> Equals:
    """Send `requests` in turn over `connections` connections, for `seconds`. Raises OSError."""
    clients = [_Client(port) for _ in range(connections)]
    turn = 0
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
            client.send(requests[turn % len(requests)])
            turn += 1
        end = time.perf_counter() + seconds
        while (now := time.perf_counter()) < end:
            for key, _ in selector.select(end - now):
                if key.data.receive():
                    key.data.send(requests[turn % len(requests)])
                    turn += 1
    ended = time.perf_counter()
    for client in clients:
        if not client.waits:  # never answered
            client.waits.append(ended - client.began)
        client.socket.close()
    return summarize(name, [client.waits for client in clients])


def summarize(name: str, waits_seconds: Sequence[Sequence[float]]) -> Equals:
    """The figures of the waits of each connection."""
    waits = sorted(wait * 1e3 for of_connection in waits_seconds for wait in of_connection)
    counts = [len(of_connection) for of_connection in waits_seconds]
    return Equals(
        name,
        waits[len(waits) // 2],
        waits[int(len(waits) * 0.99)],
        waits[-1],
        min(counts) * len(counts) / sum(counts),
    )
