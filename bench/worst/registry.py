"""A shape of requests, and the registry of the shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.worst.stage import Stage

# How the requests of a shape are sent: one after the other on one connection; many at once on one
# connection; one after the other on each of several; by clients that close the connection once they sent it.
WAYS: tuple[str, ...] = ("single", "pipelined", "connections", "leaving")

Requests = Callable[[Stage], Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of request. `to_admin_plane` says that the requests are for that port, `is_large` that a request
    or its answer has more than 1 MB, so that the goal for large ones holds."""

    name: str
    summary: str
    requests: Requests
    ways: tuple[str, ...] = WAYS
    to_admin_plane: bool = False
    is_large: bool = False


SHAPES: dict[str, Shape] = {}


def shape(
    summary: str,
    *,
    ways: tuple[str, ...] = WAYS,
    to_admin_plane: bool = False,
    is_large: bool = False,
) -> Callable[[Requests], Requests]:
    """Register a function as the shape of its name, with hyphens."""

    def register(requests: Requests) -> Requests:
        name = requests.__name__.replace("_", "-")
        SHAPES[name] = Shape(name, summary, requests, ways, to_admin_plane, is_large)
        return requests

    return register
