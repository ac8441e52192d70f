"""Servers over one PostgreSQL, which the round starts: a cluster of its own, which keeps its data when it is
killed. Between each server and PostgreSQL is a proxy, which holds back what comes, or cuts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from itertools import product
from time import sleep
from typing import Final
from urllib.parse import urlencode, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

import balancer
import pgbouncer
import postgres
from consistency.deployments import STREAM_OPTIONS, problems_of
from proxy import Proxy, Way
from serving import Server, free_port, serving

ANSWER_SECONDS: Final = 3.0
"""How long PostgreSQL may take to answer these servers, so that a round learns what became of a commit."""
HELD_SECONDS: Final = (0.5, 1.5 * ANSWER_SECONDS)
"""How long a proxy holds something back: the servers wait for it, or do not."""
TERMINATIONS: Final = 10

_WAYS: Final[dict[str, tuple[Way, ...]]] = {
    "requests": ("requests",),
    "answers": ("answers",),
    "requests and answers": ("requests", "answers"),
}


class Servers:
    """Servers, each with the `options` of its own. Their clocks are wrong by `skew_seconds`: the first is
    behind, the second ahead, and so on."""

    def __init__(self, options: Sequence[Sequence[str]], *, skew_seconds: int = 0) -> None:
        count = len(options)
        self._ahead_seconds = [skew_seconds if number % 2 else -skew_seconds for number in range(count)]
        self._options: list[tuple[str, ...]] = []
        self._servers: list[Server] = []
        self._stacks: list[ExitStack] = []
        for number in range(count):
            stack = ExitStack()
            self._stacks.append(stack)
            self._options.append((*options[number], *STREAM_OPTIONS, "--admin-port", str(free_port())))
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
        self._proxies: list[Proxy] = []
        self._servers: Servers | None = None

    def start(self) -> Sequence[str]:
        cluster = self._cluster = postgres.new_cluster()
        self._stack.callback(postgres.remove, cluster)
        url = cluster.url
        if self._pooled:
            self._pooler = pgbouncer.Pooler(cluster)
            self._stack.callback(self._pooler.remove)
            url = self._pooler.url
        self._proxies = [self._stack.enter_context(Proxy(url)) for _ in range(self._count)]
        backups = str(cluster.directory / "backups")
        common = ("--postgres-answer-seconds", str(ANSWER_SECONDS), "--backup-dir", backups)
        options = [("--postgres", proxy.url, *common) for proxy in self._proxies]
        self._servers = Servers(options, skew_seconds=self._skew_seconds)
        self._stack.callback(self._servers.close)
        if self._balanced:
            return [self._stack.enter_context(balancer.balancing(self._servers.endpoints))]
        return self._servers.endpoints

    @property
    def admin_urls(self) -> Sequence[str]:
        assert self._servers is not None, "the servers were not started"
        return self._servers.admin_urls

    def faults(self) -> Mapping[str, Callable[[], None]]:
        assert self._cluster is not None, "the servers were not started"
        assert self._servers is not None, "the servers were not started"
        faults = self._servers.faults()
        faults["kill the database"] = self._cluster.restart_after_crash
        if self._pooler is not None:
            faults["kill PgBouncer"] = self._pooler.kill
        faults["cut all connections"] = partial(self._terminate, "true")
        faults["cut whatever is busy"] = self._terminate_busy
        for number, proxy in enumerate(self._proxies):
            faults[f"cut server {number} off"] = proxy.cut
            for way, new, seconds, end in product(
                _WAYS, (True, False), HELD_SECONDS, (proxy.pass_on, proxy.cut)
            ):
                which = "all" if new else "its present"
                then = "pass them on" if end == proxy.pass_on else "cut"
                where = f"of server {number} on {which} connections"
                faults[f"hold the {way} {where} for {seconds} s, then {then}"] = partial(
                    _hold, proxy, _WAYS[way], new, seconds, end
                )
        return faults

    def _terminate(self, condition: str) -> None:
        """Cut connections of the servers, as an administrator does."""
        assert self._cluster is not None, "the servers were not started"
        with psycopg.connect(self._cluster.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                f"WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND {condition}"
            )

    def _terminate_busy(self) -> None:
        """Cut those that execute a statement, again and again."""
        for _ in range(TERMINATIONS):
            self._terminate("state <> 'idle'")

    def check(self) -> str:
        assert self._cluster is not None, "the servers were not started"
        return problems_at(self._cluster.url)

    def close(self) -> None:
        self._stack.close()


def _hold(
    proxy: Proxy, ways: Sequence[Way], new: bool, seconds: float, end: Callable[[], None]
) -> None:
    proxy.hold(*ways, new=new)
    sleep(seconds)
    end()


def problems_at(url: str) -> str:
    """The problems that `hashrange check` finds in the store at a connection string."""
    return problems_of(f"postgresql:///?{urlencode(conninfo_to_dict(url))}")
