"""The admin plane as an application: the mounted endpoints, and a list of them at `GET /`, as OpenAPI.

Errors are `{"error": "…"}`. `server.admin.guard` first checks whether a request is allowed. Requests that a
web page makes a browser send are refused there by the Host header (DNS rebinding), and here because a JSON
content type is required (a cross-origin request with this type needs a preflight, which is not answered).

It is loaded at the first connection to the port (`server.admin.port`). It runs on the data plane's event
loop, so no endpoint may take long there. Refuses to know DynamoDB's API, and the list of endpoints.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec
import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hashrange import __version__, replaced
from hashrange.rings import Audit, rings
from hashrange.server.admin.guard import ROLE, Guard
from hashrange.server.admin.port import Door, Subject
from hashrange.server.admin.roles import NOBODY, OPERATOR_ROLES, READ, WRITE

_BODY_BYTES_MAX: Final = 64 * 1024
_FRAMING_BYTES_MAX: Final = 64 * 1024
"""The most bytes of a request outside its body: request line, headers, trailers and the framing of chunks."""
_TOO_LONG: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)
_SHUTDOWN_SECONDS_MAX: Final = 2
_TICK_SECONDS: Final = 0.1
_TICKS_MAX: Final = 864_000

REQUEST_SECONDS_MAX: Final = 10.0
"""How long a client may take to send its next request, and to receive an answer."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A method on a path: `summary` describes it, `takes` is the class of its JSON body, if it has one.
    `role` is the least that who asks needs for it (`roles.NOBODY`: everybody may ask); "" is that of
    the method: read for a GET, otherwise write.
    """

    method: str
    path: str
    summary: str
    answer: Callable[[Request], Awaitable[Response]]
    takes: type | None = None
    role: str = ""

    @property
    def needs(self) -> str:
        """The role."""
        return self.role or (READ if self.method == "GET" else WRITE)


class AdminServer(uvicorn.Server):
    """A uvicorn server that runs on the event loop of the data plane, and stops without uvicorn's pauses."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Serve no longer."""
        self.should_exit = True
        self._stopping.set()

    async def main_loop(self) -> None:
        """Do what is due ten times a second, until `stop`."""
        counter = 0
        while not await self.on_tick(counter):
            counter = (counter + 1) % _TICKS_MAX
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _TICK_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the connections and their requests, if there are any."""
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the owner of the loop."""
        yield

    def connection(self) -> AdminConnection:
        """The protocol of a new connection."""
        return AdminConnection(config=self.config, server_state=self.server_state, app_state={})

    def make_room(self) -> bool:
        """Close the connection that has waited longest for its client's next request, so that silent clients
        keep no probe out; returns whether there was one."""
        waiting = [
            (connection.spared, connection)
            for connection in self.server_state.connections
            if isinstance(connection, AdminConnection) and connection.spared is not None
        ]
        if not waiting:
            return False
        _, connection = min(waiting, key=lambda one: one[0])
        # The connection is forgotten by itself only when the event loop has closed it.
        self.server_state.connections.discard(connection)
        connection.transport.abort()
        return True


class AdminConnection(HttpToolsProtocol):
    """A connection that is cut off if its client is too slow, or sends endless headers: uvicorn would wait
    for ever for a first request, and keep all headers."""

    _deadline: asyncio.TimerHandle | None = None
    _framing_bytes = 0

    @property
    def spared(self) -> tuple[bool, float] | None:
        """How well the connection can be spared, less first: whether its client has begun to send a request,
        and when its time ends. None while a request is answered."""
        if self._deadline is None or not (self.cycle is None or self.cycle.response_complete):
            return None
        return self._framing_bytes > 0, self._deadline.when()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._framing_bytes += len(data)
        super().data_received(data)
        if self._framing_bytes > _FRAMING_BYTES_MAX and not self.transport.is_closing():
            self.transport.write(_TOO_LONG)
            self.transport.close()

    def on_body(self, body: bytes) -> None:
        self._framing_bytes -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._framing_bytes = 0
        # From here the time does not count against the client: a change of the clock may take minutes.
        if not self.flow.write_paused:
            self._clear_deadline()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:
            # No other request has arrived in the meantime.
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


def server(subject: Subject, door: Door, endpoints: Sequence[Endpoint]) -> AdminServer:
    """The admin plane of `subject` behind `door`, ready to `serve(sockets=[…])` on the running loop."""
    config = uvicorn.Config(
        application(subject, door, endpoints),
        http=AdminConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS_MAX,
    )
    # Loading imports more modules, so it happens here, on a thread, and not on the event loop.
    config.load()
    return AdminServer(config)


