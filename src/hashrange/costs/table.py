"""Records as a table for people."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from hashrange.costs.record import Record

_COLUMNS: Final[tuple[tuple[str, Callable[[Record], str]], ...]] = (
    ("operation", lambda one: one.operation),
    ("table", lambda one: ",".join(one.tables)),
    ("index", lambda one: one.index),
    ("read units", lambda one: number(one.read_units)),
    ("write units", lambda one: number(one.write_units)),
    ("read", lambda one: _count(one.read_items)),
    ("returned", lambda one: _count(one.returned_items)),
    ("bytes", lambda one: str(one.answer_bytes)),
    ("attempt", lambda one: str(one.attempt) if one.attempt > 1 else ""),
    ("error", lambda one: one.error),
)
_TEXTS: Final = frozenset({"operation", "table", "index", "error"})


def show(records: Sequence[Record], marked: Iterable[Record] = ()) -> str:
    """The table of records; those that are `marked` begin with an arrow. Columns without content are left
    out."""
    marks = {id(one) for one in marked}
    rows = [[column(one) for _, column in _COLUMNS] for one in records]
    kept = [place for place in range(len(_COLUMNS)) if any(row[place] not in ("", "0") for row in rows)]
    names = [_COLUMNS[place][0] for place in kept]
    lines = aligned(
        [names, *([row[place] for place in kept] for row in rows)],
        {place for place, name in enumerate(names) if name in _TEXTS},
    )
    arrows = ["  ", *("→ " if id(one) in marks else "  " for one in records)]
    return "\n".join(arrow + line for arrow, line in zip(arrows, lines, strict=True)).rstrip()


def aligned(rows: Sequence[Sequence[str]], texts: Collection[int]) -> list[str]:
    """Rows as lines. The columns at the places `texts` stand at the left, the others at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place in texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def number(units: float) -> str:
    """A number without needless zeros."""
    return f"{units:.10g}"


def _count(items: int | None) -> str:
    return "" if items is None else str(items)
