"""A real `hashrange serve` in a process of its own, for tests that speak HTTP.

It knows only the command line of the package, so that the tests hold for the program that a user runs.
"""

from __future__ import annotations

import queue
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

READY_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 30.0

_ENDPOINT = re.compile(r"https?://[^\s\"',]+?:[1-9]\d*")
# A line of the log may name an endpoint that the server could not reach.
_LOGGED = re.compile(r"\d{4}-\d\d-\d\dT\S+ (DEBUG|WARNING|ERROR)")
_ADMIN = re.compile(r"\badmin\W+(https?://[^\s\"',]+)")

# `hashrange` on a machine whose clock is wrong. The package gets the time only from `time.time`.
_SKEWED = """
import runpy, sys, time
real, ahead_seconds = time.time, int(sys.argv.pop(1))
time.time = lambda: real() + ahead_seconds
runpy.run_module("hashrange", run_name="__main__", alter_sys=True)
"""


@dataclass(slots=True)
class Server:
    """A running server. `admin` is the endpoint of its admin plane, if it has one. `killed`: the test killed
    it."""

    endpoint: str
    process: subprocess.Popen[str]
    admin: str = ""
    killed: bool = False
    lines: queue.SimpleQueue[str | None] = field(default_factory=queue.SimpleQueue)

    def says(self, pattern: str) -> str:
        """The first group of a pattern, in the next line of the output that has it."""
        while (line := self.lines.get(timeout=READY_SECONDS_MAX)) is not None:
            if found := re.search(pattern, line):
                return found[1]
        raise AssertionError(f"the server ended without saying {pattern}")

    def kill(self) -> None:
        """Kill the server by SIGKILL, and wait for its end."""
        self.killed = True
        self.process.kill()
        self.process.wait()


def free_port() -> int:
    """A port on which no program listens."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


@contextmanager
def serving(*options: str, ahead_seconds: int = 0, name: str = "serve") -> Iterator[Server]:
    """Run `hashrange serve OPTIONS`, or another command that serves, until the block ends, then stop it by
    SIGTERM.

    `ahead_seconds`: how far the server's clock is ahead of the real time.

    The server chooses its port unless the options say otherwise; the first line that it prints with an
    endpoint says that it listens. A server that does not stop cleanly, or ends by itself, fails the test.
    """
    port = () if "--port" in options else ("--port", "0")
    program = ["-c", _SKEWED, str(ahead_seconds)] if ahead_seconds else ["-m", "hashrange"]
    command = [sys.executable, *program, name, *port, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    reader = threading.Thread(target=read_lines, args=(process.stdout, lines), daemon=True)
    reader.start()
    try:
        line = _wait_for_endpoint(lines)
        admin = _ADMIN.search(line)
        server = Server(_ENDPOINT.findall(line)[0], process, admin[1] if admin else "", lines=lines)
        yield server
        if not server.killed:
            code = process.poll()
            assert code is None, f"the server ended by itself, with exit code {code}"
            process.send_signal(signal.SIGTERM)
            code = process.wait(STOP_SECONDS_MAX)
            assert code == 0, f"the server ended with exit code {code}"
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        reader.join()
        process.stdout.close()


def read_lines(output: IO[str], lines: queue.SimpleQueue[str | None]) -> None:
    """Drain the output for as long as the process lives: a full pipe would stop it."""
    for line in output:
        lines.put(line)
    lines.put(None)


def _wait_for_endpoint(lines: queue.SimpleQueue[str | None]) -> str:
    """The first line with an endpoint."""
    seen = ""
    try:
        while (line := lines.get(timeout=READY_SECONDS_MAX)) is not None:
            seen += line
            if _ENDPOINT.search(line) and not _LOGGED.match(line):
                return line
    except queue.Empty:
        raise AssertionError(f"the server did not listen within {READY_SECONDS_MAX} s:\n{seen}") from None
    raise AssertionError(f"the server ended before it listened:\n{seen}")
