"""The admin plane's port: it listens from the start, but the plane is loaded only at the first connection.

Starlette and uvicorn take a tenth of a second and some megabytes to load, too much for a test that starts a
hundred servers. So the port listens at once, and the kernel keeps the first connection. This connection
makes the server load the plane, on a thread, while requests of the data plane continue.

The port is on the loopback interface, unless there is a token that every request has to send, because
requests can change the clock and the tables. Refuses to know the endpoints of the plane: the code that opens
the port says how the plane is made (`Admin.load`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import orjson

from hashrange import replaced
from hashrange.database import Database
from hashrange.server.access import is_loopback
from hashrange.server.listening import Guests, Listener, bound_url, url_of
from hashrange.server.plane import Plane
from hashrange.server.tls import Certificates

HOST: Final = "127.0.0.1"
CONNECTIONS_MAX: Final = 16
"""The most connections of the admin plane at a time; `files.descriptors.RESERVED` includes them."""

_BACKLOG_MAX: Final = 64
_REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%b"
)

# RFC 6750, 2.1: the characters of a token in an Authorization header.
_TOKEN: Final = re.compile(r"[-A-Za-z0-9._~+/]{16,}=*")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Door:
    """Where the admin plane listens: the requested `host` and its `address`; and the token that every request
    has to send, "" for none. `read_only`: browsers and `POST /v1/data` may change nothing. `of_rings` is what
    rings keep for this server, by their names.

    Raises ValueError for a token that is too easy to guess or not allowed in a header, and for an address
    that other machines could reach without a token.
    """

    host: str = HOST
    address: str = HOST
    token: str = ""
    read_only: bool = False
    of_rings: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.token and not _TOKEN.fullmatch(self.token):
            raise ValueError(
                "The token of the admin plane needs at least 16 characters: letters, digits and -._~+/ only. "
                "`openssl rand -hex 32` makes one."
            )
        if not self.token and not is_loopback(self.address):
            raise ValueError(
                f"Other machines could reach the admin plane on {self.host}, and change the clock and "
                "all tables. Give it a token: --admin-token, or better HASHRANGE_ADMIN_TOKEN in the "
                "environment, where other users cannot read it."
            )


@dataclass(frozen=True, slots=True)
class Subject:
    """The parts of a server that the admin plane shows and changes; `settle` does all due background work."""

    database: Database
    plane: Plane
    settle: Callable[[], Awaitable[None]]


class Guest(Protocol):
    """The plane that is loaded behind the port: `server.admin.application.AdminServer`."""

    @property
    def server_state(self) -> Any: ...

    def stop(self) -> None: ...

    def connection(self) -> asyncio.Protocol: ...

    def make_room(self) -> bool: ...

    async def serve(self, sockets: list[socket.socket]) -> None: ...


@dataclass(frozen=True, slots=True)
class Admin:
    """A socket that listens for the admin plane, its door, and the function that makes the plane at the first
    connection.

    `load` is called once, on a thread. If it raises, the data plane goes on without an admin plane. With
    `certificates` the plane speaks TLS.
    """

    socket: socket.socket
    load: Callable[[Subject, Door], Guest]
    door: Door = Door()
    certificates: Certificates | None = None

    @property
    def port(self) -> int:
        port: int = self.socket.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return url_of(self.door.address, self.port, secure=self.certificates is not None)

    @property
    def announced_url(self) -> str:
        """The URL that the server announces to commands. If it has 0.0.0.0 or ::, the plane listens on all
        addresses, and a command uses its own name for this machine."""
        return bound_url(self.door.address, self.port, secure=self.certificates is not None)

    def close(self) -> None:
        self.socket.close()


def bind(
    port: int, host: str = HOST, token: str = "", *, read_only: bool = False
) -> tuple[socket.socket, Door]:
    """A socket that listens on `port` of `host`, 0 for any free one, and its door. Raises OSError, and
    ValueError as `Door` does."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = addresses[0]
    door = Door(host, str(address[0]), token, read_only)
    listening = socket.socket(family)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG_MAX)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening, door


class AdminPort:
    """A listening socket, and the admin plane behind it once it is loaded. Lives on one event loop."""

    def __init__(self, admin: Admin, subject: Subject, loop: asyncio.AbstractEventLoop) -> None:
        self._listening = admin.socket
        self._load = admin.load
        self._door = admin.door
        self._certificates = admin.certificates
        self._subject = subject
        self._loop = loop
        self._watching = False
        self._server: Guest | None = None
        self._serving: asyncio.Task[None] | None = None
        self._listener: Listener | None = None

    def open(self) -> None:
        """Wait for the first connection."""
        try:
            self._loop.add_reader(self._listening, self._wake)
        except NotImplementedError:  # pragma: no cover (Windows' event loop cannot watch sockets)
            self._wake()
        else:
            self._watching = True

    def _wake(self) -> None:
        self._unwatch()
        self._serving = self._loop.create_task(self._serve())

    async def _serve(self) -> None:
        try:
            server = self._server = await self._loop.run_in_executor(
                None, self._load, self._subject, self._door
            )
            guests = Guests(
                "admin",
                server.connection,
                lambda: len(server.server_state.connections),
                CONNECTIONS_MAX,
                lambda: _REFUSAL % (0, b""),
                self._certificates,
                make_room=server.make_room,
            )
            self._listener = Listener([self._listening], guests, self._loop)
            self._listener.open()
            await server.serve(sockets=[])
        except Exception:
            _log.exception("admin plane failed", extra={"fields": {"cause": replaced() or "unknown"}})
            self._refuse()

    def _refuse(self) -> None:
        """Say to everybody who connects why there is no plane."""
        if self._listener is not None:  # (it ran: a server of its own answers)
            self._listening.close()
            return
        why = {"error": replaced() or "the admin plane could not be loaded; the server's log tells more"}
        answer = _REFUSAL % (len(body := orjson.dumps(why)), body)
        guests = Guests("admin", asyncio.Protocol, lambda: 1, 1, lambda: answer, self._certificates)
        self._listener = Listener([self._listening], guests, self._loop)
        self._listener.open()

    def _unwatch(self) -> None:
        if self._watching:
            self._watching = False
            self._loop.remove_reader(self._listening)

    async def close(self) -> None:
        """End the running requests, and close the port."""
        self._unwatch()
        if self._listener is not None:
            await self._listener.close()
        while self._serving is not None and not self._serving.done():
            # A plane that is still being loaded checks for this once it is loaded.
            if self._server is not None:
                self._server.stop()
            await asyncio.wait([self._serving], timeout=0.05)
        self._listening.close()
