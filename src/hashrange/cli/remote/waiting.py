"""Waiting for work of a running server, with a bar for each piece of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hashrange.cli.remote.progress import bar
from hashrange.pace.workers import hold_up

_STEPS: Final = 1_000
_POLL_SECONDS: Final = 0.2


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
