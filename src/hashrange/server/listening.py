"""Accepting connections, no more than there may be.

asyncio's and uvloop's own servers accept whatever comes. When the process is out of file descriptors, uvloop
closes what it accepts without a word, and may close the listening socket for good. A `Listener` instead
answers 503 to connections beyond its number, one at a time, so that they take one descriptor together. When
there is no descriptor left even for that, connections wait in the kernel, and it tries again a few times a
second.

Refuses to know: what is spoken on the connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

_TURN_CONNECTIONS: Final = 16
"""How many connections are accepted before others have their turn."""

_RETRY_SECONDS: Final = 0.25
_EPISODE_SECONDS: Final = 10.0
"""A limit that was not met for so long is logged anew when it is met again."""

_UNREAD_BYTES_MAX: Final = 64 * 1024

_log = logging.getLogger(__name__)


async def bind(
    loop: asyncio.AbstractEventLoop, host: str, port: int, backlog_max: int
) -> list[socket.socket]:
    """Sockets that listen on all addresses of `host`. Raises OSError if one of them cannot be had."""
    found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listening: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((info[0], info[4]) for info in found):
            one = socket.create_server(address, family=family, backlog=backlog_max)
            one.setblocking(False)
            listening.append(one)
    except OSError:
        for one in listening:
            one.close()
        raise
    return listening


@dataclass(frozen=True, slots=True)
class Guests:
    """Who is let in: `connections` tells how many there are, `refusal` gives the answer to one too many."""

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
        """Begin to accept."""
        self._accepting = [self._loop.create_task(self._accept(one)) for one in self._sockets]

    async def close(self) -> None:
        """Accept no more, and close the sockets; the connections stay."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, *self._connecting, return_exceptions=True)
        for one in self._sockets:
            one.close()

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                for _ in range(_TURN_CONNECTIONS):
                    if self._connecting and self._full():
                        # A connection that was just made is still counted here as well.
                        await asyncio.wait(tuple(self._connecting))
                    client, _ = await self._loop.sock_accept(listening)
                    self._take(client)
            except ConnectionAbortedError:
                # That client did not wait.
                pass
            except OSError as error:
                # No descriptors or no memory, most likely: at once it would fail again.
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
        """Log once in an episode: flows of clients meet a limit thousands of times."""
        now = self._loop.time()
        before = self._met.get(event)
        self._met[event] = now
        if before is None or now - before > _EPISODE_SECONDS:
            _log.warning(event, extra={"fields": {"plane": self._guests.name, **fields}})
