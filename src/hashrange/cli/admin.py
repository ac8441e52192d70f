"""The admin plane of a server: which endpoints there are.

A part that somebody adds, as a console, is mounted here: the server knows none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hashrange.server import Admin
from hashrange.server.admin import port
from hashrange.server.admin.port import Subject

if TYPE_CHECKING:
    from hashrange.server.admin.application import AdminServer


def bind_admin(at: int) -> Admin:
    """The admin plane, listening on a port of the loopback interface, 0 for any free one. Raises OSError."""
    return Admin(port.bind(at), load)


def load(subject: Subject) -> AdminServer:
    """The admin plane of a server, with all that is mounted on it. Imports much: see `server.admin.port`."""
    from hashrange.server.admin import application, clock, status

    return application.server(subject, (*status.ENDPOINTS, *clock.ENDPOINTS))
