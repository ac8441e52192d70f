"""PostgreSQL for the tests: one cluster in a temporary directory, which all processes of a run share.

The first test that asks for it starts it. The process that began the run stops it at its end
(`stop_shared`). Each test has a schema of its own, whose name no other test has. As root, PostgreSQL runs as
the user `postgres`, because it refuses to run as root.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hashrange_postgres import PostgresEngine

DIRECTORY: Final = "HASHRANGE_TEST_POSTGRES_DIRECTORY"
"""The environment variable that names the directory of the shared cluster, while a run is under way."""

_BINARIES: Final = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: path.parts[-3])
_SETTINGS: Final = {
    "listen_addresses": "''",
    "fsync": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "full_page_writes": "off",
    # Little CPU for features that no test needs.
    "autovacuum_naptime": "60",
    "log_checkpoints": "off",
    "wal_retrieve_retry_interval": "100",
}


def installed() -> bool:
    """Whether this machine has PostgreSQL's programs."""
    return bool(_BINARIES) or shutil.which("pg_ctl") is not None


def binaries() -> Path:
    """The directory of PostgreSQL's programs."""
    return _BINARIES[-1].parent if _BINARIES else Path(shutil.which("pg_ctl") or "").parent


def _program(name: str) -> str:
    return str(_BINARIES[-1].with_name(name)) if _BINARIES else name


def owner() -> dict[str, Any]:
    """The arguments of `subprocess` that name the user of PostgreSQL's programs."""
    if os.geteuid():
        return {}
    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


class Cluster:
    """A cluster in `directory`, which is made if it is missing."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.url = f"host={directory} user=postgres dbname=postgres"

    def make(self) -> None:
        self.directory.mkdir(exist_ok=True)
        if not os.geteuid():
            os.chown(self.directory, owner()["user"], owner()["group"])
        self._run("initdb", "-D", "data", "-U", "postgres", "-A", "trust", "--no-sync")

    def start(self, **settings: str) -> None:
        given = {**_SETTINGS, **settings}
        options = " ".join(f"-c {name}={value}" for name, value in given.items())
        self._run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", f"-k {self.directory} {options}", "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", "data", "-w", "-m", mode, "stop")

    def restart_after_crash(self) -> None:
        """Kill PostgreSQL as a crash does, and start it again."""
        self.stop("immediate")
        self.start()

    def standby(self) -> Cluster:
        """Start a cluster that follows this one."""
        other = Cluster(new_directory())
        if not os.geteuid():
            os.chown(other.directory, owner()["user"], owner()["group"])
        source = ["-h", str(self.directory), "-U", "postgres", "--checkpoint=fast"]
        other._run("pg_basebackup", *source, "-D", "data", "-R", "-X", "stream", "--no-sync")
        other.start()
        return other

    def promote(self) -> None:
        """Make a standby a primary."""
        self._run("pg_ctl", "-D", "data", "-w", "promote")

    def is_made(self) -> bool:
        return (self.directory / "data" / "PG_VERSION").exists()

    def is_running(self) -> bool:
        return (self.directory / "data" / "postmaster.pid").exists()

    def _run(self, program: str, *arguments: str) -> None:
        # PostgreSQL keeps these open, so `run` would wait for the end of a pipe.
        with (self.directory / f"{program}.out").open("w") as output:
            done = subprocess.run(
                [_program(program), *arguments],
                cwd=self.directory,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                check=False,
                **owner(),
            )
        if done.returncode:
            text = (self.directory / f"{program}.out").read_text()
            log = self.directory / "log"
            raise AssertionError(f"{program} failed: {text}\n{log.read_text() if log.exists() else ''}")


def new_cluster() -> Cluster:
    """Start a separate cluster, for a test that kills it; pass it to `remove` at the end."""
    cluster = Cluster(new_directory())
    cluster.make()
    cluster.start()
    return cluster


def new_directory() -> Path:
    """A directory that other users may enter."""
    # Short, because the path of a socket may have at most 107 bytes; and not in pytest's directory, which
    # other users cannot enter.
    directory = Path(tempfile.mkdtemp(prefix="hashrange-pg-"))
    directory.chmod(0o755)
    return directory


def own(directory: Path) -> None:
    """Make the user of PostgreSQL the owner of a directory."""
    if owner():
        os.chown(directory, owner()["user"], owner()["group"])


def remove(cluster: Cluster) -> None:
    """Stop a cluster, and remove its directory."""
    if cluster.is_running():
        cluster.stop("immediate")
    shutil.rmtree(cluster.directory, ignore_errors=True)


def begin_run() -> None:
    """Choose the directory of the cluster that this process and its children share."""
    if DIRECTORY not in os.environ and installed():
        os.environ[DIRECTORY] = str(new_directory())


def end_run() -> None:
    """Stop the shared cluster; called by the process that began the run."""
    directory = os.environ.pop(DIRECTORY, None)
    if directory is not None:
        remove(Cluster(Path(directory)))


def shared() -> Cluster:
    """The shared cluster, which runs."""
    cluster = Cluster(Path(os.environ[DIRECTORY]))
    with (cluster.directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cluster.is_made():
            cluster.make()
        if not cluster.is_running():
            cluster.start()
    return cluster


def new_schema() -> str:
    """The name of a schema that no other test has."""
    return f"test_{uuid.uuid4().hex[:20]}"


def engine(url: str, **options: Any) -> PostgresEngine:
    """An engine over a schema of a PostgreSQL. Tests of all engines ask for it here, because their modules
    are collected without the ring, too."""
    from hashrange_postgres import PostgresEngine

    return PostgresEngine(url, **options)
