"""Items from Python values and from files, in the form of the wire.

    .json     a list of items, or the output of `aws dynamodb scan` ({"Items": […]})
    .jsonl    an item a line, or {"Item": {…}} a line, as DynamoDB exports a table to S3
    .csv      a line of names, then an item a line; an empty field is an attribute that is not there

An item whose attributes all are typed ({"S": "x"}) is in DynamoDB's JSON; any other is plain, and a number
in it keeps all its digits. In a CSV the attributes of the table's and the indexes' keys have the types that
the table gives them; any other is a text, unless its name says its type, as in ``price:N``.
"""

from __future__ import annotations

import csv
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec

from hashrange.testing.tables.declaration import DeclarationError

Item = dict[str, Any]

_KINDS: Final[dict[str, type | tuple[type, ...]]] = {
    "S": str,
    "N": str,
    "B": str,
    "BOOL": bool,
    "NULL": bool,
    "M": Mapping,
    "L": list,
    "SS": list,
    "NS": list,
    "BS": list,
}
_CSV_TYPES: Final = ("S", "N", "B", "BOOL")
_DECODER: Final = msgspec.json.Decoder(float_hook=Decimal)


def of_values(items: Iterable[Mapping[str, Any]]) -> list[Item]:
    """Items given as Python values, or in DynamoDB's JSON.

    Raises DeclarationError for a value that no attribute can have.
    """
    return [_item(item) for item in items]


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
                return of_values(_unwrapped(_DECODER.decode(line)) for line in lines if line.strip())
            case ".json":
                return of_values(_unwrapped(one) for one in _listed(_DECODER.decode(file.read_bytes())))
    except (msgspec.DecodeError, DeclarationError) as error:
        raise DeclarationError(f"{file}: {error}") from error
    raise DeclarationError(f"{file} holds no items by its name: name it .json, .jsonl or .csv.")


def _listed(document: Any) -> list[Any]:
    if isinstance(document, Mapping) and isinstance(document.get("Items"), list):
        document = document["Items"]
    if not isinstance(document, list):
        raise DeclarationError('there is no list of items, and no {"Items": [...]}')
    return document


def _unwrapped(line: Any) -> Any:
    """The item of a line of an export, or of a request to put one."""
    if isinstance(line, Mapping):
        put = line.get("PutRequest")
        if isinstance(put, Mapping) and len(line) == 1:
            line = put
        if len(line) == 1 and isinstance(line.get("Item"), Mapping):
            return line["Item"]
    return line


def _item(item: Any) -> Item:
    if not isinstance(item, Mapping):
        raise DeclarationError(f"an item is an object, not {item!r}")
    if item and all(map(_is_typed, item.values())):
        return dict(item)
    return {str(name): typed(value) for name, value in item.items()}


def _is_typed(value: Any) -> bool:
    if not isinstance(value, Mapping) or len(value) != 1:
        return False
    ((kind, content),) = value.items()
    return kind in _KINDS and isinstance(content, _KINDS[kind])


def typed(value: Any) -> dict[str, Any]:
    """The attribute value of a Python value: text, numbers, bytes, bool, None, lists, mappings and sets.

    Raises DeclarationError for any other value.
    """
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int() | Decimal():
            return {"N": str(value)}
        case float():
            return {"N": repr(value)}
        case bytes() | bytearray():
            return {"B": b64encode(value).decode()}
        case Mapping():
            return {"M": {str(name): typed(one) for name, one in value.items()}}
        case list() | tuple():
            return {"L": [typed(one) for one in value]}
        case set() | frozenset():
            return _set(value)
    raise DeclarationError(f"{value!r} is no value of an attribute: DynamoDB has no {type(value).__name__}")


def _set(values: set[Any] | frozenset[Any]) -> dict[str, Any]:
    members = [typed(value) for value in values]
    kinds = {kind for member in members for kind in member}
    if len(kinds) != 1 or not kinds <= {"S", "N", "B"}:
        raise DeclarationError(f"{values!r} is no set: its members are texts, or numbers, or bytes")
    (kind,) = kinds
    return {f"{kind}S": sorted(member[kind] for member in members)}


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
