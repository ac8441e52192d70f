"""The server's limits. Everything that a client can make grow has a limit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from hashrange import limits

ANY: Final = "*"
_HOST: Final = re.compile(r"[^\s/:?#@\[\]]+|\[[0-9a-fA-F:.]+\]")
_ORIGIN: Final = re.compile(r"null|[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#@]+")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Limits and timeouts of the data plane; names end in their unit.

    connections_max: the most connections at once; more are answered 503 and closed. There may be fewer, if
        the process has too few file descriptors.
    header_bytes_max: the most bytes of a request's line and header lines together; else 431.
    headers_max: the most header lines of a request; else 431.
    body_bytes_max: the largest request body; else 413.
    bodies_bytes_max: the most bytes of request bodies being received, over all connections; else 503.
    header_seconds_max: the most time from a request's first byte to its last header; else 408.
    body_seconds_max: the most time from a request's last header to the end of its body; else 408.
    idle_seconds_max: a connection without a request for this long is closed.
    write_seconds_max: a client that takes no answers for this long is cut off.
    pipeline_max: the most requests of a connection that run at once; further requests wait.
    buffered_bytes_max: the most bytes of answers that a client has not taken; above this, its requests wait.
    drain_seconds_max: the time that running requests have after a stop signal.
    backlog_max: the most connections that wait in the kernel to be accepted.
    metrics_tables_max: the most tables that have their own series in /metrics, the first by name; the totals
        count all tables.
    allow_host: another name by which clients may call a server that listens on the loopback interface, as
        in the Host header without its port; `*` for any. May be given several times. Names and addresses of
        the loopback interface are always allowed. A server that listens elsewhere takes any Host unless this
        is given.
    allow_origin: an origin whose web pages may use the server, such as `http://localhost:3000`; `*` for any.
        May be given several times. Without it a request with an Origin header is answered 403.

    Raises ValueError for an `allow_host` or `allow_origin` that no request can have.
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
    metrics_tables_max: int = 1000
    allow_host: tuple[str, ...] = ()
    allow_origin: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for host in self.allow_host:
            if host != ANY and not _HOST.fullmatch(host):
                raise ValueError(
                    f"{host!r} is not a host name; give it without a scheme and a port, such as db.internal."
                )
        for origin in self.allow_origin:
            if origin != ANY and not _ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"{origin!r} is not the origin of a web page; give scheme, host and port without a path, "
                    "such as http://localhost:3000."
                )
