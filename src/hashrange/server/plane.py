"""The state that the connections of the data plane share, and one request with its answer.

`Plane` is the shared state. `Exchange` gives one request to the database, to run on the event loop or on a
thread, and keeps its answer until the connection (`server.http`) may write it.

Refuses to know: sockets, HTTP's syntax, what the requests mean.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple, Protocol

from hashrange import pace, protocol
from hashrange.errors import AnswerLost
from hashrange.operations.context import NOTHING
from hashrange.operations.execution import Execution
from hashrange.pace import Task, TurnOver, answers
from hashrange.protocol import Call, Response, Wire
from hashrange.server import trace
from hashrange.server.access import Access
from hashrange.server.frames import Frames
from hashrange.server.metrics import Metrics
from hashrange.server.metrics import now as latency_now
from hashrange.server.settings import ServerSettings

_log = logging.getLogger(__name__)

ROUND_SECONDS: Final = 0.005
"""When requests have kept the event loop for this long, the others wait for the next round of the loop."""
PATIENCE: Final = 64

PORTION_BYTES: Final = 512 * 1024
"""A longer answer is written in portions: to send all of it at once holds up the other connections."""
APART_BYTES: Final = 16 * 1024
"""A body of this size is written beside its head: to copy both into one text takes longer than to write two
texts."""

_READING_MAX: Final = 4
"""How many clients may send parts of large bodies in one round of the event loop."""
_SWEEP_SECONDS_MAX: Final = 1.0
"""The most time that one `Plane.sweep` counts: if more has passed, the server was not listening."""


class Share:
    """What a connection takes of the event loop.

    `last` is how long its last request took, and `cost` how long its requests usually take, in seconds (0:
    it has started none). `put_off`: it waits until it may start a request. `number` is that of the
    connection, 0 if it has none yet.
    """

    __slots__ = ("cost", "last", "number", "put_off")

    def __init__(self) -> None:
        self.cost: float = 0.0
        self.last: float = 0.0
        self.number = 0
        self.put_off = False


class Bounds:
    """The settings that every request is compared with, in a compiled class: to read an attribute of a class
    that is not compiled takes longer than all of these comparisons. A length of `sure_digits` digits is below
    `body_bytes_max`."""

    __slots__ = (
        "bodies_bytes_max", "body_bytes_max", "buffered_bytes_max", "header_bytes_max", "headers_max",
        "pipeline_max", "sure_digits",
    )  # fmt: skip

    def __init__(self, settings: ServerSettings) -> None:
        self.sure_digits = len(str(settings.body_bytes_max)) - 1
        self.bodies_bytes_max = settings.bodies_bytes_max
        self.body_bytes_max = settings.body_bytes_max
        self.buffered_bytes_max = settings.buffered_bytes_max
        self.header_bytes_max = settings.header_bytes_max
        self.headers_max = settings.headers_max
        self.pipeline_max = settings.pipeline_max


class Client(Protocol):
    """A connection, as the plane sees it. Implementation: `server.http.Connection`.

    `share` is what it has taken of the event loop; `peer` the client's address, if requests are traced.
    """

    peer: str
    plane: Plane
    share: Share

    def advance(self) -> None: ...

    def read_on(self) -> None: ...

    def answered(self, exchange: Exchange) -> None: ...

    def check_time(self, now: float) -> None: ...

    def drain(self) -> None: ...

    def abort(self) -> None: ...


class Submits(Protocol):
    """The part of a `Database` that the data plane uses. Implementations: `Database`, the tests' own."""

    def submit(self, execution: Execution) -> Task | None: ...

    def start_aside(self, work: Callable[[], None]) -> Task: ...

    def run_aside(self, execution: Execution) -> None: ...

    def deliver(self, callback: Callable[[], None]) -> None: ...


