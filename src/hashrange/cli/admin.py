"""The admin plane of a server: the list of its parts.

Further parts, such as a console, are mounted here; the server itself knows none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hashrange.server import Admin
from hashrange.server.admin import port
from hashrange.server.admin.port import Subject

if TYPE_CHECKING:
    from hashrange.server.admin.application import AdminServer


def bind_admin(at: int) -> Admin:
    """The admin plane, which listens on a port of the loopback interface (0: any free port). Raises
    OSError."""
    return Admin(port.bind(at), load)


def load(subject: Subject) -> AdminServer:
    """The admin plane of a server, with all mounted parts. It imports many modules: see
    `server.admin.port`."""
    from hashrange.server.admin import application, backups, checkpoints, clock, faults, status, travel

    parts = (status, clock, faults, travel, backups, checkpoints)
    return application.server(subject, tuple(endpoint for part in parts for endpoint in part.ENDPOINTS))
