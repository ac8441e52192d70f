"""Server-sent events: what a page shows, sent to it as it happens.

A stream asks its source ten times a second what is new, and sends it as HTML that the page inserts. A browser
has one stream: a second one ends the first, because browsers open few connections to a server. A stream ends
when its browser goes, and when the server stops; a browser that does not read is cut off by the admin plane.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, Protocol

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hashrange_console import looks

TICK_SECONDS: Final = 0.1
BEAT_SECONDS: Final = 10.0
"""How long a stream may be silent before it sends a comment, which shows both ends that it is alive."""
STREAMS_MAX: Final = 8
"""The most streams of a server; the admin plane has 16 connections for everything."""
_LINE_ENDS: Final = re.compile("\r\n|\r|\n")
"""What ends a line of an event stream (HTML Standard, "Server-sent events")."""
_RETRY: Final = b"retry: 2000\n\n"
_ELSEWHERE: Final = "Another page of this browser shows live rows now, so this one has stopped."
_FULL: Final = "too many browsers look at live pages of this server; close some of them"


class Event(NamedTuple):
    """Something that the page's script handles by its name, with a text, which is HTML for `rows` and
    `part`."""

    name: Literal["rows", "part", "state", "end"]
    text: str

    def wire(self) -> bytes:
        lines = "".join([f"data: {line}\n" for line in _LINE_ENDS.split(self.text)])
        return f"event: {self.name}\n{lines}\n".encode()


class EventSource(Protocol):
    """What a stream sends. `begin` is called before its first `poll`, and `end` after the last."""

    def begin(self) -> None: ...

    async def poll(self) -> list[Event]:
        """What is new; an event named `end` is the last."""
        ...

    def end(self) -> None: ...


class Streams:
    """The open streams of one server, by the sessions of their browsers."""

    def __init__(self) -> None:
        self._open: dict[str, Stream] = {}

    def take(self, stream: Stream) -> None:
        """Admit a stream, and end the one that its browser has. Raises HTTPException."""
        former = self._open.pop(stream.session, None)
        if former is not None:
            former.end(_ELSEWHERE)
        if len(self._open) >= STREAMS_MAX:
            raise HTTPException(503, _FULL)
        self._open[stream.session] = stream

    def drop(self, stream: Stream) -> None:
        """Forget a stream that has ended."""
        if self._open.get(stream.session) is stream:
            del self._open[stream.session]


class Stream(Response):
    """The answer with the events of a `source`. It is over when `is_over` says so, that is when the server
    stops."""

    def __init__(
        self, streams: Streams, session: str, source: EventSource, is_over: Callable[[], bool]
    ) -> None:
        headers = {**looks.HEADERS, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(b"", 200, headers, "text/event-stream; charset=utf-8")
        del self.headers["content-length"]
        self.session = session
        self._streams = streams
        self._source = source
        self._is_over = is_over
        self._end: str | None = None

    def end(self, text: str) -> None:
        """End the stream at its next tick; the page shows the text."""
        self._end = text

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        if scope["method"] == "HEAD":
            await send(start)
            await send({"type": "http.response.body", "body": b""})
            return
        self._streams.take(self)
        self._source.begin()
        disconnected = asyncio.ensure_future(_gone(receive))
        try:
            await send(start)
            await _send(send, _RETRY)
            await self._go_on(send, disconnected)
        finally:
            disconnected.cancel()
            self._streams.drop(self)
            self._source.end()

    async def _go_on(self, send: Send, disconnected: asyncio.Future[None]) -> None:
        silent_seconds = 0.0
        while not disconnected.done() and self._end is None and not self._is_over():
            events = await self._source.poll()
            silent_seconds = 0.0 if events else silent_seconds + TICK_SECONDS
            if events:
                await _send(send, b"".join([event.wire() for event in events]))
            elif silent_seconds >= BEAT_SECONDS:
                silent_seconds = 0.0
                await _send(send, b":\n\n")
            if any(event.name == "end" for event in events):
                break
            await asyncio.wait([disconnected], timeout=TICK_SECONDS)
        if disconnected.done():
            return
        last = Event("end", self._end).wire() if self._end is not None else b""
        await send({"type": "http.response.body", "body": last})


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _gone(receive: Receive) -> None:
    """Wait until the browser has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
