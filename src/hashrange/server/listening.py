"""Accepts connections, up to a limit.

The servers of asyncio and uvloop accept every connection. When the process has no file descriptor left,
uvloop closes new connections without a word, and may close the listening socket for good. A `Listener`
instead answers 503 to connections above its limit, one after the other, so that they need only one
descriptor. If there is no descriptor even for this one, connections wait in the kernel, and the listener
tries again a few times a second.

Connections that arrive together are accepted together. uvloop accepts one connection per round of the event
loop, and each round serves all connections that were accepted before: of 64 clients that connect at once, the
last would wait for the requests of 64 rounds.

With TLS a connection is made when its handshake has ended. Handshakes have a time and a number: see
`server.tls`.

Refuses to know the protocol of the connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hashrange.server.tls import HANDSHAKE_SECONDS_MAX, HANDSHAKES_MAX, Certificates

_TURN_CONNECTIONS: Final = 64
"""How many connections are accepted before the event loop continues with other work."""

_RETRY_SECONDS: Final = 0.25
_EPISODE_SECONDS: Final = 10.0
"""A limit is logged again when it was not reached for this long."""

_UNREAD_BYTES_MAX: Final = 64 * 1024

_log = logging.getLogger(__name__)


async def bind(
    loop: asyncio.AbstractEventLoop, host: str, port: int, backlog_max: int
) -> list[socket.socket]:
    """Sockets that listen on all addresses of `host`. Raises OSError if it cannot listen on one of them."""
    addresses = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listening: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((info[0], info[4]) for info in addresses):
            bound = socket.create_server(address, family=family, backlog=backlog_max)
            bound.setblocking(False)
            listening.append(bound)
    except OSError:
        for bound in listening:
            bound.close()
        raise
    return listening


def url_of(address: str, port: int, *, secure: bool = False) -> str:
    """The URL by which programs on this machine reach a socket that listens on `address`. `secure`: they
    speak TLS."""
    return bound_url("localhost" if address in ("0.0.0.0", "::") else address, port, secure=secure)


def bound_url(address: str, port: int, *, secure: bool = False) -> str:
    """The URL with `address` itself, which may stand for all addresses of this machine: 0.0.0.0 and ::."""
    scheme = "https" if secure else "http"
    return f"{scheme}://[{address}]:{port}" if ":" in address else f"{scheme}://{address}:{port}"


async def accepted(loop: asyncio.AbstractEventLoop, listening: socket.socket) -> socket.socket:
    """The next connection; if it has already arrived, without another round of the event loop."""
    while True:
        try:
            client, _ = listening.accept()
        except BlockingIOError:
            try:
                await _readable(loop, listening)
            except NotImplementedError:  # pragma: no cover (Windows' event loop cannot watch sockets)
                client, _ = await loop.sock_accept(listening)
                break
        else:
            break
    client.setblocking(False)
    return client


async def _readable(loop: asyncio.AbstractEventLoop, listening: socket.socket) -> None:
    """Wait for a connection without taking it: one that `loop.sock_accept` has taken is lost, and stays open,
    if the caller is cancelled in the same round of the event loop."""
    readable = loop.create_future()

    def report() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(listening, report)
    try:
        await readable
    finally:
        loop.remove_reader(listening)


def _no_room() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Guests:
    """The connections of one listener: `connections` returns how many there are, `refusal` the answer to a
    connection above the limit. `certificates` are those of a listener that speaks TLS. It closes connections
    above the limit without an answer, which would need a handshake. `shutdown_seconds_max` is the time that a
    client of such a listener has to take the rest of its answers and to confirm the end. `make_room` closes a
    connection that can be spared, if there is one, and returns whether it has."""

    name: str
    protocol: Callable[[], asyncio.BaseProtocol]
    connections: Callable[[], int]
    connections_max: int
    refusal: Callable[[], bytes]
    certificates: Certificates | None = None
    shutdown_seconds_max: float = 60.0
    make_room: Callable[[], bool] = _no_room


class Listener:
    """Accepts connections on `sockets` from `open` to `close`. Lives on one event loop."""

    def __init__(
        self, sockets: Sequence[socket.socket], guests: Guests, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._sockets = sockets
        self._guests = guests
        self._loop = loop
        self._accepting: list[asyncio.Task[None]] = []
        self._connecting: dict[asyncio.Task[None], None] = {}  # in the order in which they began
        self._met: dict[str, float] = {}

    def open(self) -> None:
        """Start accepting."""
        self._accepting = [self._loop.create_task(self._accept(socket_)) for socket_ in self._sockets]

    async def close(self) -> None:
        """Stop accepting, and close the sockets; the connections stay."""
        handshakes = self._connecting if self._guests.certificates is not None else ()
        for task in (*self._accepting, *handshakes):
            task.cancel()
        await asyncio.gather(*self._accepting, *self._connecting, return_exceptions=True)
        for socket_ in self._sockets:
            socket_.close()

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                for _ in range(_TURN_CONNECTIONS):
                    if self._guests.certificates is None and self._connecting and self._full():
                        # A connection that was just made is still counted here too.
                        await asyncio.wait(tuple(self._connecting))
                    self._take(await accepted(self._loop, listening))
            except ConnectionAbortedError:
                # The client has already left.
                pass
            except OSError as error:
                # Most likely there are no descriptors or no memory: wait, because trying at once would fail
                # again.
                self._log_once("accepting failed", error=str(error))
                await asyncio.sleep(_RETRY_SECONDS)
            await asyncio.sleep(0)

    def _full(self) -> bool:
        guests = self._guests
        if guests.certificates is not None:
            # Handshakes have a limit of their own; many that end together may exceed this limit by their
            # number.
            return guests.connections() >= guests.connections_max
        return guests.connections() + len(self._connecting) >= guests.connections_max

    def _take(self, client: socket.socket) -> None:
        guests = self._guests
        is_full = self._full()
        if is_full and guests.make_room():
            self._log_once("idle connections closed", connections_max=guests.connections_max)
        elif is_full:
            self._log_once("connections refused", connections_max=guests.connections_max)
            with client, contextlib.suppress(OSError):
                refusal = guests.refusal()
                if guests.certificates is not None:
                    return
                client.send(refusal)
                # Closing a socket with unread input would make the kernel discard the answer.
                client.shutdown(socket.SHUT_WR)
                client.recv(_UNREAD_BYTES_MAX)
            return
        handshakes_max = min(HANDSHAKES_MAX, guests.connections_max)
        if guests.certificates is not None and len(self._connecting) >= handshakes_max:
            self._log_once("handshakes given up", handshakes_max=handshakes_max)
            oldest = next(iter(self._connecting))
            del self._connecting[oldest]
            oldest.cancel()
        task = self._loop.create_task(self._connect(client))
        self._connecting[task] = None

        def ended(task: asyncio.Task[None]) -> None:
            self._connecting.pop(task, None)
            if task.cancelled():
                client.close()  # it may have been given up before it began

        task.add_done_callback(ended)

    async def _connect(self, client: socket.socket) -> None:
        certificates = self._guests.certificates
        try:
            if certificates is None:
                await self._loop.connect_accepted_socket(self._guests.protocol, client)
                return
            await self._loop.connect_accepted_socket(
                self._guests.protocol,
                client,
                ssl=certificates.context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX,
                ssl_shutdown_timeout=self._guests.shutdown_seconds_max,
            )
        except asyncio.CancelledError:
            # The event loop closes nothing if the handshake has not begun. The end of the stream ends it.
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
            raise
        except ConnectionResetError:
            client.close()  # the client has left, as balancers do that only try to connect
        except ssl.SSLError as error:
            # The client speaks another protocol, such as plain HTTP, or does not trust the certificate.
            client.close()
            self._log_once("handshake failed", error=error.reason or str(error))
        except Exception as error:
            client.close()
            self._log_once("connecting failed", error=str(error))

    def _log_once(self, event: str, **fields: object) -> None:
        """Log only the first of a series of equal events: clients may reach a limit thousands of times."""
        now = self._loop.time()
        before = self._met.get(event)
        self._met[event] = now
        if before is None or now - before > _EPISODE_SECONDS:
            _log.warning(event, extra={"fields": {"plane": self._guests.name, **fields}})
