"""Values of attributes as pages show them: short in a grid, whole as a tree, and as JSON.

Values come in DynamoDB's JSON. Numbers stay the text that they are, so all 38 digits are shown. Refuses to
know HTML: templates escape what this returns.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import orjson

CELL_CHARACTERS_MAX: Final = 90
TEXT_CHARACTERS_MAX: Final = 1_200
"""The length at which a text in a tree is cut, until the user asks for all of it."""
TITLE_CHARACTERS_MAX: Final = 400
MEMBERS_MAX: Final = 200
"""The most members of a list, map or set that a tree shows; the JSON shows all."""

NAMES: Final = {
    "S": "string",
    "N": "number",
    "B": "binary",
    "BOOL": "boolean",
    "NULL": "null",
    "L": "list",
    "M": "map",
    "SS": "string set",
    "NS": "number set",
    "BS": "binary set",
}
MEMBERS: Final = {"SS": "S", "NS": "N", "BS": "B"}
_LIKE_ANOTHER_TYPE: Final = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|true|false|null|")

Value = dict[str, Any]
Item = dict[str, Value]


class Raw(str):
    """Text that a literal contains as it is."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """A value in a grid: its type, a short text, and a longer one for the title, "" if it is the same."""

    kind: str
    text: str
    title: str = ""

    @property
    def type_name(self) -> str:
        return NAMES.get(self.kind, "")


@dataclass(frozen=True, slots=True)
class Node:
    """A value in a tree. `rest` is the text after the cut; `more` is the number of members not shown."""

    name: str
    kind: str
    text: str
    rest: str = ""
    members: tuple[Node, ...] = ()
    more: int = 0
    note: str = ""

    @property
    def type_name(self) -> str:
        return NAMES.get(self.kind, "")


def cell(value: Value | None) -> Cell | None:
    """The cell of a value; None where an item does not have the attribute."""
    if value is None:
        return None
    kind, inner = _parted(value)
    text = _short(value, TITLE_CHARACTERS_MAX)
    if kind == "B":
        text = f"{inner} · {_bytes(inner)} B"
    shown = _cut(text, CELL_CHARACTERS_MAX)
    if kind == "B" and shown != text:
        shown = f"{inner[:CELL_CHARACTERS_MAX - 30]}… · {_bytes(inner):,} B"
    return Cell(kind, shown, _cut(text, TITLE_CHARACTERS_MAX) if shown != text else "")


def columns(items: list[Item], keys: list[str], columns_max: int) -> tuple[list[str], int]:
    """The columns of a grid, keys first and then the most frequent attributes, and how many are left out."""
    counts = Counter(name for item in items for name in item)
    others = [name for name, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
    names = [*keys, *(name for name in others if name not in keys)]
    return names[:columns_max], max(0, len(names) - columns_max)


def number_columns(items: list[Item], names: list[str]) -> set[str]:
    """The columns that hold numbers only."""
    return {name for name in names if all("N" in item[name] for item in items if name in item)}


def tree(item: Item, keys: list[str]) -> list[Node]:
    """The attributes of an item, keys first."""
    names = [*(name for name in keys if name in item), *sorted(set(item) - set(keys))]
    return [node(name, item[name]) for name in names]


def node(name: str, value: Value) -> Node:
    """The tree of a value."""
    kind, inner = _parted(value)
    if kind in ("M", "L"):
        pairs = list(inner.items()) if kind == "M" else [(str(n), content) for n, content in enumerate(inner)]
        members = tuple(node(member, content) for member, content in pairs[:MEMBERS_MAX])
        more = max(0, len(pairs) - MEMBERS_MAX)
        return Node(name, kind, "", members=members, more=more, note=_counted(len(pairs), "member"))
    if kind in MEMBERS:
        members = tuple(node("", {MEMBERS[kind]: content}) for content in inner[:MEMBERS_MAX])
        more = max(0, len(inner) - MEMBERS_MAX)
        return Node(name, kind, "", members=members, more=more, note=_counted(len(inner), "member"))
    text = inner if kind in ("S", "N", "B") else _short(value, TEXT_CHARACTERS_MAX)
    note = _counted(_bytes(inner), "byte") if kind == "B" else ""
    if kind == "S" and len(text) > TEXT_CHARACTERS_MAX:
        note = f"{len(text):,} characters"
    return Node(name, kind, text[:TEXT_CHARACTERS_MAX], text[TEXT_CHARACTERS_MAX:], note=note)


def plain_json(item: Item) -> str:
    """An item as JSON without types: numbers with all digits, sets as arrays, binary as base64."""
    return literal({name: plain(value) for name, value in item.items()}, words=("true", "false", "null"))


def plain_text(value: Value) -> str:
    """A value as JSON without types."""
    return literal(plain(value), words=("true", "false", "null"))


def typed_json(item: Item) -> str:
    """An item as DynamoDB's JSON, as the form for editing has it."""
    return literal(item, words=("true", "false", "null"))


