"""PgBouncer for the tests: transaction pooling over few connections, in front of a cluster of `postgres`."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Final

import postgres

CONNECTIONS: Final = 4
"""To PostgreSQL: fewer than one engine would open by itself."""

_PROGRAM: Final = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
_START_SECONDS_MAX: Final = 10.0
_PORT: Final = 6432


def installed() -> bool:
    """Whether this machine has PgBouncer."""
    return os.access(_PROGRAM, os.X_OK)


class Pooler:
    """A running PgBouncer, whose clients share its connections to `cluster`."""

    def __init__(self, cluster: postgres.Cluster) -> None:
        self.directory = postgres.new_directory()
        self.url = f"host={self.directory} port={_PORT} user=postgres dbname=postgres"
        (self.directory / "users").write_text('"postgres" ""\n')
        (self.directory / "pgbouncer.ini").write_text(
            f"""[databases]
* = host={cluster.directory}

[pgbouncer]
pool_mode = transaction
default_pool_size = {CONNECTIONS}
max_client_conn = 1000
listen_addr =
listen_port = {_PORT}
unix_socket_dir = {self.directory}
auth_type = trust
auth_file = {self.directory}/users
logfile = {self.directory}/log
# Soon after PostgreSQL is there again, so are its connections.
server_login_retry = 0.1
"""
        )
        for path in self.directory.iterdir():
            path.chmod(0o644)  # in spite of the umask, because another user reads it
        postgres.own(self.directory)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [_PROGRAM, "-q", str(self.directory / "pgbouncer.ini")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **postgres.owner(),
        )
        end = time.monotonic() + _START_SECONDS_MAX
        while not _listens(self.directory / f".s.PGSQL.{_PORT}"):
            if self._process.poll() is not None or time.monotonic() > end:
                log = self.directory / "log"
                raise AssertionError(f"PgBouncer does not listen: {log.read_text() if log.exists() else ''}")

    def kill(self) -> None:
        """Kill it, with all connections through it, and start another one."""
        self.stop()
        self.start()

    def stop(self) -> None:
        assert self._process is not None, "it was not started"
        self._process.kill()
        self._process.wait()
        (self.directory / f".s.PGSQL.{_PORT}").unlink(missing_ok=True)

    def remove(self) -> None:
        """Stop it, and remove its directory."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(path)) == 0
