"""A network of some milliseconds before a server: `python -m bench.delaying PORT MILLISECONDS`.

It listens on a free port of the loopback interface, prints the port, and passes every connection on to PORT.
What comes is passed on in its order, half of the round trip later. Knows bytes only.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque

from bench.wire import HOST


class _Way(asyncio.Protocol):
    """One way of a connection: what it receives goes to the other's transport, later."""

    def __init__(self, seconds: float) -> None:
        self.other: _Way | None = None
        self._seconds = seconds
        self._transport: asyncio.Transport | None = None
        self._early: list[bytes] = []
        self._waiting: deque[bytes] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        for data in self._early:
            transport.write(data)

    def data_received(self, data: bytes) -> None:
        self._waiting.append(data)
        asyncio.get_running_loop().call_later(self._seconds, self._pass_on)

    def connection_lost(self, error: Exception | None) -> None:
        if self.other is not None:
            asyncio.get_running_loop().call_later(self._seconds, self.other.end)

    def _pass_on(self) -> None:
        data = self._waiting.popleft()
        if self.other is not None:
            self.other.send(data)

    def send(self, data: bytes) -> None:
        """Send at once, or as soon as there is a connection."""
        if self._transport is None:
            self._early.append(data)
        elif not self._transport.is_closing():
            self._transport.write(data)

    def end(self) -> None:
        """Close the connection, after what was sent."""
        if self._transport is not None:
            self._transport.close()


async def delay(target: int, seconds: float) -> None:
    """Pass connections on forever, with a round trip of `seconds` more."""
    loop = asyncio.get_running_loop()
    connecting: set[asyncio.Task[object]] = set()

    def accepted() -> _Way:
        near, far = _Way(seconds / 2), _Way(seconds / 2)
        near.other, far.other = far, near
        task: asyncio.Task[object] = loop.create_task(loop.create_connection(lambda: far, HOST, target))
        connecting.add(task)
        task.add_done_callback(connecting.discard)
        return near

    server = await loop.create_server(accepted, HOST, 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(delay(int(sys.argv[1]), float(sys.argv[2]) / 1000))
