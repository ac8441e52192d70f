"""HTTP/1.1 for the data plane: one `Connection` per client connection, over httptools (llhttp).

The life of a request: `data_received` feeds the parser; the parser's callbacks gather head and body;
`on_message_complete` lets `protocol` read the request and makes an `Exchange` (`server.plane`), which gives
the call to `Database.submit`; the database ends it with `Exchange.done`, at once or later; `advance` writes
answers in the order of their requests.

Rules:
- A connection's requests are answered in their order, though they may end in any order.
- Everything that a client can make grow has a bound. When too many requests run, or the client does not take
  its answers, the requests that have been read wait (`_waiting`) and reading stops. So at most the requests
  of one read of the socket wait.
- Answers that are ready together are sent in one write.
- A connection cannot make the others wait for long: `Plane.may_start` decides whose turn it is. While a
  request runs on a thread (`Exchange.task`), the connection's later requests wait.
- A large request is read on a thread. A request whose preparation takes long is read again on a thread.
- A request on a thread is abandoned when its client closes the connection, or only its sending half.
- Bytes that are not proper HTTP are answered once (400, 408, 413, 417, 431, 501), and the connection ends. It
  stays half open for a moment, because the kernel would discard the answer if a socket with unread input
  were closed.
- Time comes from `Plane.sweep`, which is called a few times a second, so no request needs a timer. Time in
  which the server itself was busy does not count against clients.

Refuses to know: what the requests mean.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from enum import Enum
from typing import Final, cast

import httptools

from hashrange.credentials import SOURCE
from hashrange.protocol import LOWER_NAMES, Response
from hashrange.server import trace
from hashrange.server.access import HEADERS_ONCE, REPEATED_BYTES_MAX, coding_refusal
from hashrange.server.frames import CONTINUE
from hashrange.server.metrics import now as latency_now
from hashrange.server.plane import PORTION_BYTES, Exchange, Large, Plane, Share

LINGER_SECONDS_MAX: Final = 2.0
"""How long the server still reads from a client whose connection it has refused."""

LARGE_READ_BYTES: Final = 128 * 1024
"""A client that sends this many bytes of a body at once is read further when other clients had their turn."""

LARGE_BODY_BYTES: Final = 64 * 1024
"""A larger request is read on a thread: it would keep the event loop for more than a few milliseconds."""

CHUNK_FRAMING_BYTES: Final = 16
"""The framing of one chunk that does not count as headers: its size, and the ends of two lines."""

_log = logging.getLogger(__name__)


class Phase(Enum):
    """The part of the next request that a connection is reading."""

    IDLE = "between requests"
    HEAD = "in the request line or the headers"
    BODY = "in the body"
    ENDING = "reads nothing more"


class _RefusedError(Exception):
    """Raised in a parser callback to stop the parser."""


class Connection(asyncio.Protocol):
    """One client connection."""

    __slots__ = (
        "_body", "_busy", "_chunks", "_fed_bytes", "_gathered_bytes", "_head", "_headers", "_held_bytes",
        "_last", "_parser", "_pending", "_phase", "_reading_paused", "_since", "_source", "_status",
        "_transport", "_upgrades", "_url", "_waiting", "_write_paused", "_write_since", "peer", "plane",
        "share",
    )  # fmt: skip

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self.peer = ""
        self._source = b""
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpRequestParser | None = None
        self._phase = Phase.IDLE
        self._since = plane.now
        # The request being read.
        self._url = b""
        self._head: dict[bytes, bytes] = {}
        self._headers: dict[bytes, bytes] = {}
        self._body: bytes | bytearray = b""
        self._gathered_bytes = 0
        self._fed_bytes = 0
        self._chunks = 0
        self._upgrades = False
        self._status = 0
        # The unanswered requests in order, and those that have not started yet.
        self._pending: deque[Exchange] = deque()
        self._waiting: deque[Exchange] = deque()
        self._held_bytes = 0
        self._last = False
        self._busy = False
        self._reading_paused = False
        self._write_paused = False
        self._write_since = 0.0
        self.share = Share()

    # -- the transport's calls --

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods of a Transport, but not its class.
        transport = cast(asyncio.Transport, transport)
        self._transport = transport
        plane = self.plane
        if plane.tracer is not None:
            self.peer = trace.address(transport.get_extra_info("peername"))
        if len(plane.connections) >= plane.settings.connections_max or plane.draining:
            self._phase = Phase.ENDING
            plane.connections.add(self)
            plane.metrics.responded(503)
            transport.write(plane.frames.refusal(503))
            transport.close()
            return
        plane.connections.add(self)
        if plane.wire.identifies:
            # Policies may have conditions on it. (the address of a Unix socket is not a tuple)
            peer = transport.get_extra_info("peername")
            self._source = str(peer[0]).encode() if isinstance(peer, tuple) else b""
        self._parser = httptools.HttpRequestParser(self)
        transport.set_write_buffer_limits(high=plane.bounds.buffered_bytes_max)

    def connection_lost(self, exc: Exception | None) -> None:
        self.plane.connections.discard(self)
        self._phase = Phase.ENDING
        self._last = True
        # The parser refers to this object's methods: break the cycle, which otherwise only the garbage
        # collector could free.
        self._transport = self._parser = None
        self._drop_body()
        for exchange in self._pending:
            if exchange.task is not None:
                exchange.task.abandon()
            exchange.keep_large(None)
        self._pending.clear()
        self._waiting.clear()

    def data_received(self, data: bytes) -> None:
        self._take(data)
        if len(data) >= LARGE_READ_BYTES and self._phase is Phase.BODY and not self._reading_paused:
            # Otherwise the event loop would read many megabytes from this client before it serves others.
            self._pause_reading()
            self.plane.read_on_soon(self)

    def _take(self, data: bytes) -> None:
        """Parse the bytes that have arrived, and start the requests in them."""
        if self._last or self._parser is None:
            return
        self._fed_bytes += len(data)
        self._busy = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._decline_upgrades(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._not_http(error)
        if self._fed_bytes > self.plane.bounds.header_bytes_max and self._status == 0:
            self._check_fed_bytes()
        self._busy = False
        pending = self._pending
        if len(pending) == 1 and not self._reading_paused:
            # A shortcut for the usual case: one request has arrived, whether its answer is ready or not.
            exchange = pending[0]
            if exchange.answer is None:
                return
            if (
                len(exchange.answer) <= PORTION_BYTES
                and not exchange.close
                and self._transport is not None
                and not self._waiting
            ):
                self._write_only(self._transport, exchange.answer, exchange.rest)
                return
        if pending:
            self.advance()

    def eof_received(self) -> bool:
        """The client sends no more; requests that it has sent are still answered."""
        if self._phase is Phase.ENDING or not self._pending:
            return False
        if any(exchange.task is not None for exchange in self._pending):
            # Hardly any client closes only one half: most likely it has left and will not take the answer.
            return False
        self._last = True
        self._pending[-1].close = True
        # With TLS there is no half of a connection: its end is the end of both.
        return self._transport is not None and self._transport.can_write_eof()

    def pause_writing(self) -> None:
        self._write_paused = True
        self._write_since = self.plane.now
        self._pause_reading()

    def resume_writing(self) -> None:
        self._write_paused = False
        self.advance()

    # -- the parser's calls --

    def on_message_begin(self) -> None:
        self._phase = Phase.HEAD
        self._since = self.plane.now
        self._url = b""
        self._head = {SOURCE: self._source} if self._source else {}

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        lower = LOWER_NAMES.get(name)
        if lower is None:
            lower = name.lower()
        head = self._head
        number = len(head)
        before = head.setdefault(lower, value)
        if len(head) == number:
            head[lower] = b"%b,%b" % (before.strip(), value.strip())  # as signatures cover such a header
            if lower in HEADERS_ONCE or len(before) > REPEATED_BYTES_MAX:
                self._refuse(400)

    def on_headers_complete(self) -> None:
        parser = self._parser
        assert parser is not None
        self._upgrades = parser.should_upgrade()
        if self._upgrades and parser.get_method() != b"CONNECT":
            return
        # Headers that follow are trailers: they go into a dict that is not read.
        headers = self._headers = self._head
        self._head = {}
        self._body = b""
        self._phase = Phase.BODY
        self._since = self.plane.now
        bounds = self.plane.bounds
        if len(headers) > bounds.headers_max:
            self._refuse(431)
        if self._fed_bytes > bounds.header_bytes_max:
            lines_bytes = sum(len(name) + len(value) + 4 for name, value in headers.items())
            if len(self._url) + lines_bytes > bounds.header_bytes_max:
                self._refuse(431)
        self._fed_bytes = 0
        if b"host" not in headers and self._http_version() == "1.1":
            self._refuse(400)
        length = headers.get(b"content-length")
        if length is None:
            self._chunks = 0
            coding = headers.get(b"transfer-encoding")
            if coding is not None and (status := coding_refusal(coding, self._http_version())):
                self._refuse(status)
        elif len(length) > bounds.sure_digits and int(length) > bounds.body_bytes_max:
            self._refuse(413)
        expectation = headers.get(b"expect")
        if expectation is not None and not self._last:
            if expectation.lower() != b"100-continue":
                self._refuse(417)
            interim = Exchange(self, self.plane, False)
            interim.answer = CONTINUE
            self._held_bytes += len(CONTINUE)
            self._pending.append(interim)

    def on_chunk_header(self) -> None:
        self._chunks += 1

    def on_body(self, body: bytes) -> None:
        if not self._body:
            # Most bodies come in one piece, which need not be copied.
            self._body = body
        else:
            self._gather(body)
        if len(self._body) > self.plane.bounds.body_bytes_max:
            self._refuse(413)

    def _gather(self, piece: bytes) -> None:
        if not isinstance(self._body, bytearray):
            self._body = bytearray(self._body)
        self._body += piece
        plane = self.plane
        added_bytes = len(self._body) - self._gathered_bytes
        self._gathered_bytes += added_bytes
        plane.gathered_bytes += added_bytes
        if plane.gathered_bytes > plane.bounds.bodies_bytes_max:
            self._refuse(503)

    def _drop_body(self) -> None:
        self._body = b""
        if self._gathered_bytes:
            self.plane.gathered_bytes -= self._gathered_bytes
            self._gathered_bytes = 0

    def on_message_complete(self) -> None:
        plane = self.plane
        self._phase = Phase.IDLE
        self._since = plane.now
        self._fed_bytes = 0
        parser = self._parser
        if self._last or parser is None:
            return
        method = parser.get_method()
        tunnel = False
        if self._upgrades:
            tunnel = method == b"CONNECT"
            if not tunnel:
                return
        body = self._body
        close = tunnel or plane.draining or not parser.should_keep_alive()
        exchange = Exchange(self, self.plane, close)
        self._last = close
        began = latency_now()
        may_start = not self._waiting and self._may_start()
        self._pending.append(exchange)
        headers = self._headers
        refusal: Response | None = None
        if headers.get(b"host") not in plane.access.hosts_met or b"origin" in headers:
            refusal = plane.access.refusal(headers)
        if refusal is None:
            if len(body) > LARGE_BODY_BYTES or b"content-encoding" in headers:
                exchange.keep_large(Large(method, self._url, headers, body))
            else:
                exchange.sent = method, self._url, headers, body
                refusal = plane.wire.read_into(exchange, method, self._url, headers, body)
        self._drop_body()
        if refusal is None:
            if may_start:
                exchange.start(plane, began)
            else:
                self._waiting.append(exchange)
            return
        plane.metrics.responded(refusal.status, refusal.error)
        exchange.answer = plane.frames.response(refusal, close=close, head_only=method == b"HEAD")
        if plane.tracer is not None:
            plane.tracer.response(refusal, exchange.answer, headers, self.peer)
        self.answered(exchange)

    # -- refusals --

    def _http_version(self) -> str:
        assert self._parser is not None
        return self._parser.get_http_version()

    def _refuse(self, status: int) -> None:
        """Stop the parser: answer the request with `status` and read no other one."""
        self._status = status
        raise _RefusedError

    def _not_http(self, error: httptools.HttpParserError) -> None:
        if self._last:
            # Ignore the bytes after a request that ends the connection.
            return
        if self._status == 0 and isinstance(error, httptools.HttpParserCallbackError):
            _log.error("internal error", exc_info=error.__context__ or error)
            self._status = 500
        self._end_with(self._status or 400)

    def _decline_upgrades(self, rest: bytes) -> None:
        """Ignore the offer of another protocol (`Upgrade: h2c`) in a request.

        The parser stops at the end of such a head and skips the body. So a new parser reads the same head
        again, without the offer, and then the rest.
        """
        while not self._last:
            parser = self._parser
            if parser is None or not parser.should_upgrade():
                return
            lines = [b"%b %b HTTP/%b" % (parser.get_method(), self._url, self._http_version().encode())]
            lines += [b"%b: %b" % header for header in self._head.items() if header[0] != b"upgrade"]
            data = b"\r\n".join(lines) + b"\r\n\r\n" + rest
            self._parser = parser = httptools.HttpRequestParser(self)
            try:
                parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                rest = data[upgrade.args[0] :]
            except httptools.HttpParserError as error:
                self._not_http(error)
                return

    def _check_fed_bytes(self) -> None:
        """Refuse a request with too many bytes outside its body, complete or not: headers, trailers, and the
        extensions of chunks."""
        bounds = self.plane.bounds
        if self._phase is Phase.HEAD:
            self._end_with(431)
        elif self._phase is Phase.BODY:
            framing_bytes_max = bounds.header_bytes_max + self._chunks * CHUNK_FRAMING_BYTES
            if self._fed_bytes - len(self._body) > framing_bytes_max:
                self._end_with(431)

    def _end_with(self, status: int) -> None:
        exchange = Exchange(self, self.plane, True)
        exchange.linger = True
        exchange.answer = self.plane.frames.refusal(status)
        self.plane.metrics.responded(status)
        self._held_bytes += len(exchange.answer)
        self._drop_body()
        self._status = status
        self._phase = Phase.IDLE
        self._last = True
        self._pending.append(exchange)

    # -- answers --

    def _may_start(self) -> bool:
        bounds = self.plane.bounds
        pending = self._pending
        started = len(pending) - len(self._waiting)
        if (
            started >= bounds.pipeline_max
            or self._held_bytes > bounds.buffered_bytes_max
            or self._write_paused
        ):
            return False
        if started > 0 and pending[started - 1].task is not None:
            return False
        return self.plane.may_start(self)

    def answered(self, exchange: Exchange) -> None:
        """An exchange has its answer, which is sent after the answers to earlier requests."""
        if self._transport is None:
            return
        assert exchange.answer is not None
        answer_bytes = len(exchange.answer) + len(exchange.rest)
        self._held_bytes += answer_bytes
        if self._busy:
            return
        if len(self._pending) != 1:
            self.plane.advance_soon(self)
        elif (
            answer_bytes > PORTION_BYTES
            or exchange.close
            or self._waiting
            or self._reading_paused
            or self._write_paused
        ):
            self.advance()
        else:
            # A shortcut for the usual case: no later request waits, and no answer is held back.
            self._write_only(self._transport, exchange.answer, exchange.rest)

    def _write_only(self, transport: asyncio.Transport, answer: bytes, body: bytes) -> None:
        """Write the answer to the only request."""
        self._pending.clear()
        self._held_bytes = 0
        if body:
            transport.writelines((answer, body))
        else:
            transport.write(answer)

    def advance(self) -> None:
        """Write the answers that may be written and start the requests that may start, until none is left."""
        pending = self._pending
        waiting = self._waiting
        self._busy = True
        while self._transport is not None:
            if pending and pending[0].answer is not None:
                self._write_ready(self._transport)
            if not waiting or not self._may_start():
                break
            waiting.popleft().start(self.plane, latency_now())
        self._busy = False
        if waiting or self._write_paused or len(pending) >= self.plane.bounds.pipeline_max:
            self._pause_reading()
        elif self._reading_paused:
            self._resume_reading()

    def _write_ready(self, transport: asyncio.Transport) -> None:
        """Write the answers that are ready; of a long one, a portion."""
        pending = self._pending
        if pending[0].answer is not None and len(pending[0].answer) > PORTION_BYTES:
            self._write_portion(transport, pending[0], pending[0].answer)
            return
        answers: list[bytes] = []
        last: Exchange | None = None
        while pending and last is None:
            exchange = pending[0]
            if exchange.answer is None:
                break
            if len(exchange.answer) > PORTION_BYTES:
                self.plane.advance_soon(self)
                break
            pending.popleft()
            answers += (exchange.answer, exchange.rest)
            if exchange.close:
                last = exchange
        self._held_bytes = 0 if not pending else self._held_bytes - sum(map(len, answers))
        transport.writelines(answers)
        if last is not None:
            self._end(transport, last.linger)

    def _write_portion(self, transport: asyncio.Transport, exchange: Exchange, answer: bytes) -> None:
        """Write a portion of a long answer. The next one follows in another round of the event loop, or when
        the client has taken this one."""
        if self._write_paused:
            return
        begin = exchange.written_bytes
        end = exchange.written_bytes = min(begin + PORTION_BYTES, len(answer))
        self._held_bytes -= end - begin
        is_written = end == len(answer)
        if is_written:
            self._pending.popleft()
        transport.write(memoryview(answer)[begin:end])
        if is_written and exchange.close:
            self._end(transport, exchange.linger)
        elif self._pending and self._pending[0].answer is not None and not self._write_paused:
            self.plane.advance_soon(self)

    def _end(self, transport: asyncio.Transport, linger: bool) -> None:
        self._phase = Phase.ENDING
        self._since = self.plane.now
        self._last = True
        self._waiting.clear()
        self._pending.clear()
        if linger and transport.can_write_eof():
            transport.write_eof()
        else:
            transport.close()

    def _pause_reading(self) -> None:
        if not self._reading_paused and self._transport is not None and self._phase is not Phase.ENDING:
            self._reading_paused = True
            self._transport.pause_reading()

    def read_on(self) -> None:
        """Read the next part of a large body, unless reading has to pause for another reason."""
        since = self._since
        if self._reading_paused:
            self.advance()
        if self._phase is Phase.BODY:
            self._since = since  # the time between two parts counts: the whole body has to arrive in time

    def _resume_reading(self) -> None:
        self._reading_paused = False
        # The time in which reading was paused does not count against the client.
        self._since = self.plane.now
        if self._transport is not None and self._phase is not Phase.ENDING:
            self._transport.resume_reading()

    # -- time --

    def check_time(self, now: float) -> None:
        """End the connection if its client takes too long."""
        transport = self._transport
        if transport is None:
            return
        settings = self.plane.settings
        waited = now - self._since
        if self._write_paused and now - self._write_since > settings.write_seconds_max:
            self.abort()
        elif self._phase is Phase.ENDING:
            # A client of TLS should confirm the end. One that has only idle connections never does.
            is_confirming = not transport.can_write_eof() and transport.get_write_buffer_size() == 0
            lingers = self._status or is_confirming
            if waited > (LINGER_SECONDS_MAX if lingers else settings.write_seconds_max):
                self.abort()
        elif self._reading_paused:
            return
        elif self._phase is Phase.HEAD:
            if waited > settings.header_seconds_max:
                self._time_out()
        elif self._phase is Phase.BODY:
            if waited > settings.body_seconds_max:
                self._time_out()
        elif waited > settings.idle_seconds_max and not self._pending:
            self._end(transport, False)

    def _time_out(self) -> None:
        self._end_with(408)
        self.advance()

    def drain(self) -> None:
        """End the connection as soon as none of its requests is running."""
        if self._phase is not Phase.IDLE or self._last or self._transport is None:
            return
        if self._pending:
            self._last = True
            self._pending[-1].close = True
        else:
            self._end(self._transport, False)

    def abort(self) -> None:
        """Cut the connection off."""
        if self._transport is not None:
            self._transport.abort()
