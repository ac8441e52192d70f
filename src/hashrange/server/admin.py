"""The admin plane: what an operator, a test or a monitoring system asks of a server, as JSON over HTTP.

    GET  /          this list, as an OpenAPI document
    GET  /health    whether the server serves, and takes writes; which background work fails
    GET  /clock     the time that the database runs on
    POST /clock     set, advance, freeze or resume a virtual clock; answers when all that is due then is done
    GET  /tables    state and size of each table, and the progress of builds under way
    GET  /metrics   for Prometheus

Errors are `{"error": "…"}`. There is no authentication: the port is on the loopback interface, and what a
web page could make a browser send there is refused, by the Host header (DNS rebinding) and by asking for
a JSON content type (a cross-origin request with one needs a preflight, which is not answered).

Loaded by `server.admin_port` when somebody first connects. Runs on the data plane's event loop, so nothing
here may take long there: what grows with the number of tables is done in pages. Refuses to know DynamoDB's
API.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import msgspec
import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hashrange import __version__, form
from hashrange.clock import VirtualClock, parse_duration, parse_moment, show_moment
from hashrange.server.admin_port import HOST, Subject
from hashrange.server.metrics import CONTENT_TYPE, TableSamples, exposition

TABLES_PER_PAGE: Final = 20
"""A fraction of a millisecond of the event loop."""
_BODY_BYTES_MAX: Final = 64 * 1024
_SHUTDOWN_SECONDS_MAX: Final = 2

REQUEST_SECONDS_MAX: Final = 10.0
"""How long a connection may take until its next request is there, and to take an answer."""

_NOT_VIRTUAL: Final = (
    "the server runs on the machine's clock, which cannot be changed here; start it with --virtual-clock"
)


class ClockChange(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A change of the clock, all at one moment: it is set, then advanced, then frozen or resumed.

    `set` is an ISO 8601 time (UTC where it names no zone) or epoch seconds. `advance` is a number of seconds
    or a duration such as `15m`, `24h`, `7d` or `1d12h`. `frozen` says whether the clock stands from then on;
    without it, it goes on as before.
    """

    set: str | float | None = None
    advance: str | float | None = None
    frozen: bool | None = None


class AdminServer(uvicorn.Server):
    """A uvicorn server that is a guest on somebody else's event loop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the owner of the loop."""
        yield

    def connection(self) -> AdminConnection:
        """The protocol of a new connection."""
        return AdminConnection(config=self.config, server_state=self.server_state, app_state={})


