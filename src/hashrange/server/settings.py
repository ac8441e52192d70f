"""The server's limits. Everything that a client could make grow without end has one."""

from __future__ import annotations

from dataclasses import dataclass

from hashrange import limits


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Limits and timeouts of the data plane; names end in their unit.

    connections_max: further connections are answered 503 and closed.
    header_bytes_max: request line and header lines of a request together; else 431.
    headers_max: header lines of a request; else 431.
    body_bytes_max: the largest request body; else 413.
    bodies_bytes_max: request bodies that are being received, over all connections; else 503.
    header_seconds_max: from a request's first byte to its last header; else 408.
    body_seconds_max: from a request's last header to the end of its body; else 408.
    idle_seconds_max: a connection without a request for so long is closed.
    write_seconds_max: a client that takes no answers for so long is cut off.
    pipeline_max: requests of one connection that run at once; more of them wait.
    buffered_bytes_max: answers that one client has not taken; while there are more, none of its requests
        starts.
    drain_seconds_max: the time that requests under way have after a stop signal.
    backlog_max: connections that the kernel keeps before they are accepted.
    """

    connections_max: int = 10_000
    header_bytes_max: int = 64 * 1024
    headers_max: int = 100
    body_bytes_max: int = limits.REQUEST_BODY_BYTES_MAX
    bodies_bytes_max: int = 512 * 1024 * 1024
    header_seconds_max: float = 10.0
    body_seconds_max: float = 60.0
    idle_seconds_max: float = 300.0
    write_seconds_max: float = 60.0
    pipeline_max: int = 64
    buffered_bytes_max: int = 1024 * 1024
    drain_seconds_max: float = 10.0
    backlog_max: int = 1024