class Plane:
    """The state that all connections of a server share, and the order in which they have their turns.

    A request starts when it arrives, unless the requests before it have used up `round_seconds`. Then its
    connection waits, until the event loop has read what else has arrived. Each waiting connection has a date,
    on a clock that only requests advance (`_worked_seconds`): it waits `PATIENCE` times as long as its
    requests take. Connections continue in the order of these dates. So connections with equal requests
    continue in the order in which they arrived, and a connection with small requests goes before connections
    with large ones, but does not hold them up forever.

    The time of a connection's requests (`Share.cost`) is the shorter time of the last two, and at most twice
    its previous value: if something else delayed a request of 10 microseconds by 10 ms, its connection should
    not wait for that. A new connection gets the time that the first requests of recent connections took.
    """

    __slots__ = (
        "_call_soon",
        "_called",
        "_first_seconds",
        "_goes_on",
        "_put_off",
        "_puts",
        "_reading",
        "_ready",
        "_round_began",
        "_swept",
        "_usual_seconds",
        "_worked_seconds",
        "access",
        "bounds",
        "connections",
        "database",
        "draining",
        "endpoint_url",
        "frames",
        "gathered_bytes",
        "metrics",
        "notes",
        "now",
        "numbered",
        "numbers",
        "round_seconds",
        "settings",
        "tracer",
        "wire",
    )

    def __init__(
        self,
        database: Submits,
        wire: Wire,
        frames: Frames,
        settings: ServerSettings,
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self.database = database
        self.wire = wire
        self.frames = frames
        self.settings = settings
        self.bounds = Bounds(settings)
        self.round_seconds = ROUND_SECONDS
        self.access = Access(settings)  # the server tells it where it listens
        self.tracer: trace.Tracer | None = None
        self.numbers = False  # whether requests need the number of their connection
        self.numbered = 0  # connections that have a number
        self.notes = False  # whether a request is noted for either
        self.metrics = Metrics()
        self.connections: set[Client] = set()
        self.draining = False
        self.endpoint_url = ""  # the server sets it when it listens
        self.gathered_bytes = 0  # in bodies that came in pieces and are not complete, and in large requests
        self.now = 0.0
        self._swept: float | None = None
        self._call_soon = call_soon
        self._ready: list[Client] = []
        self._reading: deque[Client] = deque()
        self._worked_seconds = 0.0  # the time of all requests
        self._round_began = 0.0  # `_worked_seconds` when this round of the event loop began
        self._usual_seconds = 0.0  # the time of recent requests
        self._first_seconds = 0.0  # the time of the first requests of recent connections
        self._put_off: list[tuple[float, int, Client]] = []
        self._puts = 0
        self._called: Client | None = None  # the connection whose turn it is
        self._goes_on = False  # the event loop was asked to call `_go_on`

    def number_connections(self, is_numbered: bool) -> None:
        """Tell the database with each request, from now on or no longer, which connection it came by."""
        self.numbers = is_numbered
        self.notes = is_numbered or self.tracer is not None

    def trace_with(self, tracer: trace.Tracer | None) -> None:
        """Trace the requests with `tracer`; None for nothing."""
        self.tracer = tracer
        self.notes = self.numbers or tracer is not None

    def advance_soon(self, connection: Client) -> None:
        """Let `connection` continue in the next round of the event loop: it writes the answers of a batch
        together, and starts requests that had to wait."""
        if not self._ready:
            self._call_soon(self._advance_ready)
        self._ready.append(connection)

    def read_on_soon(self, connection: Client) -> None:
        """Let `connection` read the next part of a large body after the connections before it."""
        if not self._reading:
            self._call_soon(self._read_on)
        self._reading.append(connection)

    def _read_on(self) -> None:
        for _ in range(min(len(self._reading), _READING_MAX)):
            connection = self._reading.popleft()
            try:
                connection.read_on()
            except Exception:  # the other waiting connections have to continue
                self._cut_off(connection, "a connection that could not be read further was cut off")
        if self._reading:
            self._call_soon(self._read_on)

    def _advance_ready(self) -> None:
        ready, self._ready = self._ready, []
        for connection in ready:
            self._advance(connection)

    def _advance(self, connection: Client) -> None:
        try:
            connection.advance()
        except Exception:  # the other waiting connections have to continue
            self._cut_off(connection, "a connection that could not continue was cut off")

    def _cut_off(self, connection: Client, message: str) -> None:
        """Drop a connection for which the server itself failed; called while the error is handled."""
        self.metrics.internal_errors += 1
        _log.exception(message)
        self.connections.discard(connection)
        self._call_soon(connection.abort)

    def may_start(self, connection: Client) -> bool:
        """Whether `connection` may start a request now; otherwise its `advance` is called when it may."""
        if connection is self._called:
            self._called = None
            return True
        share = connection.share
        if share.put_off:
            return False
        put_off = self._put_off
        is_in_time = self._worked_seconds - self._round_began < self.round_seconds
        if is_in_time and not put_off:
            return True
        date = self._worked_seconds + PATIENCE * (share.cost or self._first_seconds)
        if is_in_time and date <= put_off[0][0]:
            return True
        share.put_off = True
        self._puts += 1
        heappush(put_off, (date, self._puts, connection))
        if not self._goes_on:
            self._goes_on = True
            self._call_soon(self._go_on)
        return False

    def count(self, share: Share, seconds: float) -> None:
        """Count the time of a request that has started, for the share of its connection."""
        usual = self._usual_seconds or seconds
        if not share.cost:
            self._first_seconds = (self._first_seconds + seconds) / 2
        cost = 2 * (share.cost or usual)
        if 0.0 < share.last < cost:
            cost = share.last
        if seconds < cost:
            cost = seconds
        share.cost = cost
        share.last = seconds
        self._usual_seconds = (usual + cost) / 2
        self._worked_seconds += seconds

    def _go_on(self) -> None:
        """Let the waiting connections continue, in their order."""
        began = self._round_began = self._worked_seconds
        put_off = self._put_off
        while put_off and self._worked_seconds - began < self.round_seconds:
            connection = heappop(put_off)[2]
            connection.share.put_off = False
            self._called = connection
            self._advance(connection)
        self._called = None
        self._goes_on = bool(put_off)
        if put_off:
            self._call_soon(self._go_on)

    def sweep(self, now: float) -> None:
        """Enforce the timeouts; `now` is in seconds, of any steady clock."""
        if self._swept is not None:
            self.now += min(now - self._swept, _SWEEP_SECONDS_MAX)
        self._swept = now
        for connection in tuple(self.connections):
            try:
                connection.check_time(self.now)
            except Exception:  # the timeouts of other connections still have to be checked
                self._cut_off(connection, "a connection whose time could not be checked was cut off")

    def drain(self) -> None:
        """Close idle connections; the others end after their running request."""
        self.draining = True
        for connection in tuple(self.connections):
            connection.drain()

    def abort(self) -> None:
        """Cut off every connection."""
        for connection in tuple(self.connections):
            connection.abort()


class Exchange(Call):
    """A call on a connection, and its answer. `task` is set while it runs on a thread, and `noted` if it is
    logged. `sent` is the request as it was sent, until it starts; `large` is one that is read on a thread.

    `answer` are the bytes to be written, of which `written_bytes` are, and `rest` those to be written after
    them: a body of middle size is not copied into one text with its head. `framed` are both, for a call that
    succeeds, if the call has come so far.
    """

    __slots__ = (
        "answer", "close", "connection", "framed", "large", "linger", "noted", "plane", "rest", "sent",
        "started", "task", "written_bytes",
    )  # fmt: skip

    def __init__(self, connection: Client, plane: Plane, close: bool) -> None:
        super().__init__()
        self.connection = connection
        self.plane = plane
        self.close = close
        self.linger = False
        self.started = 0.0
        self.noted: trace.TracedCall | None = None
        self.sent: tuple[bytes, bytes, dict[bytes, bytes], bytes | bytearray] | None = None
        self.large: Large | None = None
        self.task: Task | None = None
        self.framed = b"", b""
        self.answer: bytes | None = None
        self.rest = b""
        self.written_bytes = 0

    def start(self, plane: Plane, began: float) -> None:
        """Run the call. A large request, or a request whose preparation takes long, is read and run on a
        thread. `began` is the time at which the server began with the request."""
        self.started = began
        sent = self.sent
        self.sent = None
        try:
            if sent is not None:
                if plane.notes:
                    self.note()
                try:
                    self.task = plane.database.submit(self)
                except TurnOver:
                    self.keep_large(Large(*sent))
            if self.large is not None:
                self.task = plane.database.start_aside(self.read_large)
        except Exception as error:
            self.done(None, error)
        now = latency_now()
        pace.give_way(now)
        plane.count(self.connection.share, now - began)

    def note(self) -> None:
        """Note the call for the logs, and give it the number of its connection, where these are wanted."""
        plane = self.plane
        if plane.tracer is not None:
            self.noted = plane.tracer.note(self, self.connection.peer)
        if plane.numbers:
            share = self.connection.share
            if share.number == 0:
                plane.numbered += 1
                share.number = plane.numbered
            self.caller = self.caller._replace(connection=share.number)

    def read_large(self) -> None:
        """Read and run a large request, on a thread."""
        large = self.large
        assert large is not None
        plane = self.plane
        database = plane.database
        try:
            response = plane.wire.read_encoded(self, *large, plane.bounds.body_bytes_max)
        except Exception as error:
            failure = error
            database.deliver(lambda: self.done(None, failure))
            return
        if response is None:
            if plane.notes:
                self.note()
            database.run_aside(self)
        else:
            refusal = response
            database.deliver(lambda: self.respond(refusal))

    def encode(self, result: dict[str, Any]) -> bytes | memoryview:
        """The body of the answer to a successful call. All of the answer is made here, where the call runs:
        the event loop would need long for the checksum and a copy of 16 MB."""
        frames = self.plane.frames
        if self.form is None and pace.is_aside() and result is not NOTHING:
            pieces = answers.pieces(result)
            whole = frames.success_in_pieces(pieces)
            self.framed = whole, b""
            return memoryview(whole)[-sum(map(len, pieces)) :]
        body = protocol.encode_result(result)
        if self.form is not None:
            self.framed = frames.response(protocol.success(body, self.form), close=False), b""
        elif APART_BYTES <= len(body) <= PORTION_BYTES:
            self.framed = frames.success_head(body), body
        else:
            self.framed = frames.success(body), b""
        return body

    def done(self, body: Any, error: Exception | None) -> None:
        """Take the outcome of the call: the answer's body, or the error."""
        if self.answer is not None:
            return
        plane = self.plane
        frames = plane.frames
        framed, self.framed = self.framed, (b"", b"")
        if error is None:
            self.answer, self.rest = framed
            if self.close:
                self.answer = framed[0].replace(b"Connection: keep-alive", b"Connection: close", 1)
        elif type(error) is AnswerLost:
            self.close = True
            self.answer = b""
        else:
            failure = protocol.encode_error(error, self.form, self.operation)
            self.answer = frames.response(failure, close=self.close)
        if self.operation:
            seconds = latency_now() - self.started
            plane.metrics.answered(self.operation, seconds, error)
            if self.noted is not None and plane.tracer is not None:
                plane.tracer.request(self.noted, body, error, seconds, self.answer)
        self.end()

    def respond(self, response: Response) -> None:
        """Take the answer to a request that has no call."""
        plane = self.plane
        plane.metrics.responded(response.status, response.error)
        self.answer = plane.frames.response(response, close=self.close)
        if plane.tracer is not None and self.large is not None:
            plane.tracer.response(response, self.answer, self.large.headers, self.connection.peer)
        self.end()

    def end(self) -> None:
        """Tell the connection that the answer is ready."""
        self.task = None
        if self.large is not None:
            self.keep_large(None)
        self.connection.answered(self)

    def keep_large(self, large: Large | None) -> None:
        """Keep a large request until it is read, or drop it (None). Its bytes count in
        `Plane.gathered_bytes`."""
        previous = self.large
        kept_bytes = len(previous.body) if previous is not None else 0
        added_bytes = len(large.body) if large is not None else 0
        self.plane.gathered_bytes += added_bytes - kept_bytes
        self.large = large


class Large(NamedTuple):
    """A request that is read on a thread."""

    method: bytes
    url: bytes
    headers: dict[bytes, bytes]
    body: bytes | bytearray
