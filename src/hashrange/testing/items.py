"""Items from Python values and from files, in the form of the wire.

    .json     a list of items, or the output of `aws dynamodb scan` ({"Items": […]})
    .jsonl    an item per line, or {"Item": {…}} per line, as DynamoDB exports a table to S3
    .csv      a line of names, then an item per line; an empty field is a missing attribute

An item whose attributes are all typed ({"S": "x"}) is in DynamoDB's JSON; any other item is plain, and its
numbers keep all their digits. In a CSV the key attributes of the table and its indexes have the types that
the table gives them; any other attribute is a text, unless its name has a type, as in ``price:N``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from hashrange.interchange.plain_json import DECODER, NoItem, item_of, listed, unwrapped
from hashrange.testing.tables.forms import DeclarationError

Item = dict[str, Any]

_CSV_TYPES: Final = ("S", "N", "B", "BOOL")


def of_values(items: Iterable[Mapping[str, Any]]) -> list[Item]:
    """Items given as Python values, or in DynamoDB's JSON.

    Raises DeclarationError for a value that no attribute can have.
    """
    try:
        return [item_of(item) for item in items]
    except NoItem as error:
        raise DeclarationError(str(error)) from error


def read(path: str | Path, types: Mapping[str, str]) -> list[Item]:
    """The items of a file; `types` are those of the table's key attributes.

    Raises DeclarationError for a file that cannot be understood, OSError for one that cannot be read.
    """
    file = Path(path)
    try:
        match file.suffix.lower():
            case ".csv":
                return list(_of_csv(file, types))
            case ".jsonl" | ".ndjson":
                lines = file.read_bytes().splitlines()
                return of_values(unwrapped(DECODER.decode(line)) for line in lines if line.strip())
            case ".json":
                return of_values(unwrapped(item) for item in listed(DECODER.decode(file.read_bytes())))
    except (msgspec.DecodeError, NoItem, DeclarationError) as error:
        raise DeclarationError(f"{file}: {error}") from error
    raise DeclarationError(f"{file} holds no items by its name: name it .json, .jsonl or .csv.")


def _of_csv(file: Path, types: Mapping[str, str]) -> Iterator[Item]:
    with file.open(encoding="utf-8-sig", newline="") as opened:
        rows = csv.reader(opened)
        header = next(rows, None)
        if not header:
            raise DeclarationError("the first line has to name the attributes")
        columns = [_column(name, types) for name in header]
        for row in rows:
            if not row:
                continue
            if len(row) > len(columns):
                number = rows.line_num
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