class AdminConnection(HttpToolsProtocol):
    """A connection that is cut off if its client lets it wait: uvicorn waits for a first request for ever."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        super().connection_lost(exc)

    def on_message_complete(self) -> None:
        # From here on the server is to blame for the time: a change of the clock may take minutes.
        if not self.flow.write_paused:
            self._clear_deadline()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:
            # No other request came meanwhile.
            self._set_deadline()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._set_deadline()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.cycle is None or self.cycle.response_complete:
            self._set_deadline()
        else:
            self._clear_deadline()

    def _set_deadline(self) -> None:
        self._clear_deadline()
        if not self.transport.is_closing():
            self._deadline = self.loop.call_later(REQUEST_SECONDS_MAX, self.transport.abort)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def server(subject: Subject) -> AdminServer:
    """The admin plane of `subject`, ready to `serve(sockets=[…])` on the running loop."""
    config = uvicorn.Config(
        application(subject),
        http=AdminConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS_MAX,
    )
    # Loading imports the rest: it belongs to the thread that this runs on, not to the loop.
    config.load()
    return AdminServer(config)


def application(subject: Subject) -> Starlette:
    """The ASGI application of the admin plane."""
    app = Starlette(
        routes=[
            Route("/", _describe),
            Route("/health", _health),
            Route("/clock", _answer_clock, methods=["GET", "POST"]),
            Route("/tables", _tables),
            Route("/metrics", _metrics),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])],
        exception_handlers={HTTPException: _refusal, Exception: _failure},
    )
    app.state.subject = subject
    return app


def _json(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    response = _json({"error": error.detail}, error.status_code)
    response.headers.update(error.headers or {})
    return response


async def _failure(request: Request, error: Exception) -> Response:
    return _json({"error": "internal error; the server's log tells more"}, 500)


def _subject(request: Request) -> Subject:
    subject = request.app.state.subject
    assert isinstance(subject, Subject)
    return subject


async def _health(request: Request) -> Response:
    subject = _subject(request)
    draining = subject.plane.draining
    refusing = subject.database.engine.refusing()
    background = subject.database.background
    failing = background.failing
    status = "degraded" if failing or background.damages else "ok"
    if draining or refusing is not None:
        status = "draining" if draining else "refuses writes"
    shown: dict[str, Any] = {
        "status": status,
        "version": __version__,
        "engine": subject.database.engine.name,
        "hot_path": form(),
        "uptime_seconds": round(subject.plane.metrics.uptime_seconds, 3),
    }
    if refusing is not None:
        shown["cause"] = refusing
    if failing or background.damages:
        shown["failing"] = [{"unit": unit, "error": error} for unit, error in sorted(failing.items())]
        shown["damaged_records"] = background.damages
    return _json(shown, 503 if draining or refusing is not None else 200)


async def _tables(request: Request) -> Response:
    pages = [orjson.dumps(page)[1:-1] async for page in _pages(_subject(request))]
    return Response(b'{"tables":[%b]}' % b",".join(pages), media_type="application/json")


async def _pages(subject: Subject) -> AsyncIterator[list[dict[str, Any]]]:
    """All tables, some at a time: between two pages the requests of the data plane have their turn."""
    after = ""
    while page := subject.database.overview(after, TABLES_PER_PAGE):
        yield page
        after = page[-1]["name"]
        await asyncio.sleep(0)


async def _metrics(request: Request) -> Response:
    subject = _subject(request)
    tables = TableSamples(subject.plane.settings.metrics_tables_max)
    async for page in _pages(subject):
        tables.add(page)
    text = exposition(
        subject.plane.metrics,
        connections=len(subject.plane.connections),
        clock_seconds=subject.database.clock.now(),
        refuses_writes=subject.database.engine.refusing() is not None,
        tables=tables,
        background=subject.database.background,
    )
    return Response(text, media_type=CONTENT_TYPE)


# -- The clock --------------------------------------------------------------------------------------------


async def _answer_clock(request: Request) -> Response:
    if request.method == "POST":
        await _change_clock(request)
    return _json(_clock(_subject(request)))


def _clock(subject: Subject) -> dict[str, Any]:
    clock = subject.database.clock
    virtual = clock if isinstance(clock, VirtualClock) else None
    now = clock.now()
    return {
        "virtual": virtual is not None,
        "frozen": virtual is not None and virtual.frozen,
        "time": show_moment(now),
        "epoch_seconds": now,
        "ahead_seconds": round(virtual.offset, 3) if virtual is not None else 0.0,
    }


async def _change_clock(request: Request) -> None:
    subject = _subject(request)
    clock = subject.database.clock
    change = await _read(request)
    if not isinstance(clock, VirtualClock):
        raise HTTPException(409, _NOT_VIRTUAL)
    try:
        moment = parse_moment(change.set) if isinstance(change.set, str) else change.set
        advance = parse_duration(change.advance) if isinstance(change.advance, str) else change.advance
        clock.change(moment, advance=advance or 0.0, frozen=change.frozen)
    except ValueError as error:
        raise HTTPException(400, str(error)) from None
    # Whoever moved the time finds everything as it is then: no polling, no race with the next sweep.
    await subject.settle()
    if subject.plane.draining:
        raise HTTPException(503, "the server is stopping; what is due then is done when it runs again")


async def _read(request: Request) -> ClockChange:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "send JSON with the content type application/json")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _BODY_BYTES_MAX:
            raise HTTPException(413, f"the body has more than {_BODY_BYTES_MAX} bytes")
    try:
        return msgspec.json.decode(body, type=ClockChange)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HTTPException(400, str(error)) from None


# -- The description --------------------------------------------------------------------------------------

_SUMMARIES: Final = {
    ("/", "get"): "This document.",
    ("/health", "get"): (
        "Whether the server serves: 200, or 503 while it drains or its disk takes no writes; and which "
        "background work fails."
    ),
    ("/clock", "get"): "The time that the database runs on.",
    ("/clock", "post"): "Change a virtual clock; answers when everything that is due then is done.",
    ("/tables", "get"): "State and size of each table, and the progress of builds under way.",
    ("/metrics", "get"): "Metrics in Prometheus' text format.",
}


async def _describe(request: Request) -> Response:
    return _json(description())


def description() -> dict[str, Any]:
    """The OpenAPI document of the admin plane."""
    (schema,), components = msgspec.json.schema_components(
        [ClockChange], ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for (path, method), summary in _SUMMARIES.items():
        operation: dict[str, Any] = {"summary": summary, "responses": {"200": {"description": "Done."}}}
        if method == "post":
            operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
        paths.setdefault(path, {})[method] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hashrange admin plane", "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }
