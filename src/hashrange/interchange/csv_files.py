"""CSV: one item per line. The columns are named by the header, or by the request's HeaderList.

Key attributes of the table and of its indexes have the types that the table gives them; all other attributes
are texts, unless the caller gives their columns types (`csv_types`). A quoted field may hold delimiters, line
ends and doubled quotes (RFC 4180). An empty field is an empty text, except in a column of an index's key,
where the item lacks the attribute, because the key of an index cannot be empty [assumed].

Source: Developer Guide, "Amazon S3 import formats for DynamoDB", CSV; API reference, CsvOptions.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from hashrange.interchange import csv_types
from hashrange.interchange.lines import LINE_BYTES_MAX
from hashrange.interchange.rows import Bad
from hashrange.values import Item

_TOO_LONG: Final = f"The row has more than {LINE_BYTES_MAX} bytes, or a quote that is never closed"
_NO_TEXT: Final = "The row is not UTF-8"
_NOT_CLOSED: Final = "The row cannot be read: a quote is never closed"
_AFTER_QUOTE: Final = "The row cannot be read: {!r} follows a closing quote, and not the delimiter"
_LINE_END: Final = "The row cannot be read: a field without quotes has a carriage return or a line end in it"
_QUOTES: Final = re.compile('"+')
_BOM: Final = b"\xef\xbb\xbf"


class Columns(NamedTuple):
    """How the rows of the files of an import are read.

    `header` are the names of the columns, or None if each object begins with them. `types` are the types of
    key attributes; `optional` are the key attributes that an item may lack. `kinds` are the types of other
    columns, as `csv_types` has them, and `rest` is that of columns which are not among them.
    """

    delimiter: str
    header: tuple[str, ...] | None
    types: Mapping[str, str]
    optional: frozenset[str]
    kinds: Mapping[str, str] = MappingProxyType({})
    rest: str = "S"


def joined(lines: Iterator[tuple[bytes | None, int]]) -> Iterator[tuple[bytes | None, int]]:
    """Joins lines to rows: a quoted field may continue on the next line."""
    parts: list[bytes] = []
    parts_bytes = 0
    place = 0
    for line, place in lines:
        if line is None:
            parts, parts_bytes = [], 0
            yield None, place
        elif not parts and line.count(b'"') % 2 == 0:
            yield line, place
        else:
            is_end = bool(parts) and line.count(b'"') % 2 == 1
            parts.append(line)
            parts_bytes += len(line) + 1
            if parts_bytes > LINE_BYTES_MAX:
                yield None, place
                parts, parts_bytes = [], 0
            elif is_end:
                yield b"\n".join(parts), place
                parts, parts_bytes = [], 0
    if parts:
        yield b"\n".join(parts), place


def fields(row: bytes, delimiter: str) -> list[str] | Bad:
    """The fields of a row."""
    try:
        text = row.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        return Bad(_NO_TEXT)
    if len(text) > csv.field_size_limit():
        return split(text, delimiter)
    try:
        return next(csv.reader((text,), delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        return Bad(f"The row cannot be read: {error}")


def split(text: str, delimiter: str) -> list[str] | Bad:
    """The fields of a row of any length, split as Python's csv does, but slower.

    csv refuses fields above a limit, usually 128 KB. The limit belongs to the whole process, so it is not
    changed here.
    """
    if '"' not in text:
        return Bad(_LINE_END) if "\r" in text or "\n" in text else text.split(delimiter)
    fields_: list[str] = []
    place = 0
    while True:
        if text.startswith('"', place):
            end = _closing_quote(text, place + 1)
            if end < 0:
                return Bad(_NOT_CLOSED)
            fields_.append(text[place + 1 : end].replace('""', '"'))
            place = end + 1
            if place < len(text) and text[place] != delimiter:
                return Bad(_AFTER_QUOTE.format(text[place]))
        else:
            end = text.find(delimiter, place)
            end = end if end >= 0 else len(text)
            field = text[place:end]
            if "\r" in field or "\n" in field:
                return Bad(_LINE_END)
            fields_.append(field)
            place = end
        if place >= len(text):
            return fields_
        place += 1


def _closing_quote(text: str, place: int) -> int:
    """The end of the quoted field that begins at `place`; -1 if it has none. Two quotes stand for one quote
    in the field, so a run with an odd number of quotes ends it."""
    odd = (run.end() - 1 for run in _QUOTES.finditer(text, place) if (run.end() - run.start()) % 2)
    return next(odd, -1)


def header_of(row: bytes, delimiter: str) -> tuple[str, ...] | Bad:
    """The names of the columns in the first row of an object."""
    names = fields(row.removeprefix(_BOM), delimiter)
    if isinstance(names, Bad):
        return Bad(names.message, is_end=True)
    if len(set(names)) < len(names) or "" in names:
        return Bad("The header has an empty name, or a name twice", is_end=True)
    return tuple(names)


def read(row: bytes, header: tuple[str, ...], columns: Columns) -> Item | Bad:
    """The item of a row."""
    row_fields = fields(row, columns.delimiter)
    if isinstance(row_fields, Bad):
        return row_fields
    if len(row_fields) != len(header):
        return Bad(f"The row has {len(row_fields)} fields, and the header {len(header)}")
    types, optional = columns.types, columns.optional
    item: Item = {}
    for name, field in zip(header, row_fields, strict=True):
        if name in types:
            if field or name not in optional:
                item[name] = {types[name]: field}
            continue
        try:
            value = csv_types.read(field, columns.kinds.get(name, columns.rest))
        except ValueError as error:
            return Bad(f"The field of {name} is wrong: {error}")
        if value is not None:
            item[name] = value
    return item
