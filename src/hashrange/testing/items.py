"""Items from Python values and from files, in the form of the wire.

    JSON      in all forms that `interchange.item_files` has, whatever the file's name is
    .csv      a line of names, then an item per line; an empty field is a missing attribute

Both may be compressed with gzip or Zstandard.

An item whose attributes are all typed ({"S": "x"}) is in DynamoDB's JSON; any other item is plain, and its
numbers keep all their digits. In a CSV the key attributes of the table and its indexes have the types that
the table gives them; any other attribute is a text, unless its name has a type, as in ``price:N``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hashrange.interchange.compression import DAMAGED, compression_of, reader, unreadable
from hashrange.interchange.item_files import is_json, rows
from hashrange.interchange.plain_json import NoItem, item_of
from hashrange.interchange.rows import Bad
from hashrange.testing.declarations import DeclarationError

Item = dict[str, Any]

_UNREADABLE: Final[tuple[type[Exception], ...]] = (
    NoItem,
    DeclarationError,
    csv.Error,
    UnicodeDecodeError,
    *DAMAGED,
)
_CSV_TYPES: Final = ("S", "N", "B", "BOOL")


def of_values(items: Iterable[Mapping[str, Any]]) -> list[Item]:
    """Items given as Python values, or in DynamoDB's JSON.

    Raises DeclarationError for a value that no attribute can have.
    """
    try:
        return [item_of(item) for item in items]
    except NoItem as error:
        raise DeclarationError(str(error)) from error


def read(path: str | Path, types: Mapping[str, str], table: str) -> list[Item]:
    """The items of a file that are for `table`; `types` are those of the table's key attributes.

    Raises DeclarationError for a file that cannot be understood, OSError for one that cannot be read.
    """
    file = Path(path)
    suffixes = [suffix.lower() for suffix in file.suffixes]
    with file.open("rb") as opened:
        compression = compression_of(opened)
        problem = unreadable(compression)
        try:
            if problem is not None:
                raise DeclarationError(problem)
            if ".csv" in suffixes[-2:]:
                return list(_of_csv(reader(opened, compression), types))
            if is_json(opened) or suffixes[-1:] in ([".json"], [".jsonl"], [".ndjson"]):
                return list(_sound(rows(opened, table)))
        except _UNREADABLE as error:
            raise DeclarationError(f"{file}: {error}") from error
    raise DeclarationError(f"{file} holds no items in JSON; name a CSV .csv.")


def _sound(read_rows: Iterable[Item | Bad]) -> Iterator[Item]:
    for number, row in enumerate(read_rows, 1):
        if isinstance(row, Bad):
            raise DeclarationError(f"row {number}: {row.message}")
        yield row


def _of_csv(opened: Any, types: Mapping[str, str]) -> Iterator[Item]:
    with io.TextIOWrapper(opened, encoding="utf-8-sig", newline="") as text:
        read_rows = csv.reader(text)
        header = next(read_rows, None)
        if not header:
            raise DeclarationError("the first line has to name the attributes")
        columns = [_column(name, types) for name in header]
        for row in read_rows:
            if not row:
                continue
            if len(row) > len(columns):
                number = read_rows.line_num
                raise DeclarationError(f"line {number} has {len(row)} fields, the header {len(columns)}")
            yield {
                name: {kind: field.lower() == "true" if kind == "BOOL" else field}
                for (name, kind), field in zip(columns, row, strict=False)
                if field
            }


def _column(header: str, types: Mapping[str, str]) -> tuple[str, str]:
    name, _, kind = header.strip().rpartition(":")
    if name and kind in _CSV_TYPES:
        return name, kind
    return header.strip(), types.get(header.strip(), "S")
