"""Servers in a terminal that a test closes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator

from serving import READY_SECONDS_MAX, read_lines

# A server whose terminal is its standard input, as that of a server that a user starts.
_IN_TERMINAL = """
import fcntl, runpy, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGHUP, signal.SIG_IGN if sys.argv[1] == "nohup" else signal.SIG_DFL)
del sys.argv[1]
runpy.run_module("hashrange", run_name="__main__", alter_sys=True)
"""


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
