"""Loads: the units of each minute, added up from the requests of a recording, or read from CSV.

    at,table,index,read_units,write_units
    2026-11-25T10:00:00Z,orders,,1200.5,340
    2026-11-25T10:00:00Z,orders,by-status,0,340

`at` is a moment in ISO 8601 or epoch seconds; the minute that it lies in counts. The lines may have any
order; those of the same minute, table and index are added up. `index` may be empty or missing. `hashrange
costs load` prints a load in this form.
"""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from hashrange.clock import parse_moment, show_moment
from hashrange_lab.money.counts import Minute, Series
from hashrange_lab.recordings import reader

COLUMNS: Final = ("at", "table", "index", "read_units", "write_units")
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_GZIP: Final = b"\x1f\x8b"
"""What the blocks of a recording begin with."""
_NEEDED: Final = frozenset(COLUMNS) - {"index"}

_log = logging.getLogger("hashrange.lab")


class WrongLoad(ValueError):
    """A file that holds no load; the text names the line and the remedy."""


class Minutes:
    """Adds up what is consumed in each minute by each table and index, in any order. Times are epoch
    seconds."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], dict[int, Minute]] = {}

    def add(self, at: float, table: str, index: str, reads: float, writes: float) -> None:
        """Add units of a table (`index` is "") or of a global index."""
        start = int(at // 60) * 60
        minute = self._places.setdefault((table, index), {}).setdefault(start, Minute(start))
        minute.reads += reads
        minute.writes += writes

    def add_request(
        self,
        at: float,
        tables: Sequence[str],
        read_units: float,
        write_units: float,
        index_units: Mapping[str, float],
    ) -> None:
        """Add a request as `hashrange.costs.Record` and recordings tell of it: the units of all indexes are
        part of the others. The units of a request on several tables are those of the first, because nothing
        says how they are divided."""
        if not tables or not (read_units or write_units):
            return
        of_indexes = sum(index_units.values())
        is_write = write_units > 0
        for index, units in index_units.items():
            self.add(at, tables[0], index, 0.0 if is_write else units, units if is_write else 0.0)
        reads = read_units - (0.0 if is_write else of_indexes)
        writes = write_units - (of_indexes if is_write else 0.0)
        if reads or writes:
            self.add(at, tables[0], "", reads, writes)

    def series(self) -> list[Series]:
        """The load so far, by tables and indexes."""
        return [
            Series(table, index, [minutes[at] for at in sorted(minutes)])
            for (table, index), minutes in sorted(self._places.items())
        ]


def read(path: Path) -> list[Series]:
    """The load in a file: a recording of `hashrange serve --record`, or CSV. Raises `WrongLoad`, OSError."""
    with path.open("rb") as file:
        is_compressed = file.read(len(_ZSTD)).startswith((_ZSTD, _GZIP))
    if is_compressed:
        return _recorded(path)
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            return read_csv(lines)
    except UnicodeDecodeError:
        raise WrongLoad(f"{path} is neither a recording nor CSV in UTF-8.") from None


def _recorded(path: Path) -> list[Series]:
    minutes = Minutes()
    try:
        with reader.open(path) as recording:
            began = recording.head.began
            for entry in recording.entries():
                minutes.add_request(
                    began + entry.at, entry.tables, entry.read_units, entry.write_units, entry.index_units
                )
            if recording.is_cut:
                _log.warning("%s is cut off or damaged: the load ends with its last readable request", path)
    except reader.NotARecording as error:
        raise WrongLoad(str(error)) from None
    series = minutes.series()
    if not series:
        raise WrongLoad(f"No request in {path} has consumed anything.")
    return series


def read_csv(lines: Iterable[str]) -> list[Series]:
    """The load in lines of CSV. Raises `WrongLoad`."""
    table = csv.DictReader(lines, strict=True)
    minutes = Minutes()
    try:
        missing = _NEEDED - set(table.fieldnames or ())
        if missing:
            raise WrongLoad(
                f"The first line has no column {', '.join(sorted(missing))}; write {','.join(COLUMNS)}."
            )
        for row in table:
            _add(minutes, row, table.line_num)
    except csv.Error as error:
        raise WrongLoad(f"Line {table.reader.line_num} is not CSV: {error}.") from None
    series = minutes.series()
    if not series:
        raise WrongLoad("There is no line after the first: the load has no minutes.")
    return series


def _add(minutes: Minutes, row: dict[str, str | None], line_number: int) -> None:
    table = row["table"]
    try:
        moment = parse_moment(row["at"] or "")
        units = [_units(row[name]) for name in ("read_units", "write_units")]
    except ValueError as error:
        raise WrongLoad(f"Line {line_number}: {error}") from None
    if not table:
        raise WrongLoad(f"Line {line_number} names no table.")
    minutes.add(moment, table, row.get("index") or "", *units)


def _units(text: str | None) -> float:
    try:
        units = float(text or "")
    except ValueError:
        units = -1.0
    if not 0 <= units < 1e15:
        raise ValueError(f"{text!r} is not a number of units, such as 0, 12 or 340.5.")
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
