"""SIGHUP: it lets a server read its files again, and a closed terminal ends its server in good order."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from serving import READY_SECONDS_MAX, STOP_SECONDS_MAX, read_lines, serving

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP")

# A server whose terminal is its standard input, as that of a server that a user starts.
_IN_TERMINAL = """
import fcntl, runpy, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
if sys.argv[1] == "nohup":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
del sys.argv[1]
runpy.run_module("hashrange", run_name="__main__", alter_sys=True)
"""


KEY = {"id": "AKIDROOT", "secret": "the-secret-of-root"}


class Session:
    """A server in a terminal, and the lines of its log."""

    def __init__(self, *options: str, nohup: bool = False) -> None:
        import pty

        self._terminal, inside = pty.openpty()
        kind = "nohup" if nohup else "plain"
        command = [sys.executable, "-c", _IN_TERMINAL, kind, "serve", "--memory", "--port", "0", *options]
        self.process = subprocess.Popen(
            [*command, "--log-format", "json"],
            stdin=inside,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        os.close(inside)
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=read_lines, args=(self.process.stdout, self._lines))
        self._reader.start()

    def until(self, event: str) -> dict[str, object]:
        """The next line of the log with this event."""
        while (line := self._lines.get(timeout=READY_SECONDS_MAX)) is not None:
            logged: dict[str, object] = json.loads(line)
            if event in str(logged["event"]):
                return logged
        raise AssertionError(f"the server ended without {event}")

    def close_terminal(self) -> None:
        os.close(self._terminal)
        self._terminal = -1

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        if self._terminal >= 0:
            self.close_terminal()


@contextlib.contextmanager
def session(*options: str, nohup: bool = False) -> Iterator[Session]:
    made = Session(*options, nohup=nohup)
    try:
        made.until("started")
        yield made
    finally:
        made.end()


def test_a_server_without_a_users_file_goes_on(tmp_path: Path) -> None:
    with serving("--memory") as server:
        server.process.send_signal(signal.SIGHUP)
        assert server.says("SIGHUP: there is (no) users file to read again") == "no"


@pytest.mark.parametrize("in_terminal", [False, True])
def test_the_users_file_is_read_again(tmp_path: Path, in_terminal: bool) -> None:
    file = tmp_path / "users.json"
    file.write_bytes(orjson.dumps({"accounts": {"123456789012": {"root": {"keys": [KEY]}}}}))
    options = ("--auth", "soft", "--users", str(file))
    if not in_terminal:
        with serving("--memory", *options) as server:
            server.process.send_signal(signal.SIGHUP)
            server.says("(read the users file again)")
        return
    with session(*options) as server:
        server.process.send_signal(signal.SIGHUP)
        server.until("read the users file again")


def test_a_closed_terminal_ends_the_server_as_sigterm_does() -> None:
    with session() as server:
        server.close_terminal()
        assert server.until("stopping")["reason"] == "SIGHUP"
        assert server.process.wait(STOP_SECONDS_MAX) == 0


def test_nohup_keeps_the_server_beyond_its_terminal() -> None:
    with session(nohup=True) as server:
        server.close_terminal()
        server.until("there is no users file to read again")
        server.process.send_signal(signal.SIGTERM)
        assert server.until("stopping")["reason"] == "SIGTERM"
