"""The servers under test, and how they can be hurt.

An engine's tests write a `Deployment` of their own, and give it to `rounds.play`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from serving import Server, free_port, serving

STREAM_OPTIONS: Final = ("--stream-shards", "2", "--stream-shard-seconds", "2")
"""So that streams have several shards at a time, and children within a round."""


class Deployment(Protocol):
    """Servers over one database."""

    def start(self) -> Sequence[str]:
        """Start everything, with a database that has none of the round's tables; return the endpoints, which
        never change."""

    @property
    def admin_urls(self) -> Sequence[str]:
        """The admin planes of the servers; empty where nobody knows them."""

    def faults(self) -> Mapping[str, Callable[[], None]]:
        """By name, the ways to hurt the servers while they work, such as `kill server 0`, `kill database`,
        `cut connections`. The first word of the name is the kind of the fault: each kind is as likely as the
        others. One thread calls them, one after the other. Each mends its damage before it returns: a server
        that was killed listens again. Empty where nothing can be done."""

    def check(self) -> str:
        """The problems that `hashrange check` finds in the store; empty if there are none."""

    def close(self) -> None:
        """Stop everything. Raises AssertionError if a process had ended by itself."""


class Embedded:
    """A server with a data directory of its own."""

    def __init__(self, directory: Path, *options: str) -> None:
        self._directory = directory
        admin = ("--admin-port", str(free_port()))
        self._options = ("--data-dir", str(directory), *admin, *STREAM_OPTIONS, *options)
        self._stack = ExitStack()
        self._server: Server | None = None

    def start(self) -> Sequence[str]:
        self._server = self._stack.enter_context(serving(*self._options))
        return [self._server.endpoint]

    @property
    def admin_urls(self) -> Sequence[str]:
        return [self._running().admin]

    def faults(self) -> Mapping[str, Callable[[], None]]:
        return {"kill server 0": self._kill}

    def _running(self) -> Server:
        assert self._server is not None, "the server was not started"
        return self._server

    def _kill(self) -> None:
        self._running().kill()
        self._stack.close()
        self._start_again()

    def _start_again(self) -> None:
        port = urlsplit(self._running().endpoint).port
        self._server = self._stack.enter_context(serving(*self._options, "--port", str(port)))

    def check(self) -> str:
        """A directory can be checked while no server has it open."""
        self._stack.close()
        problems = problems_of(str(self._directory))
        self._start_again()
        return problems

    def close(self) -> None:
        self._stack.close()


class Running:
    """Servers that run already and are not hurt."""

    def __init__(self, endpoints: Sequence[str]) -> None:
        self._endpoints = endpoints

    def start(self) -> Sequence[str]:
        return self._endpoints

    @property
    def admin_urls(self) -> Sequence[str]:
        return []

    def faults(self) -> Mapping[str, Callable[[], None]]:
        return {}

    def check(self) -> str:
        return ""

    def close(self) -> None:
        """Leave them running."""


def problems_of(store: str) -> str:
    """The problems that `hashrange check` finds in a store: a directory, or a URL of PostgreSQL."""
    command = [sys.executable, "-m", "hashrange", "check", store]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if checked.returncode == 0 else checked.stdout + checked.stderr
