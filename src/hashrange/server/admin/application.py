"""The admin plane as an application: the mounted endpoints, and what they are: `GET /v1`, and as OpenAPI.

An endpoint declares the shapes of what it takes and answers as classes of msgspec, and its answer is encoded
from such a class. Errors are `{"error": "…"}`. `server.admin.guard` first checks whether a request is
allowed. Requests that a web page makes a browser send are refused there by the Host header (DNS rebinding),
and here because a JSON content type is required (a cross-origin request with this type needs a preflight,
which is not answered).

It is loaded at the first connection to the port (`server.admin.port`). It runs on the data plane's event
loop, so no endpoint may take long there. Refuses to know DynamoDB's API, and the list of endpoints.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import re
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin, get_type_hints

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
    """A method on a path. The paths of all that programs may use begin with /v1.

    summary: what it is for, or what the answer is.
    answer: makes the answer, whose shape its annotation declares: a class of msgspec is encoded as JSON.
        Annotated[Response, SHAPE] is a ready answer of this shape, or of a media type, such as "text/plain".
        A plain Response is a page.
    takes: the class of the JSON body, if the endpoint has one.
    query: the class of the query, if the endpoint has one.
    role: the least role that who asks needs for it (`roles.NOBODY`: everybody may ask); "" is that of the
        method: read for a GET, otherwise write.
    """

    method: str
    path: str
    summary: str
    answer: Callable[[Request], Awaitable[Any]]
    takes: type | None = None
    query: type | None = None
    role: str = ""

    @property
    def needs(self) -> str:
        """The role."""
        return self.role or (READ if self.method == "GET" else WRITE)

    @property
    def gives(self) -> Any:
        """The shape of the answer, or its media type; None for a page, and where nothing is declared."""
        try:
            declared = get_type_hints(self.answer, include_extras=True).get("return")
        except (NameError, TypeError):  # (names that only type checkers import, or no function)
            return None
        if get_origin(declared) is Annotated:
            return get_args(declared)[1]
        return None if declared is Response else declared

    @property
    def is_page(self) -> bool:
        """Whether it is no part of the API of programs."""
        return not f"{self.path}/".startswith("/v1/") and self.gives is None


JsonObject = Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "object"})]
"""The type of a member that is an object, of which the JSON is at hand."""


class Problem(msgspec.Struct):
    """Why a request was refused, or failed.

    error: the cause and the remedy.
    """

    error: str


class Address(msgspec.Struct):
    """A method on a path.

    method: GET, POST or DELETE.
    path: the path, with parts such as {id} that the caller fills in.
    summary: what it is for.
    role: the least role that the caller needs: none, read, write or admin.
    """

    method: str
    path: str
    summary: str
    role: str


class Contents(msgspec.Struct):
    """What programs may ask the admin plane.

    version: the version of the server.
    endpoints: all methods on all paths, without the pages of the console.
    """

    version: str
    endpoints: list[Address]


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
    forever for a first request, and keep all headers."""

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

    endpoints = described(endpoints)
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
        made = await endpoint.answer(request)
        return made if isinstance(made, Response) else answered(made)

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


def answered(made: Any, status: int = 200) -> Response:
    """The answer with an object of a declared shape as JSON."""
    return Response(msgspec.json.encode(made), status, media_type="application/json")


def json(value: Any, status: int = 200) -> Response:
    """The answer with a value as JSON, which has no declared shape."""
    return Response(orjson.dumps(value), status, media_type="application/json")


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text, status = error.detail, error.status_code
    if status == 404 and (ring := rings().absent_at(request.url.path)) is not None:
        text = rings().why_missing(ring)
        status = 503 if ring in rings().troubles() else 404
    elif status == 404 and text == HTTPStatus.NOT_FOUND.phrase:
        text = f"there is nothing at {request.url.path}; GET /v1 lists what there is"
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


def read_query(request: Request, shape: type[T]) -> T:
    """The query of a request; what it has besides is ignored. Raises HTTPException if it is not valid."""
    try:
        return msgspec.convert(dict(request.query_params), shape, strict=False)
    except msgspec.ValidationError as error:
        raise HTTPException(400, f"the query ?{request.url.query} is not valid: {error}") from None


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


# -- The description ----------------------------------------------------------------------------------------


def described(endpoints: Sequence[Endpoint]) -> tuple[Endpoint, ...]:
    """The endpoints, and before them two that describe all."""

    async def contents(request: Request) -> Contents:
        addresses = [Address(one.method, one.path, one.summary, one.needs) for one in shown]
        return Contents(__version__, addresses)

    async def document(request: Request) -> dict[str, Any]:
        # On a thread, because it takes some milliseconds.
        return await asyncio.to_thread(description, shown)

    everything = (
        Endpoint("GET", "/v1", "What programs may ask the admin plane, in short.", contents),
        Endpoint("GET", "/v1/openapi.json", "The same with all shapes, as an OpenAPI document.", document),
        *endpoints,
    )
    shown = [endpoint for endpoint in everything if not endpoint.is_page]
    return everything


_SCHEMAS: Final = "#/components/schemas/{name}"
_MEMBER: Final = re.compile(r"^(\w+): (.*(?:\n {4}.*)*)\n?", re.M)
"""A member of a class in its docstring, as those of `Endpoint`."""


def description(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The OpenAPI document of some endpoints, without pages."""
    endpoints = [endpoint for endpoint in endpoints if not endpoint.is_page]
    shapes = [Problem, *[one for endpoint in endpoints for one in (endpoint.takes, endpoint.gives)]]
    types = [shape for shape in shapes if shape is not None and not isinstance(shape, str)]
    schemas, components = msgspec.json.schema_components(types, ref_template=_SCHEMAS)
    known = dict(zip(types, schemas, strict=True))
    for component in components.values():
        _describe_members(component)

    def content(shape: Any) -> dict[str, Any]:
        """The body of a request or an answer."""
        if isinstance(shape, str):
            return {shape: {"schema": {"type": "string"}}}
        return {"application/json": {"schema": known.get(shape, {})}}

    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        operation: dict[str, Any] = {
            "summary": endpoint.summary,
            "x-role": endpoint.needs,
            "parameters": _parameters(endpoint),
            "responses": {
                "200": {"description": endpoint.summary, "content": content(endpoint.gives)},
                "default": {"description": "Refused, or failed.", "content": content(Problem)},
            },
        }
        if endpoint.takes is not None:
            operation["requestBody"] = {"required": True, "content": content(endpoint.takes)}
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hashrange admin plane", "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    """The parts of the path that the caller fills in, and the members of the query."""
    where = {"in": "path", "required": True, "schema": {"type": "string"}}
    parameters = [{"name": name, **where} for name in re.findall(r"{(\w+)}", endpoint.path)]
    if endpoint.query is not None:
        [_], components = msgspec.json.schema_components([endpoint.query], ref_template=_SCHEMAS)
        schema = components[endpoint.query.__name__]
        _describe_members(schema)
        for name, member in schema["properties"].items():
            needed = name in schema["required"]
            about = member.pop("description", "")
            parameters.append(
                {"name": name, "in": "query", "required": needed, "description": about, "schema": member}
            )
    return parameters


def _describe_members(schema: dict[str, Any]) -> None:
    """Move what the docstring of a class says of its members to these."""
    text = inspect.cleandoc(schema.get("description", ""))
    for name, about in _MEMBER.findall(text):
        if (member := schema.get("properties", {}).get(name)) is not None:
            member["description"] = " ".join(about.split())
    if schema.get("properties"):
        text = _MEMBER.sub("", text)
    schema["description"] = " ".join(text.split())
