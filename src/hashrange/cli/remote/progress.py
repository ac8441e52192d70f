"""The progress of commands: bars, and lines for commands that read all records of a store."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import click

from hashrange.pace.workers import hold_up

# How often the progress is shown on a terminal, and in a log file.
_SHOWN_SECONDS: Final = 0.2
_LOGGED_SECONDS: Final = 10.0
_STEPS: Final = 1_000
_POLL_SECONDS: Final = 0.2


def bar(label: str, length: int) -> Any:
    """A bar of click on a terminal; elsewhere nothing, because click would print only the label."""
    return click.progressbar(
        length=length, label=label, file=sys.stderr if sys.stderr.isatty() else io.StringIO()
    )


def wait(label: str, progress: Callable[[], float | None]) -> None:
    """Show a bar until `progress` returns None; before, it returns the share that is done."""
    shown = 0
    with bar(label, _STEPS) as shown_bar:
        while (share := progress()) is not None:
            now = int(share * _STEPS)
            shown_bar.update(max(now - shown, 0))
            shown = max(now, shown)
            hold_up(_POLL_SECONDS)
        shown_bar.update(_STEPS - shown)


class Progress:
    """Shows how far a command is: continuously on a terminal, occasionally in a log file.

    `steps` are the steps that go through records; other steps are announced when they are done.
    """

    def __init__(self, *steps: str) -> None:
        self._steps = steps
        self._terminal = sys.stderr.isatty()
        self._step = ""
        self._began = 0.0
        self._before = 0
        self._last = 0.0
        self.rate = ""
        """How fast the last step was, for the end of a line."""

    def __call__(self, step: str, done: int, total: int) -> None:
        now = time.monotonic()
        if step not in self._steps:
            self.end()
            click.echo(step, err=True)
            return
        if step != self._step:
            self._step, self._began, self._before = step, now, done
            self._last, self.rate = 0.0, ""
        elif done > self._before:
            self.rate = f", {(done - self._before) / max(now - self._began, 1e-6):.0f} a second"
        if now - self._last >= (_SHOWN_SECONDS if self._terminal else _LOGGED_SECONDS):
            self._last = now
            line = f"{step}: {done} of about {total} records{self.rate}"
            if self._terminal:
                click.echo(f"\r{line}\x1b[K", nl=False, err=True)
            else:
                click.echo(line, err=True)

    def end(self) -> None:
        """Clear the line that is being shown."""
        if self._terminal:
            click.echo("\r\x1b[K", nl=False, err=True)