def plain(value: Value) -> Any:
    """A value as JSON without types; numbers are `Raw`."""
    kind, inner = _parted(value)
    match kind:
        case "N":
            return Raw(inner)
        case "NS":
            return [Raw(number) for number in inner]
        case "L":
            return [plain(content) for content in inner]
        case "M":
            return {name: plain(content) for name, content in inner.items()}
        case "NULL":
            return None
        case _:
            return inner


def literal(value: Any, *, words: tuple[str, str, str], indent: int = 0) -> str:
    """A value as a literal of JSON, JavaScript or Python, whose words for true, false and nothing are
    given."""
    true, false, nothing = words
    match value:
        case Raw():
            return str(value)
        case None:
            return nothing
        case bool():
            return true if value else false
        case str():
            return orjson.dumps(value).decode()
        case dict() if value:
            rows = [
                f"{orjson.dumps(name).decode()}: {literal(content, words=words, indent=indent + 2)}"
                for name, content in value.items()
            ]
            return _block("{", rows, "}", indent)
        case list() if value:
            rows = [literal(content, words=words, indent=indent + 2) for content in value]
            return _block("[", rows, "]", indent)
        case dict():
            return "{}"
        case list():
            return "[]"
        case _:
            return str(value)


def _block(opening: str, rows: list[str], closing: str, indent: int) -> str:
    short = opening + ", ".join(rows) + closing
    if "\n" not in short and (len(short) <= 60 or len(rows) == 1):
        return short
    space = " " * (indent + 2)
    return f"{opening}\n{space}" + f",\n{space}".join(rows) + f"\n{' ' * indent}{closing}"


def _parted(value: Value) -> tuple[str, Any]:
    return next(iter(value.items()))


def _short(value: Value, characters_max: int) -> str:
    """The beginning of a value as text, of about this many characters."""
    kind, inner = _parted(value)
    match kind:
        case "S":
            return f'"{inner}"' if _LIKE_ANOTHER_TYPE.fullmatch(inner) else str(inner)
        case "BOOL":
            return "true" if inner else "false"
        case "NULL":
            return "null"
        case "L":
            return f"[{_listed([(None, content) for content in inner], characters_max)}]"
        case "M":
            return f"{{{_listed(list(inner.items()), characters_max)}}}"
        case "SS" | "NS" | "BS":
            members: list[tuple[str | None, Value]] = [(None, {MEMBERS[kind]: content}) for content in inner]
            return f"{{{_listed(members, characters_max)}}}"
        case _:
            return str(inner)


def _listed(pairs: list[tuple[str | None, Value]], characters_max: int) -> str:
    texts: list[str] = []
    length = 0
    for name, value in pairs:
        if length > characters_max:
            texts.append("…")
            break
        text = _short(value, characters_max - length)
        texts.append(text if name is None else f"{name}: {text}")
        length += len(texts[-1]) + 2
    return ", ".join(texts)


def _cut(text: str, characters_max: int) -> str:
    return text if len(text) <= characters_max else f"{text[:characters_max - 1]}…"


def _bytes(text: str) -> int:
    return len(base64.b64decode(text))


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
