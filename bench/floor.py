"""A server that answers every request with the same bytes, on Hashrange's event loop and HTTP parser: the
least that a request costs on this stack. `bench.layers` counts its instructions.

It imports nothing of this project, and runs as a file: `python bench/floor.py BYTES`, the size of the answer.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import httptools
import uvloop

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: %d\r\n\r\n"


class Constant(asyncio.Protocol):
    """A connection. It takes the headers of a request, as every server does, and reads none of them."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._headers: dict[bytes, bytes] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name] = value

    def on_message_complete(self) -> None:
        self._transport.write(self._answer)


async def _serve(answer: bytes) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Constant(answer), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    length = int(sys.argv[1])
    uvloop.run(_serve(_HEAD % length + b" " * length))
