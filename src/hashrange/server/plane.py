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
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from hashrange import pace, protocol
from hashrange.database import Caller
from hashrange.errors import AnswerLost
from hashrange.long_answers import Pieces
from hashrange.pace import Task, TurnOver
from hashrange.protocol import Call, Form, Response, Wire
from hashrange.server import trace
from hashrange.server.access import Access
from hashrange.server.frames import Frames
from hashrange.server.metrics import Metrics
from hashrange.server.metrics import now as latency_now
from hashrange.server.settings import ServerSettings

_log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from hashrange.server.http import Connection

ROUND_SECONDS: Final = 0.01
"""When requests have kept the event loop for so long, the others wait until the loop has come around."""
PATIENCE: Final = 64

_READING_MAX: Final = 4
"""How many clients may send parts of large bodies in one round of the event loop."""
_SWEEP_SECONDS_MAX: Final = 1.0
"""The most time that one `Plane.sweep` counts: if more has passed, the server was not listening."""

Done = Callable[[Any, "Exception | None"], None]
Encode = Callable[[dict[str, Any]], Any]


class Submits(Protocol):
    """The part of a `Database` that the data plane uses. Implementations: `Database`, the tests' own."""

    def submit(
        self, operation: str, request: dict[str, Any], caller: Caller, done: Done, encode: Encode
    ) -> Task | None: ...

    def start_aside(self, work: Callable[[], None]) -> Task: ...

    def run_aside(
        self, operation: str, request: dict[str, Any], caller: Caller, done: Done, encode: Encode
    ) -> None: ...

    def deliver(self, callback: Callable[[], None]) -> None: ...


