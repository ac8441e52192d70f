"""Records as a table for people."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from hashrange.observing.record import Record

_COLUMNS: Final[tuple[tuple[str, Callable[[Record], str]], ...]] = (
    ("operation", lambda record: record.operation),
    ("table", lambda record: ",".join(record.tables)),
    ("index", lambda record: record.index),
    ("read units", lambda record: number(record.read_units)),
    ("write units", lambda record: number(record.write_units)),
    ("read", lambda record: _count(record.read_items)),
    ("returned", lambda record: _count(record.returned_items)),
    ("bytes", lambda record: str(record.answer_bytes)),
    ("attempt", lambda record: str(record.attempt) if record.attempt > 1 else ""),
    ("error", lambda record: record.error),
)
_TEXTS: Final = frozenset({"operation", "table", "index", "error"})


def show(records: Sequence[Record], marked: Iterable[Record] = ()) -> str:
    """The table of records; `marked` records begin with an arrow. Empty columns are left out."""
    marks = {id(record) for record in marked}
    rows = [[column(record) for _, column in _COLUMNS] for record in records]
    shown_columns = [
        place for place in range(len(_COLUMNS)) if any(row[place] not in ("", "0") for row in rows)
    ]
    names = [_COLUMNS[place][0] for place in shown_columns]
    lines = aligned(
        [names, *([row[place] for place in shown_columns] for row in rows)],
        {place for place, name in enumerate(names) if name in _TEXTS},
    )
    arrows = ["  ", *("→ " if id(record) in marks else "  " for record in records)]
    return "\n".join(arrow + line for arrow, line in zip(arrows, lines, strict=True)).rstrip()


def aligned(rows: Sequence[Sequence[str]], texts: Collection[int]) -> list[str]:
    """Rows as lines. The columns at the places `texts` are aligned left, the other columns right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place in texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def number(units: float) -> str:
    """A number without unnecessary zeros."""
    return f"{units:.10g}"


def _count(items: int | None) -> str:
    return "" if items is None else str(items)
