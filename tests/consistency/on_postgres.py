"""Servers over one PostgreSQL, which the round starts: a cluster of its own, that survives its death."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from urllib.parse import urlsplit

import psycopg

import postgres
from serving import Server, serving


class OnPostgres:
    """Any number of servers over one database."""

    def __init__(self, servers: int) -> None:
        self._count = servers
        self._cluster: postgres.Cluster | None = None
        self._servers: list[Server] = []
        self._stacks: list[ExitStack] = []

    def start(self) -> Sequence[str]:
        self._cluster = postgres.new_cluster()
        for _ in range(self._count):
            stack = ExitStack()
            self._stacks.append(stack)
            self._servers.append(stack.enter_context(serving(*self._options())))
        return [server.endpoint for server in self._servers]

    def _options(self) -> Sequence[str]:
        assert self._cluster is not None, "the servers were not started"
        return ("--postgres", self._cluster.url, "--admin-port", "0")

    def faults(self) -> Mapping[str, Callable[[], None]]:
        assert self._cluster is not None, "the servers were not started"
        kills = {f"kill server {number}": partial(self._kill, number) for number in range(self._count)}
        return {
            **kills,
            "kill the database": self._cluster.restart_after_crash,
            "cut the connections": self._cut_connections,
        }

    def _kill(self, number: int) -> None:
        server, stack = self._servers[number], self._stacks[number]
        server.kill()
        stack.close()
        port = urlsplit(server.endpoint).port
        self._servers[number] = stack.enter_context(serving(*self._options(), "--port", str(port)))

    def _cut_connections(self) -> None:
        """Cut those of all servers, as an administrator does."""
        assert self._cluster is not None, "the servers were not started"
        with psycopg.connect(self._cluster.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )

    def close(self) -> None:
        with ExitStack() as stack:
            if self._cluster is not None:
                stack.callback(postgres.remove, self._cluster)
            for one in self._stacks:
                stack.callback(one.close)
