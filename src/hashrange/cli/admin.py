"""The admin plane of a server: the list of its parts.

All parts are mounted here, those of rings too; the server itself knows none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hashrange.rings import rings
from hashrange.server import Admin
from hashrange.server.admin import port
from hashrange.server.admin.port import HOST, Door, Subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hashrange.server.admin import application
    from hashrange.server.admin.application import AdminServer
    from hashrange.server.tls import Certificates


def bind_admin(
    at: int,
    host: str = HOST,
    token: str = "",
    *,
    read_only: bool = False,
    certificates: Certificates | None = None,
) -> Admin:
    """The admin plane, listening on a port of `host` (0: any free port). `read_only`: browsers may
    change nothing. With `certificates` the plane speaks TLS.

    Raises OSError, and ValueError if other machines could reach it without a token.
    """
    listening, door = port.bind(at, host, token, read_only=read_only)
    return Admin(listening, load, door, certificates)


def core() -> list[application.Endpoint]:
    """The endpoints that are not of rings. This imports many modules."""
    from hashrange.server.admin import (
        backups,
        checkpoints,
        clock,
        data,
        destinations,
        faults,
        insights,
        status,
        tables,
        travel,
    )

    shown = (status, tables, insights, destinations)
    changed = (clock, faults, travel, backups, checkpoints, data)
    return [endpoint for part in (*shown, *changed) for endpoint in part.ENDPOINTS]


def load(subject: Subject, door: Door = Door()) -> AdminServer:  # noqa: B008 (immutable)
    """The admin plane of a server, with all its parts. This imports many modules: see `server.admin.port`."""
    from hashrange.server.admin import application

    endpoints = core()

    def add(of_ring: Sequence[application.Endpoint]) -> None:
        """Add the endpoints of a ring. Raises ValueError, and what the application raises, for endpoints that
        would end the plane or hide others."""
        application.application(subject, door, of_ring)
        application.description(of_ring)
        taken = {(endpoint.method, endpoint.path) for endpoint in endpoints}
        for endpoint in of_ring:
            if (endpoint.method, endpoint.path) in taken:
                raise ValueError(f"{endpoint.method} {endpoint.path} is an endpoint of another package")
        endpoints.extend(of_ring)

    rings().each("endpoints", add)
    return application.server(subject, door, tuple(endpoints))
