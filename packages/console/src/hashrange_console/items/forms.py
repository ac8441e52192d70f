"""An item as the rows of a form, and in the other forms of editing.

The page builds the form of these rows and sends them back. A row holds text only, so no value passes through
a number of JavaScript, and the server reads what was typed. A field of a page cannot hold every character; a
text with others is written with the escapes of JSON.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
import orjson

from hashrange_console.items.plain import item_of_plain
from hashrange_console.items.texts import admit, admit_all, item_of
from hashrange_console.reach import Refused
from hashrange_console.values import MEMBERS, NAMES, Item, Value, plain_json, typed_json

MAKES: Final = {kind: name for kind, name in NAMES.items() if kind in ("S", "N", "B", "BOOL", "NULL")}
"""The types of values that a line of a form makes, without members."""
FORMS: Final = {"form": "Form", "json": "JSON", "dynamodb": "DynamoDB JSON"}
_NOT_IN_AREA: Final = re.compile(r"[\x00-\x08\x0b-\x1f]")
_NOT_IN_LINE: Final = re.compile(r"[\x00-\x1f]")


class ValueFields(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A value in the form: its name (in an item or a map), its type, its text, or the rows of its members.

    `escaped` and `name_escaped`: the text, or the name, is written with the escapes of JSON.
    """

    kind: str
    name: str = ""
    text: str = ""
    rows: list[ValueFields] = []
    escaped: bool = False
    name_escaped: bool = False
    key: bool = False


_ROWS: Final = msgspec.json.Decoder(list[ValueFields])


def written(item: Item, form: str, keys: list[str]) -> str:
    """The text of an item in a form of editing."""
    if form == "form":
        return rows_text(item, keys)
    return plain_json(item) if form == "json" else typed_json(item)


def read(text: str, form: str, shown: Item) -> Item:
    """The item of a text in a form of editing, in normal form. Raises `Refused`."""
    if form == "form":
        return item_of_rows(text)
    if form == "json":
        return admit_all(item_of_plain(text, shown))
    if form == "dynamodb":
        return admit_all(item_of(text))
    raise Refused(f"{form!r} is not a form of editing: use {', '.join(FORMS)}.")


def rows_text(item: Item, keys: list[str]) -> str:
    """The rows of an item in JSON, keys first."""
    names = [*(name for name in keys if name in item), *sorted(set(item) - set(keys))]
    rows = [_row(name, item[name]) for name in names]
    for row, name in zip(rows, names, strict=True):
        row.key = name in keys
    return msgspec.json.encode(rows).decode()


def _row(name: str, value: Value) -> ValueFields:
    kind, inner = next(iter(value.items()))
    row = ValueFields(kind, name)
    if _NOT_IN_LINE.search(name):
        row.name, row.name_escaped = _escaped(name), True
    if kind == "M":
        row.rows = [_row(member, content) for member, content in inner.items()]
    elif kind == "L":
        row.rows = [_row("", content) for content in inner]
    elif kind in MEMBERS:
        row.rows = [_row("", {MEMBERS[kind]: content}) for content in inner]
    elif kind == "BOOL":
        row.text = "true" if inner else "false"
    elif kind != "NULL":
        row.escaped = bool(_NOT_IN_AREA.search(inner))
        row.text = _escaped(inner) if row.escaped else inner
    return row


def item_of_rows(text: str) -> Item:
    """The item of a form. Raises `Refused` with the path of an error."""
    try:
        rows = _ROWS.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Refused(f"These are not rows of a form: {error}.") from None
    return _members(rows, "")


def _members(rows: list[ValueFields], path: str) -> dict[str, Value]:
    members: dict[str, Value] = {}
    for row in rows:
        name = _unescaped(row.name, row.name) if row.name_escaped else row.name
        place = f"{path}.{name}" if path else name
        if not name:
            inside = f" in {path}" if path else ""
            raise Refused(f"An attribute{inside} has no name. Give it one, or remove it.")
        if name in members:
            raise Refused(f"{place}: this name occurs twice. Rename or remove one of the two.")
        members[name] = value_of(row, place)
    return members


def value_of(row: ValueFields, path: str) -> Value:
    """The value of a row. Raises `Refused` with the path of an error."""
    value: Value
    match row.kind:
        case "M":
            return {"M": _members(row.rows, path)}
        case "L":
            return {"L": [value_of(child, f"{path}[{number}]") for number, child in enumerate(row.rows)]}
        case "SS" | "NS" | "BS":
            member = MEMBERS[row.kind]
            value = {row.kind: [_text(child, member, path) for child in row.rows]}
        case "BOOL":
            if row.text not in ("true", "false"):
                raise Refused(f"{path}: a boolean is true or false.")
            value = {"BOOL": row.text == "true"}
        case "NULL":
            value = {"NULL": True}
        case "S" | "N" | "B":
            value = {row.kind: _text(row, row.kind, path)}
        case _:
            raise Refused(f"{path}: {row.kind!r} is not a type of a value.")
    admit(path, value)
    return value


def _text(row: ValueFields, kind: str, path: str) -> str:
    text = _unescaped(row.text, path) if row.escaped else row.text
    return "".join(text.split()) if kind in ("N", "B") else text


def _escaped(text: str) -> str:
    return orjson.dumps(text).decode()[1:-1]


def _unescaped(text: str, path: str) -> str:
    try:
        read_text: Any = orjson.loads(f'"{text}"')
    except orjson.JSONDecodeError:
        raise Refused(
            f'{path}: this text is written with the escapes of JSON, such as \\r, \\" and \\\\; one of them '
            "is wrong."
        ) from None
    return str(read_text)