def application(subject: Subject, door: Door, endpoints: Sequence[Endpoint]) -> Starlette:
    """The ASGI application of the admin plane."""

    async def describe(request: Request) -> Response:
        return json(description(endpoints))

    endpoints = (Endpoint("GET", "/", "This document.", describe), *endpoints)
    unguarded = _routes([endpoint for endpoint in endpoints if endpoint.needs == NOBODY])

    def is_open(scope: Scope) -> bool:
        return any(route.matches(scope)[0] is Match.FULL for route in unguarded)

    app = Starlette(
        routes=_routes(endpoints),
        middleware=[
            Middleware(
                Guard,
                door=door,
                gate=lambda: subject.database.observers.gate,
                audit=lambda: audit_of(subject),
                is_open=is_open,
            )
        ],
        exception_handlers={HTTPException: _refusal, Exception: _failure},
    )
    app.state.subject = subject
    app.state.door = door
    return app


def _routes(endpoints: Sequence[Endpoint]) -> list[Route]:
    """A route for each path, which knows all methods of the path, so that it can list them when it refuses a
    method."""
    paths: dict[str, dict[str, Endpoint]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return [Route(path, _by_method(methods), methods=list(methods)) for path, methods in paths.items()]


def _by_method(methods: dict[str, Endpoint]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        endpoint = methods["GET" if request.method == "HEAD" else request.method]
        check_role(request, endpoint.needs)
        return await endpoint.answer(request)

    return answer


def role_of(request: Request) -> str:
    """The role of who asks, as `server.admin.guard` has found out."""
    return str(request.scope[ROLE])


def check_role(request: Request, needed: str) -> None:
    """Check that who asks has a role, or one that may do more. Raises HTTPException."""
    role = role_of(request)
    roles = (NOBODY, *OPERATOR_ROLES)
    if roles.index(role) < roles.index(needed):
        raise HTTPException(403, f"this needs the role {needed}, and yours is {role}")


def json(value: Any, status: int = 200) -> Response:
    """The answer with a value as JSON."""
    return Response(orjson.dumps(value), status, media_type="application/json")


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text, status = error.detail, error.status_code
    if status == 404 and (ring := rings().absent_at(request.url.path)) is not None:
        text = rings().why_missing(ring)
        status = 503 if ring in rings().troubles() else 404
    response = json({"error": text}, status)
    response.headers.update(error.headers or {})
    return response


async def _failure(request: Request, error: Exception) -> Response:
    return json({"error": replaced() or "internal error; the server's log tells more"}, 500)


def subject_of(request: Request) -> Subject:
    """The server that a request is about."""
    subject = request.app.state.subject
    assert isinstance(subject, Subject)
    return subject


def audit_of(subject: Subject) -> Audit | None:
    """The audit log of a server, if it has one."""
    tracer = subject.plane.tracer
    return None if tracer is None else tracer.audit


async def read_json(request: Request, shape: type[T], bytes_max: int = _BODY_BYTES_MAX) -> T:
    """The decoded body of a request. Raises HTTPException if it is not valid."""
    try:
        return msgspec.json.decode(await read_body(request, bytes_max), type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HTTPException(400, str(error)) from None


async def read_body(request: Request, bytes_max: int) -> bytes:
    """The body of a request, which must be JSON by its content type. Raises HTTPException."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "send JSON with the content type application/json")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > bytes_max:
            raise HTTPException(413, f"the body has more than {bytes_max} bytes")
    return bytes(body)


def description(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The OpenAPI document of some endpoints."""
    bodies = [endpoint.takes for endpoint in endpoints if endpoint.takes is not None]
    schemas, components = msgspec.json.schema_components(bodies, ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(bodies, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        operation: dict[str, Any] = {
            "summary": endpoint.summary,
            "x-role": endpoint.needs,
            "responses": {"200": {"description": "Done."}},
        }
        named = re.findall(r"{(\w+)}", endpoint.path)
        if named:
            where = {"in": "path", "required": True, "schema": {"type": "string"}}
            operation["parameters"] = [{"name": name, **where} for name in named]
        if endpoint.takes is not None:
            schema = schema_of[endpoint.takes]
            operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hashrange admin plane", "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }
