"""Tables for people, and numbers in few characters."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

import click

_BLOCKS: Final = " ▏▎▍▌▋▊▉█"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table: its first column is flush left, the others flush right."""
    widths = [max(len(row[place]) for row in (heads, *rows)) for place in range(len(heads))]
    lines = []
    for row in (heads, *rows):
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *cells[1:]]).rstrip())
    return lines


def milliseconds(seconds: float) -> str:
    """A latency, in milliseconds with three digits."""
    value = seconds * 1e3
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def bar(share: float, width: int) -> str:
    """A bar that fills `share` of `width` characters."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    whole, part = divmod(eighths, 8)
    return (_BLOCKS[8] * whole + (_BLOCKS[part] if part else "")).ljust(width)


def codes(errors: dict[str, int]) -> str:
    """Errors by their codes, the most frequent first."""
    ordered = sorted(errors.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{count:,} {code}" for code, count in ordered)


def plural(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


class StatusLine:
    """A line on stderr that is written again and again on a terminal, and every ten seconds in a log."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._ticks = 0

    def show(self, text: str) -> None:
        """Show the text, once a second."""
        self._ticks += 1
        if self._is_terminal:
            click.echo(f"\r{text}\x1b[K", nl=False, err=True)
        elif self._ticks % 10 == 0:
            click.echo(text, err=True)

    def end(self) -> None:
        """Clear the line."""
        if self._is_terminal:
            click.echo("\r\x1b[K", nl=False, err=True)
