"""The rows of a piece of a file that is uploaded: items in CSV, in lines of JSON, or in a list in JSON, which
may be that of an answer of Scan, or of the requests of BatchWriteItem for the table.

A browser sends a file in pieces and the place that was reached, so a file of any size takes little memory. A
piece may end within a row, which is then read with the next piece.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from hashrange.interchange import csv_files
from hashrange.interchange.csv_files import Columns
from hashrange.interchange.lines import lines
from hashrange.interchange.plain_json import DECODER, NoItem, is_container, item_of, unwrapped
from hashrange.interchange.rows import Bad
from hashrange.values import Item

FORMATS: Final = {"csv": "CSV", "lines": "lines of JSON", "values": "JSON"}
_BOM: Final = b"\xef\xbb\xbf"
_DELIMITERS: Final = (",", ";", "\t", "|")
_PARTS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\]]', re.DOTALL)
_BETWEEN: Final = re.compile(rb"[\s,]*")
_ITEMS: Final = re.compile(rb'\s*\{[^{}\[\]]*?"Items"\s*:\s*\[')
_MEMBER: Final = re.compile(rb'\s*("[^"\\]*(?:\\.[^"\\]*)*")\s*:\s*')
_REQUESTS: Final = re.compile(rb'\[\s*(?:\]|\{\s*"((?:Put|Delete)Request)"\s*:)')


class Layout(msgspec.Struct, forbid_unknown_fields=True):
    """How a file is read; "" is found out at its beginning. `is_over`: the rest of the file is no rows.
    `kinds` are the types of a CSV's columns, and `rest` is that of the others."""

    format: str = ""
    delimiter: str = ""
    header: list[str] = []
    is_over: bool = False
    kinds: dict[str, str] = {}
    rest: str = "S"


class FileRow(NamedTuple):
    """A row: its item or what is wrong with it, its line in the piece, counted from 0, and where it ends."""

    outcome: Item | Bad
    line: int
    end: int


def recognised(name: str, piece: bytes, table: str) -> tuple[Layout, int]:
    """How the file of a name that begins with `piece` is read, and where its first row for `table` begins.

    Raises NoItem for requests of BatchWriteItem that are for other tables only.
    """
    start = len(_BOM) if piece.startswith(_BOM) else 0
    text = piece[start:]
    first = text.lstrip()[:1]
    if first not in (b"{", b"[") or name.lower().endswith(".csv"):
        line = text.partition(b"\n")[0].decode(errors="replace")
        return Layout("csv", max(_DELIMITERS, key=line.count)), start
    if first == b"[":
        return Layout("values"), piece.index(b"[") + 1
    requests = _requests_for(piece, piece.index(b"{") + 1, table)
    if requests is not None:
        return Layout("values"), requests
    line_bytes = text.lstrip().partition(b"\n")[0]
    if (value := _decoded(line_bytes)) is None or is_container(value):
        opening = _ITEMS.match(piece, start)
        return Layout("values"), opening.end() if opening else start
    return Layout("lines"), start


def _requests_for(piece: bytes, place: int, table: str) -> int | None:
    """Where the requests of BatchWriteItem for a table begin, if they begin within the piece. `place`: in the
    object of all requests."""
    names = []
    while member := _MEMBER.match(piece, place):
        name, place = _decoded(member[1]), member.end()
        if name == "RequestItems" and piece[place : place + 1] == b"{":
            place += 1
            continue
        requests = _REQUESTS.match(piece, place)
        if not isinstance(name, str) or requests is None:
            return None
        if name.rpartition("/")[2] == table:
            return place + 1
        names += [name] if requests[1] else []
        end = _object_end(piece, place)
        if end is None:
            return None
        place = _between(piece, end)
    if names:
        raise NoItem(f"the items are for {', '.join(names)}, and none is for the table {table}")
    return None


def rows(
    layout: Layout, piece: bytes, is_last: bool, types: dict[str, str], keys: list[str]
) -> Iterator[FileRow]:
    """The rows that end within a piece, from `piece`'s beginning on. `is_last`: the file ends with it.

    `types` are those of the key attributes of the table and its indexes; `keys` are the table's.
    """
    if layout.format == "values":
        yield from _values(layout, piece, is_last)
        return
    if not is_last:
        piece = piece[: piece.rfind(b"\n") + 1]
    if layout.format == "csv":
        optional = frozenset(types) - set(keys)
        columns = Columns(layout.delimiter, None, types, optional, layout.kinds, layout.rest)
        yield from _csv(layout, piece, is_last, columns)
        return
    for number, (line, end) in enumerate(lines(io.BytesIO(piece), 0)):
        if line is None or line.strip():
            yield FileRow(_item(line or b""), number, end)


def _csv(layout: Layout, piece: bytes, is_last: bool, columns: Columns) -> Iterator[FileRow]:
    """The rows of a CSV. The first one that is read fills in the header of the layout."""
    start = number = 0
    for row, end in csv_files.joined(lines(io.BytesIO(piece), 0)):
        if row is not None and row.count(b'"') % 2 and not is_last:
            return  # the quoted field goes on in the next piece
        line, number = number, number + piece.count(b"\n", start, end)
        start = end
        if row is None:
            yield FileRow(Bad("The row is too long"), line, end)
        elif not row.strip():
            continue
        elif layout.header:
            yield FileRow(csv_files.read(row, tuple(layout.header), columns), line, end)
        else:
            names = csv_files.header_of(row, layout.delimiter)
            if isinstance(names, Bad):
                yield FileRow(names, line, end)
                return
            layout.header = list(names)


def _values(layout: Layout, piece: bytes, is_last: bool) -> Iterator[FileRow]:
    """The objects of a list, up to its closing bracket."""
    place = line = counted = 0
    while True:
        place = _between(piece, place)
        line, counted = line + piece.count(b"\n", counted, place), place
        if place >= len(piece):
            return
        if piece[place : place + 1] == b"]":
            layout.is_over = True
            return
        if piece[place : place + 1] != b"{":
            why = "An object was expected here; the rest cannot be read"
            yield FileRow(Bad(why, is_end=True), line, len(piece))
            return
        end = _object_end(piece, place)
        if end is None:
            if is_last:
                yield FileRow(Bad("The object has no end", is_end=True), line, len(piece))
            return
        yield FileRow(_item(piece[place:end]), line, end)
        place = end


def _between(piece: bytes, place: int) -> int:
    """The place after spaces and commas."""
    between = _BETWEEN.match(piece, place)
    return between.end() if between else place


def _object_end(piece: bytes, start: int) -> int | None:
    """Where the object that begins at `start` ends; None if it does not end within the piece."""
    depth = 0
    for part in _PARTS.finditer(piece, start):
        text = part[0]
        if text in (b"{", b"["):
            depth += 1
        elif text in (b"}", b"]"):
            depth -= 1
            if not depth:
                return part.end()
        elif text == b'"':
            return None
    return None


def _item(text: bytes) -> Item | Bad:
    try:
        return item_of(unwrapped(DECODER.decode(text)))
    except NoItem as error:
        return Bad(str(error))
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        return Bad(f"This is not JSON: {error}")


def _decoded(text: bytes) -> Any:
    """The value of a text in JSON, or None."""
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
