"""Servers over one PostgreSQL, which the round starts: a cluster of its own, which keeps its data when it is
killed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from urllib.parse import urlsplit

import psycopg

import balancer
import pgbouncer
import postgres
from serving import Server, free_port, serving


class Servers:
    """Servers over the PostgreSQL at `url`. Their clocks are wrong by `skew_seconds`: the first is behind,
    the second ahead, and so on."""

    def __init__(self, count: int, url: str, *, skew_seconds: int = 0) -> None:
        self._ahead_seconds = [skew_seconds if number % 2 else -skew_seconds for number in range(count)]
        self._options: list[tuple[str, ...]] = []
        self._servers: list[Server] = []
        self._stacks: list[ExitStack] = []
        for number in range(count):
            stack = ExitStack()
            self._stacks.append(stack)
            self._options.append(("--postgres", url, "--admin-port", str(free_port())))
            self._servers.append(stack.enter_context(self._serve(number)))
        self.endpoints = [server.endpoint for server in self._servers]

    @property
    def admin_urls(self) -> list[str]:
        return [server.admin for server in self._servers]

    def faults(self) -> dict[str, Callable[[], None]]:
        return {f"kill server {number}": partial(self._kill, number) for number in range(len(self._servers))}

    def _kill(self, number: int) -> None:
        server, stack = self._servers[number], self._stacks[number]
        server.kill()
        stack.close()
        port = urlsplit(server.endpoint).port
        self._servers[number] = stack.enter_context(self._serve(number, "--port", str(port)))

    def _serve(self, number: int, *options: str) -> AbstractContextManager[Server]:
        return serving(*self._options[number], *options, ahead_seconds=self._ahead_seconds[number])

    def close(self) -> None:
        with ExitStack() as stack:
            for server_stack in self._stacks:
                stack.callback(server_stack.close)


class OnPostgres:
    """Any number of servers over one database. `pooled`: through PgBouncer; `skew_seconds`: how wrong their
    clocks are; `balanced`: two servers behind HAProxy."""

    def __init__(
        self, servers: int, *, pooled: bool = False, skew_seconds: int = 0, balanced: bool = False
    ) -> None:
        self._count = servers
        self._balanced = balanced
        self._skew_seconds = skew_seconds
        self._pooled = pooled
        self._stack = ExitStack()
        self._cluster: postgres.Cluster | None = None
        self._pooler: pgbouncer.Pooler | None = None
        self._servers: Servers | None = None

    def start(self) -> Sequence[str]:
        cluster = self._cluster = postgres.new_cluster()
        self._stack.callback(postgres.remove, cluster)
        url = cluster.url
        if self._pooled:
            self._pooler = pgbouncer.Pooler(cluster)
            self._stack.callback(self._pooler.remove)
            url = self._pooler.url
        self._servers = Servers(self._count, url, skew_seconds=self._skew_seconds)
        self._stack.callback(self._servers.close)
        if self._balanced:
            return [self._stack.enter_context(balancer.balancing(self._servers.endpoints))]
        return self._servers.endpoints

    def faults(self) -> Mapping[str, Callable[[], None]]:
        assert self._cluster is not None, "the servers were not started"
        assert self._servers is not None, "the servers were not started"
        faults = self._servers.faults()
        faults["kill the database"] = self._cluster.restart_after_crash
        faults["cut the connections"] = self._cut_connections
        if self._pooler is not None:
            faults["kill PgBouncer"] = self._pooler.kill
        return faults

    def _cut_connections(self) -> None:
        """Cut the connections of all servers, as an administrator does."""
        assert self._cluster is not None, "the servers were not started"
        with psycopg.connect(self._cluster.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )

    def close(self) -> None:
        self._stack.close()
