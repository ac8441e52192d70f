"""A group of PostgreSQL servers under Patroni, with etcd: one primary, and its synchronous standby.

The members are like three machines that share an address: each has a Patroni and a PostgreSQL of its own.
Patroni's waits are short, so that a failover takes seconds.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

import postgres
from serving import free_port

_PATRONI: Final = "/usr/bin/patroni"
_PATRONICTL: Final = "/usr/bin/patronictl"
_ETCD: Final = "/usr/bin/etcd"
_SCOPE: Final = "hashrange"
_HOST: Final = "127.0.0.1"
_WHOLE_SECONDS_MAX: Final = 120.0
_DYNAMIC: Final[dict[str, Any]] = {
    "ttl": 6,
    "loop_wait": 1,
    "retry_timeout": 2,
    "synchronous_mode": True,
    # Patroni does not wait for a PostgreSQL that died: its standby takes over.
    "primary_start_timeout": 0,
    "postgresql": {
        "use_pg_rewind": True,
        "use_slots": True,
        "parameters": {
            "fsync": "off",
            "max_connections": 100,
            "shared_buffers": "32MB",
            "wal_log_hints": "on",
            "wal_keep_size": "64MB",
            "wal_retrieve_retry_interval": "100ms",
        },
    },
}


def installed() -> bool:
    """Whether this machine has PostgreSQL, Patroni and etcd."""
    programs = (_PATRONI, _PATRONICTL, _ETCD)
    return postgres.installed() and all(os.access(program, os.X_OK) for program in programs)


class _Program:
    """A background program that can be killed together with everything it started."""

    def __init__(self, directory: Path, *command: str) -> None:
        self._directory = directory
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
                **postgres.owner(),
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Member:
    """A machine of the group: its Patroni and its PostgreSQL."""

    def __init__(self, directory: Path, name: str, etcd_port: int) -> None:
        self.name = name
        self.port, self.rest_port = free_port(), free_port()
        self._data = directory / name / "data"
        self.configuration = directory / name / "patroni.yml"
        _make(directory / name)
        accounts = {role: {"username": "postgres"} for role in ("superuser", "replication", "rewind")}
        configuration = {
            "scope": _SCOPE,
            "name": name,
            "restapi": {
                "listen": f"{_HOST}:{self.rest_port}",
                "connect_address": f"{_HOST}:{self.rest_port}",
            },
            "etcd3": {"host": f"{_HOST}:{etcd_port}"},
            "bootstrap": {"dcs": _DYNAMIC, "initdb": ["no-sync", {"auth": "trust"}]},
            "postgresql": {
                "listen": f"{_HOST}:{self.port}",
                "connect_address": f"{_HOST}:{self.port}",
                "data_dir": str(self._data),
                "bin_dir": str(postgres.binaries()),
                "authentication": accounts,
                "pgpass": str(directory / name / "pgpass"),
                "parameters": {"unix_socket_directories": str(directory / name)},
                "pg_hba": ["local all all trust", *(f"host {kind} all {_HOST}/32 trust" for kind in _KINDS)],
            },
        }
        self.configuration.write_text(yaml.safe_dump(configuration))
        self._patroni = _Program(directory / name, _PATRONI, str(self.configuration))

    def start(self) -> None:
        self._patroni.start()

    def kill(self) -> None:
        """Kill all of it, as when its machine loses power."""
        self._patroni.kill()
        self.kill_postgres()

    def kill_postgres(self) -> None:
        """Kill its PostgreSQL only: the postmaster and all its children at one moment."""
        file = self._data / "postmaster.pid"
        if not file.exists():
            return
        postmaster = int(file.read_text().split("\n", 1)[0])
        if str(self._data) not in _command_line(postmaster):
            return  # it is dead, and another process may have its pid
        processes = (postmaster, *_children(postmaster))
        # All stop before the first dies. A process that waits for the standby and sees that the postmaster is
        # dead waits no longer: it shows its commit to readers, although no standby has it.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in processes:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        while str(self._data) in _command_line(postmaster):
            pass  # it is dying


_KINDS: Final = ("all", "replication")


class Group:
    """Members and an etcd, which are started by the constructor. `url` names all members."""

    def __init__(self, members: int) -> None:
        self.directory = postgres.new_directory()
        postgres.own(self.directory)
        port, peers = free_port(), f"http://{_HOST}:{free_port()}"
        clients = f"http://{_HOST}:{port}"
        _make(self.directory / "etcd")
        self._etcd = _Program(
            self.directory / "etcd",
            *(_ETCD, "--data-dir", "data", "--name", "etcd"),
            *("--listen-client-urls", clients, "--advertise-client-urls", clients),
            *("--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers),
            *("--initial-cluster", f"etcd={peers}"),
        )
        self.members = [Member(self.directory, f"member{number}", port) for number in range(members)]
        hosts = ",".join([_HOST] * members)
        ports = ",".join(str(member.port) for member in self.members)
        self.url = f"host={hosts} port={ports} user=postgres dbname=postgres target_session_attrs=read-write"
        try:
            self._etcd.start()
            for member in self.members:
                member.start()
            self.await_whole()
        except BaseException:
            self.remove()
            raise

    def primary(self) -> Member:
        """The leader, according to a member that answers. Raises LookupError if there is none."""
        for role in self._roles():
            if role["role"] == "leader" and role["state"] == "running":
                return next(member for member in self.members if member.name == role["name"])
        raise LookupError("the group has no leader")

    def await_whole(self) -> None:
        """Wait until there is a primary, and all others follow it, one of them as its synchronous standby."""
        end = time.monotonic() + _WHOLE_SECONDS_MAX
        while not self._is_whole():
            assert time.monotonic() < end, f"the group is not whole: {self._roles()}\n{self._logs()}"
            time.sleep(0.1)  # Patroni looks once a second

    def _is_whole(self) -> bool:
        roles = self._roles()
        states = sorted((one["role"], one["state"]) for one in roles)
        kinds = [role for role, _ in states]
        followers = len(self.members) - 1
        return (
            kinds.count("leader") == 1
            and kinds.count("sync_standby") == 1
            and len(states) == 1 + followers
            and all(state in ("running", "streaming") for _, state in states)
            and len({one["timeline"] for one in roles}) == 1
        )

    def _roles(self) -> list[dict[str, Any]]:
        for member in self.members:
            with suppress(OSError):
                answer = urllib.request.urlopen(f"http://{_HOST}:{member.rest_port}/cluster", timeout=5)
                found: list[dict[str, Any]] = orjson.loads(answer.read())["members"]
                return found
        return []

    # The faults. Each returns when the group is whole again.

    def lose_the_primary(self) -> None:
        """The primary's machine dies, and comes back when another member is the primary."""
        lost = self.primary()
        lost.kill()
        self._await_other(lost)
        lost.start()
        self.await_whole()

    def kill_the_primarys_postgres(self) -> None:
        lost = self.primary()
        lost.kill_postgres()
        self._await_other(lost)
        self.await_whole()

    def fail_over(self) -> None:
        """Fail over with `patronictl failover`, as an operator does."""
        before = self.primary()
        [candidate] = [role["name"] for role in self._roles() if role["role"] == "sync_standby"]
        command = [_PATRONICTL, "-c", str(before.configuration), "failover", _SCOPE]
        done = subprocess.run(
            [*command, "--candidate", candidate, "--force"],
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
            **postgres.owner(),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self._await_other(before)
        self.await_whole()

    def lose_etcd(self) -> None:
        """etcd dies and comes back. Meanwhile the primary may step down."""
        self._etcd.kill()
        self._etcd.start()
        self.await_whole()

    def _await_other(self, before: Member) -> None:
        end = time.monotonic() + _WHOLE_SECONDS_MAX
        while True:
            with suppress(LookupError):
                if self.primary() is not before:
                    return
            assert time.monotonic() < end, f"no other member took over: {self._roles()}\n{self._logs()}"
            time.sleep(0.1)  # Patroni looks once a second

    def _logs(self) -> str:
        """The last lines of all logs."""
        logs = sorted(self.directory.glob("*/log"))
        return "\n".join(f"{log}:\n" + "\n".join(log.read_text().splitlines()[-20:]) for log in logs)

    def remove(self) -> None:
        """Kill all, and remove the directory."""
        for member in self.members:
            member.kill()
        self._etcd.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


def _make(directory: Path) -> None:
    directory.mkdir()
    postgres.own(directory)


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _command_line(pid: int) -> str:
    """The command line of a process; empty if it is dead."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
