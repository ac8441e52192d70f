"""Accepts connections, up to a limit.

The servers of asyncio and uvloop accept every connection. When the process has no file descriptor left,
uvloop closes new connections without a word, and may close the listening socket for good. A `Listener`
instead answers 503 to connections above its limit, one after the other, so that they need only one
descriptor. If there is no descriptor even for this one, connections wait in the kernel, and the listener
tries again a few times a second.

Connections that arrive together are accepted together. uvloop accepts one connection per round of the event
loop, and each round serves all connections that were accepted before: of 64 clients that connect at once, the
last would wait for the requests of 64 rounds.

Refuses to know the protocol of the connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

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


def url_of(address: str, port: int) -> str:
    """The URL by which programs on this machine reach a socket that listens on `address`."""
    return bound_url("localhost" if address in ("0.0.0.0", "::") else address, port)


def bound_url(address: str, port: int) -> str:
    """The URL with `address` itself, which may stand for all addresses of this machine: 0.0.0.0 and ::."""
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


async def accepted(loop: asyncio.AbstractEventLoop, listening: socket.socket) -> socket.socket:
    """The next connection; if it has already arrived, without another round of the event loop."""
    try:
        client, _ = listening.accept()
    except BlockingIOError:
        client, _ = await loop.sock_accept(listening)
    client.setblocking(False)
    return client


@dataclass(frozen=True, slots=True)
class Guests:
    """The connections of one listener: `connections` returns how many there are, `refusal` the answer to a
    connection above the limit."""

    name: str
    protocol: Callable[[], asyncio.BaseProtocol]
    connections: Callable[[], int]
    connections_max: int
    refusal: Callable[[], bytes]


class Listener:
    """Accepts connections on `sockets` from `open` to `close`. Lives on one event loop."""

    def __init__(
        self, sockets: Sequence[socket.socket], guests: Guests, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._sockets = sockets
        self._guests = guests
        self._loop = loop
        self._accepting: list[asyncio.Task[None]] = []
        self._connecting: set[asyncio.Task[None]] = set()
        self._met: dict[str, float] = {}

    def open(self) -> None:
        """Start accepting."""
        self._accepting = [self._loop.create_task(self._accept(socket_)) for socket_ in self._sockets]

    async def close(self) -> None:
        """Stop accepting, and close the sockets; the connections stay."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, *self._connecting, return_exceptions=True)
        for socket_ in self._sockets:
            socket_.close()

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                for _ in range(_TURN_CONNECTIONS):
                    if self._connecting and self._full():
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
        return guests.connections() + len(self._connecting) >= guests.connections_max

    def _take(self, client: socket.socket) -> None:
        guests = self._guests
        if self._full():
            self._log_once("connections refused", connections_max=guests.connections_max)
            with client, contextlib.suppress(OSError):
                client.send(guests.refusal())
                # Closing a socket with unread input would make the kernel discard the answer.
                client.shutdown(socket.SHUT_WR)
                client.recv(_UNREAD_BYTES_MAX)
            return
        task = self._loop.create_task(self._connect(client))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, client: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._guests.protocol, client)
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
