"""The servers under test, and how they can be hurt.

An engine's tests write a `Deployment` of their own, and give it to `rounds.play`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from serving import Server, serving


class Deployment(Protocol):
    """Servers over one database."""

    def start(self) -> Sequence[str]:
        """Start everything, with a database that has none of the round's tables; return the endpoints, which
        never change."""

    def faults(self) -> Mapping[str, Callable[[], None]]:
        """By name, the ways to hurt the servers while they work, such as `kill server 0`, `kill database`,
        `cut connections`. One thread calls them, one after the other. Each mends its damage before it
        returns: a server that was killed listens again. Empty where nothing can be done."""

    def close(self) -> None:
        """Stop everything. Raises AssertionError if a process had ended by itself."""


class Embedded:
    """A server with a data directory of its own."""

    def __init__(self, directory: Path, *options: str) -> None:
        self._options = ("--data-dir", str(directory), "--admin-port", "0", *options)
        self._stack = ExitStack()
        self._server: Server | None = None

    def start(self) -> Sequence[str]:
        self._server = self._stack.enter_context(serving(*self._options))
        return [self._server.endpoint]

    def faults(self) -> Mapping[str, Callable[[], None]]:
        return {"kill server 0": self._kill}

    def _kill(self) -> None:
        assert self._server is not None, "the server was not started"
        port = urlsplit(self._server.endpoint).port
        self._server.kill()
        self._stack.close()
        self._server = self._stack.enter_context(serving(*self._options, "--port", str(port)))

    def close(self) -> None:
        self._stack.close()


class Running:
    """Servers that run already and are not hurt."""

    def __init__(self, endpoints: Sequence[str]) -> None:
        self._endpoints = endpoints

    def start(self) -> Sequence[str]:
        return self._endpoints

    def faults(self) -> Mapping[str, Callable[[], None]]:
        return {}

    def close(self) -> None:
        """Leave them running."""
