"""Loads from files: the units of each minute, as CSV.

    at,table,index,read_units,write_units
    2026-11-25T10:00:00Z,orders,,1200.5,340
    2026-11-25T10:00:00Z,orders,by-status,0,340

`at` is a moment in ISO 8601 or epoch seconds; the minute that it lies in counts. The lines may have any
order; those of the same minute, table and index are added up. `index` may be empty or missing. `hashrange
costs --load` prints a load in this form.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

from hashrange.clock import parse_moment, show_moment
from hashrange.money.counts import Minute, Series

COLUMNS: Final = ("at", "table", "index", "read_units", "write_units")
_NEEDED: Final = frozenset(COLUMNS) - {"index"}


class WrongLoad(ValueError):
    """A file that holds no load; the text names the line and the remedy."""


def read_csv(lines: Iterable[str]) -> list[Series]:
    """The load in lines of CSV. Raises `WrongLoad`."""
    reader = csv.DictReader(lines, strict=True)
    minutes: dict[tuple[str, str], dict[int, Minute]] = {}
    try:
        missing = _NEEDED - set(reader.fieldnames or ())
        if missing:
            raise WrongLoad(
                f"The first line has no column {', '.join(sorted(missing))}; write {','.join(COLUMNS)}."
            )
        for row in reader:
            _add(minutes, row, reader.line_num)
    except csv.Error as error:
        raise WrongLoad(f"Line {reader.reader.line_num} is not CSV: {error}.") from None
    if not minutes:
        raise WrongLoad("There is no line after the first: the load has no minutes.")
    return [
        Series(table, index, [by_minute[at] for at in sorted(by_minute)])
        for (table, index), by_minute in sorted(minutes.items())
    ]


def _add(
    minutes: dict[tuple[str, str], dict[int, Minute]], row: dict[str, str | None], line_number: int
) -> None:
    table = row["table"]
    try:
        moment = parse_moment(row["at"] or "")
        units = [_units(row[name]) for name in ("read_units", "write_units")]
    except ValueError as error:
        raise WrongLoad(f"Line {line_number}: {error}") from None
    if not table:
        raise WrongLoad(f"Line {line_number} names no table.")
    at = int(moment // 60) * 60
    minute = minutes.setdefault((table, row.get("index") or ""), {}).setdefault(at, Minute(at))
    minute.reads += units[0]
    minute.writes += units[1]


def _units(text: str | None) -> float:
    try:
        units = float(text or "")
    except ValueError:
        units = -1.0
    if not 0 <= units < 1e15:
        raise ValueError(f"{text!r} is not a number of units, as 0, 12 and 340.5 are.")
    return units


def to_csv(series: Sequence[Series]) -> str:
    """A load as CSV, by time."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    rows = [
        (minute.at, part.table, part.index, minute.reads, minute.writes)
        for part in series
        for minute in part.minutes
    ]
    for at, table, index, reads, writes in sorted(rows):
        writer.writerow((show_moment(at), table, index, f"{reads:.10g}", f"{writes:.10g}"))
    return text.getvalue()
