"""Servers over a group of PostgreSQL servers under Patroni, with etcd, which the round starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from consistency import patroni
from consistency.on_postgres import Servers, problems_at


class OnPatroni:
    """Two servers over a group. A round of it takes a minute: the faults are over when the group is whole."""

    def __init__(self, members: int, *, servers: int = 2) -> None:
        self._members = members
        self._count = servers
        self._stack = ExitStack()
        self.group: patroni.Group | None = None
        self.servers: Servers | None = None

    def start(self) -> Sequence[str]:
        self.group = patroni.Group(self._members)
        self._stack.callback(self.group.remove)
        backups = str(self.group.directory / "backups")
        options = [("--postgres", self.group.url, "--backup-dir", backups)] * self._count
        self.servers = Servers(options)
        self._stack.callback(self.servers.close)
        return self.servers.endpoints

    @property
    def admin_urls(self) -> Sequence[str]:
        assert self.servers is not None, "the servers were not started"
        return self.servers.admin_urls

    def faults(self) -> Mapping[str, Callable[[], None]]:
        assert self.group is not None, "the servers were not started"
        assert self.servers is not None, "the servers were not started"
        return {
            **self.servers.faults(),
            "lose the primary": self.group.lose_the_primary,
            "kill the primary's PostgreSQL": self.group.kill_the_primarys_postgres,
            "fail over": self.group.fail_over,
            "lose etcd": self.group.lose_etcd,
        }

    def check(self) -> str:
        assert self.group is not None, "the servers were not started"
        return problems_at(self.group.url)

    def close(self) -> None:
        self._stack.close()