class Plane:
    """The state that all connections of a server share, and the order in which they have their turns.

    A request starts when it has come, unless the requests before it have used up `round_seconds`. Then its
    connection is put off, until the event loop has come around and has seen what else has come. Each one that
    was put off has a date, on a clock that only requests move (`_worked_seconds`): it is put off for so many
    times (`PATIENCE`) as long as its requests take. They go on in the order of these dates. So those that
    send the same go on in the order in which they came, and one that asks for little comes before those that
    ask for much, but not for ever.

    How long a connection's requests take (`Connection.cost`) is the lesser time of its last two, and at most
    twice what it was before: if something else has held up a request of 10 microseconds for 10 ms, its
    connection is not to wait for that. A new connection counts as the last ones of all.
    """

    __slots__ = (
        "_call_soon",
        "_called",
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
        "connections",
        "database",
        "draining",
        "frames",
        "gathered_bytes",
        "log_requests",
        "metrics",
        "now",
        "round_seconds",
        "settings",
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
        self.round_seconds = ROUND_SECONDS
        self.access = Access(settings)  # the server tells it where it listens
        self.log_requests = trace.wanted()
        self.metrics = Metrics()
        self.connections: set[Connection] = set()
        self.draining = False
        self.gathered_bytes = 0  # in bodies that came in pieces and are not complete, and in large requests
        self.now = 0.0
        self._swept: float | None = None
        self._call_soon = call_soon
        self._ready: list[Connection] = []
        self._reading: deque[Connection] = deque()
        self._worked_seconds = 0.0  # what all requests have taken
        self._round_began = 0.0  # the same, when the event loop came around
        self._usual_seconds = 0.0  # what the last requests have taken
        self._put_off: list[tuple[float, int, Connection]] = []
        self._puts = 0
        self._called: Connection | None = None  # the one whose turn it is
        self._goes_on = False  # the event loop was asked to call `_go_on`

    def advance_soon(self, connection: Connection) -> None:
        """Let `connection` go on in the next round of the event loop: it writes the answers of a batch
        together, and starts requests that had to wait."""
        if not self._ready:
            self._call_soon(self._advance_ready)
        self._ready.append(connection)

    def read_on_soon(self, connection: Connection) -> None:
        """Let `connection` take the next part of a large body when those before it have taken theirs."""
        if not self._reading:
            self._call_soon(self._read_on)
        self._reading.append(connection)

    def _read_on(self) -> None:
        for _ in range(min(len(self._reading), _READING_MAX)):
            connection = self._reading.popleft()
            try:
                connection.read_on()
            except Exception:  # the others that wait have to go on
                self._cut_off(connection, "a connection that could not be read on was cut off")
        if self._reading:
            self._call_soon(self._read_on)

    def _advance_ready(self) -> None:
        ready, self._ready = self._ready, []
        for connection in ready:
            self._advance(connection)

    def _advance(self, connection: Connection) -> None:
        try:
            connection.advance()
        except Exception:  # the others that wait have to go on
            self._cut_off(connection, "a connection that could not go on was cut off")

    def _cut_off(self, connection: Connection, message: str) -> None:
        """Drop a connection for which the server itself has failed; called while the error is handled."""
        self.metrics.internal_errors += 1
        _log.exception(message)
        self.connections.discard(connection)
        self._call_soon(connection.abort)

    def may_start(self, connection: Connection) -> bool:
        """Whether `connection` may start a request now; otherwise it will be told to `advance` when it
        may."""
        if connection is self._called:
            self._called = None
            return True
        if connection.put_off:
            return False
        put_off = self._put_off
        is_in_time = self._worked_seconds - self._round_began < self.round_seconds
        if is_in_time and not put_off:
            return True
        date = self._worked_seconds + PATIENCE * (connection.cost or self._usual_seconds)
        if is_in_time and date <= put_off[0][0]:
            return True
        connection.put_off = True
        self._puts += 1
        heappush(put_off, (date, self._puts, connection))
        if not self._goes_on:
            self._goes_on = True
            self._call_soon(self._go_on)
        return False

    def count(self, connection: Connection, seconds: float) -> None:
        """Count the time of a request that was started."""
        usual = self._usual_seconds or seconds
        connection.cost = min(seconds, connection.last or seconds, 2 * (connection.cost or usual))
        connection.last = seconds
        self._usual_seconds = (usual + connection.cost) / 2
        self._worked_seconds += seconds

    def _go_on(self) -> None:
        """Let the connections that were put off go on, in their order."""
        began = self._round_began = self._worked_seconds
        put_off = self._put_off
        while put_off and self._worked_seconds - began < self.round_seconds:
            connection = heappop(put_off)[2]
            connection.put_off = False
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
            except Exception:  # the time-outs of other connections still have to be checked
                self._cut_off(connection, "a connection whose time could not be checked was cut off")

    def drain(self) -> None:
        """Close idle connections; the others end after the request that is under way."""
        self.draining = True
        for connection in tuple(self.connections):
            connection.drain()

    def abort(self) -> None:
        """Cut off every connection."""
        for connection in tuple(self.connections):
            connection.abort()


class Exchange:
    """One request and its answer. `call` is set until it is started, `task` while the request runs on a
    thread, and `noted` if the request is logged. `sent` is the request as it was sent, until it is started;
    `large` is one that is read on a thread.

    `operation` and `form` are those of the call. `answer` is the bytes to be written, without the `pieces` of
    the body, which are written after it.
    """

    __slots__ = (
        "answer",
        "call",
        "close",
        "connection",
        "form",
        "large",
        "linger",
        "noted",
        "operation",
        "pieces",
        "sent",
        "started",
        "task",
    )

    def __init__(self, connection: Connection, close: bool) -> None:
        self.connection = connection
        self.close = close
        self.linger = False
        self.started = 0.0
        self.call: Call | None = None
        self.noted: trace.Noted | None = None
        self.operation = ""
        self.form: Form | None = None
        self.sent: tuple[bytes, bytes, dict[bytes, bytes], bytes | bytearray] | None = None
        self.large: Large | None = None
        self.task: Task | None = None
        self.answer: bytes | None = None
        self.pieces: Pieces | None = None

    def start(self, plane: Plane, began: float) -> None:
        """Run the call. A large request, and one whose preparation takes long, is read and run on a thread.
        `began` is the time at which the server turned to the request."""
        self.started = began
        call, sent = self.call, self.sent
        self.sent = None
        try:
            if call is not None:
                self.take(call)
                try:
                    self.task = plane.database.submit(
                        call.operation, call.request, call.caller, self.done, protocol.encode_result
                    )
                except TurnOver:
                    assert sent is not None
                    self.keep_large(Large(*sent))
            if self.large is not None:
                self.task = plane.database.start_aside(self.read_large)
        except Exception as error:
            self.done(None, error)
        now = latency_now()
        pace.give_way(now)
        plane.count(self.connection, now - began)

    def take(self, call: Call) -> None:
        """Keep of a call that is being started only what its answer needs: so a write's request, which the
        database has performed before it is durable, is freed while it is still in the processor's cache."""
        self.operation = call.operation
        self.form = call.form
        self.call = None
        if self.connection.plane.log_requests:
            self.noted = trace.note(call)

    def read_large(self) -> None:
        """Read and run a large request; on a thread."""
        large = self.large
        assert large is not None
        plane = self.connection.plane
        database = plane.database
        try:
            outcome = plane.wire.read(large.method, large.url, large.headers, large.body)
        except Exception as error:
            failure = error
            database.deliver(lambda: self.done(None, failure))
            return
        if type(outcome) is Call:
            self.take(outcome)
            database.run_aside(
                outcome.operation, outcome.request, outcome.caller, self.done, protocol.encode_result
            )
        else:
            assert isinstance(outcome, Response)
            response = outcome
            database.deliver(lambda: self.respond(response))

    def done(self, body: Any, error: Exception | None) -> None:
        """Take the outcome of the call: the answer's body, or the error."""
        if self.answer is not None:
            return
        connection = self.connection
        plane = connection.plane
        frames = plane.frames
        form = self.form
        if type(body) is Pieces:
            self.pieces = body
        if error is None and form is None and not self.close:
            self.answer = frames.success(body)
        elif error is None:
            self.answer = frames.response(protocol.success(body, form), close=self.close)
        elif type(error) is AnswerLost:
            self.close = True
            self.answer = b""
        else:
            failure = protocol.encode_error(error, form, self.operation)
            self.answer = frames.response(failure, close=self.close)
        if self.operation:
            seconds = latency_now() - self.started
            plane.metrics.answered(self.operation, seconds, error)
            if self.noted is not None:
                trace.request(self.noted, body, error, seconds, self.answer)
        self.end()

    def respond(self, response: Response) -> None:
        """Take the answer to a request that has no call."""
        plane = self.connection.plane
        plane.metrics.responded(response.status, response.error)
        self.answer = plane.frames.response(response, close=self.close)
        if plane.log_requests:
            trace.response(response, self.answer)
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
        kept = self.large
        kept_bytes = len(kept.body) if kept is not None else 0
        added_bytes = len(large.body) if large is not None else 0
        self.connection.plane.gathered_bytes += added_bytes - kept_bytes
        self.large = large


class Large(NamedTuple):
    """A request that is read on a thread."""

    method: bytes
    url: bytes
    headers: dict[bytes, bytes]
    body: bytes | bytearray
