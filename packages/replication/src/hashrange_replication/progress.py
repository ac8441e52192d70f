"""What commands say of a restore, while it lasts and when it is done."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

import click

from hashrange.clock import show_moment
from hashrange_replication.restore import Restored

_MIB: Final = 1 << 20


def told(restored: Restored) -> str:
    """What a restore has made."""
    moment = show_moment(restored.moment / 1_000)
    base = f"a base of {restored.manifest.bytes / _MIB:.1f} MiB and {restored.batches} commits"
    return f"restored to commit {restored.batch} of {moment}, from {base}"


def restoring() -> Callable[[str, int, int], None]:
    """Shows the progress of a restore (`restore.Progress`)."""

    def show(step: str, done: int, total: int) -> None:
        if step == "files":
            show_line(f"files: {done / _MIB:.0f} of {total / _MIB:.0f} MiB", done >= total)
        else:
            show_line(f"segments: {done} of {total}", done >= total)

    return show


def show_line(line: str, is_done: bool) -> None:
    """Show the progress on a terminal, and only the end of each step elsewhere."""
    if sys.stderr.isatty():
        click.echo(f"\r{line}\x1b[K", nl=is_done, err=True)
    elif is_done:
        click.echo(line, err=True)
