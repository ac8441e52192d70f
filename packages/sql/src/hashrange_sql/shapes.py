"""What the attributes of some items look like, and the columns that they become.

Items are rows of a table with one column, `item`, in DynamoDB's JSON. DuckDB says which structures the items
have (`json_structure`; `json_group_structure` would need memory for all items at once), and how many digits
the numbers have, so a type fits every row:

    S VARCHAR    BOOL BOOLEAN    B BLOB    SS VARCHAR[]    BS BLOB[]    L T[]    M STRUCT(…)
    N, NS        DECIMAL(38, x) if each number fits exactly, otherwise DOUBLE, which is told
    several      VARCHAR for scalars, otherwise JSON, in DynamoDB's form; this is told

A map with too many names, or with two that differ in case only, is JSON as well: DuckDB's names have no case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

NAMES_MAX: Final = 100
"""The most names of a map that is a STRUCT."""
_DIGITS_MAX: Final = 38
_SCALARS: Final = ("S", "N", "BOOL", "B")
_NO_STRUCTURE: Final = "NULL"
_NO_STRUCTURES: Final = (_NO_STRUCTURE, "JSON")
"""The structures of the members of an empty list, and of an empty object."""
_TEXT: Final = "text"
_JSON: Final = "json"

Json = dict[str, Any]
Ask = Callable[[str], Iterable[tuple[Any, ...]]]
"""The rows of a statement's answer."""
Get = Callable[[str], str]
"""The SQL of a value's content of a type."""


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"{}"'.format(name.replace('"', '""'))


def literal(text: str) -> str:
    """A text in SQL."""
    return "'{}'".format(text.replace("'", "''"))


@dataclass(slots=True)
class Shape:
    """The values of an attribute, of a map's member or of a list's members: `form` is a type of DynamoDB,
    `_TEXT`, `_JSON`, or "" for NULL only. `number` is the type of the numbers."""

    form: str
    names: dict[str, Shape] = field(default_factory=dict)
    member: Shape | None = None
    number: str = "DOUBLE"

    def transform(self) -> Any:
        """The structure by which `json_transform` takes such a value apart."""
        match self.form:
            case "M":
                return {"M": {name: shape.transform() for name, shape in self.names.items()}}
            case "L" if self.member is not None:
                return {"L": [self.member.transform()]}
            case "SS" | "NS" | "BS":
                return {self.form: ["VARCHAR"]}
            case "text":
                return dict.fromkeys(_SCALARS, "VARCHAR")
            case "json":
                return "JSON"
        return {self.form or "NULL": "VARCHAR"}

    def sql(self, value: str, get: Get, depth: int = 0) -> str:
        """A value in DuckDB's type. `value` is the whole value, `get` its content."""
        match self.form:
            case "":
                return "CAST(NULL AS VARCHAR)"
            case "N":
                return f"CAST({get('N')} AS {self.number})"
            case "NS":
                return f"CAST({get('NS')} AS {self.number}[])"
            case "BOOL":
                return f"CAST({get('BOOL')} AS BOOLEAN)"
            case "B":
                return f"from_base64({get('B')})"
            case "BS":
                return f"list_transform({get('BS')}, lambda b: from_base64(b))"
            case "L" if self.member is not None:
                one = f"x{depth}"
                inner = self.member.sql(one, _within(one), depth + 1)
                return f"list_transform({get('L')}, lambda {one}: {inner})"
            case "M":
                packed = ", ".join(
                    f"{quoted(name)} := {shape.sql(inner, _within(inner), depth)}"
                    for name, shape in self.names.items()
                    for inner in [f"{get('M')}.{quoted(name)}"]
                )
                return f"CASE WHEN {get('M')} IS NULL THEN NULL ELSE struct_pack({packed}) END"
            case "text":
                return f"coalesce({', '.join(map(get, _SCALARS))})"
            case "json":
                return value
        return get(self.form)

    def numbers(self, get: Get, each: Callable[[str], str], depth: int = 0) -> list[tuple[Shape, str]]:
        """The shapes of numbers here and below, each with the SQL of a row's number of `each` of them."""
        one = f"x{depth}"
        match self.form:
            case "N":
                return [(self, each(get("N")))]
            case "NS":
                return [(self, _greatest(get("NS"), one, each(one)))]
            case "L" if self.member is not None:
                found = self.member.numbers(_within(one), each, depth + 1)
                return [(shape, _greatest(get("L"), one, sql)) for shape, sql in found]
            case "M":
                return [
                    pair
                    for name, shape in self.names.items()
                    for pair in shape.numbers(_within(f"{get('M')}.{quoted(name)}"), each, depth)
                ]
        return []

    def kinds(self, name: str) -> list[str]:
        """What is to be told of the types here and below."""
        match self.form:
            case "N" | "NS" if self.number == "DOUBLE":
                return [f"{name}: numbers that do not fit in DECIMAL(38) are DOUBLE, with 15 digits"]
            case "text":
                return [f"{name}: several types, shown as VARCHAR"]
            case "json":
                return [f"{name}: shown as JSON, in DynamoDB's form"]
        told = [line for inner, shape in self.names.items() for line in shape.kinds(f"{name}.{inner}")]
        return told + (self.member.kinds(f"{name}[*]") if self.member is not None else [])


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table: the SQL of each over `source`, a relation, and what is to be told."""

    source: str
    sql: dict[str, str]
    told: list[str]


def columns_of(ask: Ask, relation: str) -> Columns:
    """The columns of a table with a column `item`."""
    structure = _structure(ask, relation)
    told: list[str] = []
    shapes: dict[str, Shape] = {}
    taken: dict[str, str] = {}
    for name, kinds in structure.items() if isinstance(structure, dict) else ():
        if (other := taken.setdefault(name.lower(), name)) != name:
            told.append(f"{name}: left out, because it differs from {other} in case only")
        else:
            shapes[name] = shape_of(kinds)
    # Values with members are taken apart once for each row.
    inner = []
    for name, shape in shapes.items():
        if shape.form not in ("", *_SCALARS, _TEXT, _JSON):
            structure = literal(orjson.dumps(shape.transform()).decode())
            value = f"json_extract(item, {_pointer(name)})"
            inner.append(f"json_transform({value}, {structure}) AS {quoted(name)}")
    source = f"(SELECT {', '.join(['item', *inner])} FROM {relation})"
    _measure(ask, source, shapes)
    sql = {
        name: shape.sql(f"json_extract(item, {_pointer(name)})", _outer(name, shape))
        for name, shape in shapes.items()
    }
    for name, shape in shapes.items():
        told += shape.kinds(name)
    return Columns(source, sql, told)


def _structure(ask: Ask, relation: str) -> Any:
    """The structure of all items together, with attributes in the order in which they come."""
    one = "CAST(json_structure(item) AS VARCHAR)"
    together: Any = _NO_STRUCTURE
    for (structure,) in ask(f"SELECT {one} FROM {relation} GROUP BY {one} ORDER BY min(rowid)"):
        together = _merged(together, orjson.loads(structure))
    return together


def _merged(one: Any, other: Any) -> Any:
    """A structure that has what both have, as DuckDB has it of an array of both."""
    if one in _NO_STRUCTURES:
        return other
    if isinstance(one, dict) and isinstance(other, dict):
        made = dict(one)
        for name, inner in other.items():
            made[name] = _merged(made[name], inner) if name in made else inner
        return made
    if isinstance(one, list) and isinstance(other, list):
        return [_merged(one[0], other[0])]
    return one


def shape_of(kinds: Any) -> Shape:
    """The shape of values, of which DuckDB tells the structure: an object with the types that occur."""
    if not isinstance(kinds, dict):
        return Shape(_JSON if kinds != "NULL" else "")
    types = set(kinds) - {"NULL"}
    if not types:
        return Shape("")
    if len(types) > 1:
        return Shape(_TEXT if types <= set(_SCALARS) else _JSON)
    (form,) = types
    inside = kinds[form]
    if form == "L":
        members = inside[0] if isinstance(inside, list) and inside else "JSON"
        return Shape("L", member=shape_of(members))
    if form == "M":
        is_struct = isinstance(inside, dict) and 0 < len(inside) <= NAMES_MAX
        if not is_struct or len({name.lower() for name in inside}) < len(inside) or "" in inside:
            return Shape(_JSON)
        return Shape("M", {name: shape_of(member) for name, member in inside.items()})
    return Shape(form)


def _measure(ask: Ask, source: str, shapes: dict[str, Shape]) -> None:
    """Give the numbers the type into which all of them fit."""
    fractions = [
        pair for name, shape in shapes.items() for pair in shape.numbers(_outer(name, shape), _fraction)
    ]
    wholes = [pair for name, shape in shapes.items() for pair in shape.numbers(_outer(name, shape), _whole)]
    if not fractions:
        return
    [row] = ask(f"SELECT {', '.join(f'max({sql})' for _, sql in (*fractions, *wholes))} FROM {source}")
    for (shape, _), fraction, whole in zip(fractions, row, row[len(fractions) :], strict=False):
        scale = fraction or 0
        if scale + (whole or 1) <= _DIGITS_MAX:
            shape.number = f"DECIMAL({_DIGITS_MAX},{scale})"


def _fraction(number: str) -> str:
    return f"length(split_part({number}, '.', 2))"


def _whole(number: str) -> str:
    """The digits before the point; too many for a number with an exponent."""
    digits = f"length(ltrim(split_part({number}, '.', 1), '-'))"
    return f"CASE WHEN contains(upper({number}), 'E') THEN {_DIGITS_MAX + 1} ELSE {digits} END"


def _greatest(values: str, one: str, sql: str) -> str:
    return f"list_max(list_transform({values}, lambda {one}: {sql}))"


def _within(value: str) -> Get:
    return lambda kind: f"{value}.{quoted(kind)}"


def _outer(name: str, shape: Shape) -> Get:
    """The content of an attribute itself: of a scalar straight from the item."""
    if shape.form in (*_SCALARS, _TEXT):
        return lambda kind: f"json_extract_string(item, {_pointer(name, kind)})"
    return _within(quoted(name))


def _pointer(*names: str) -> str:
    """The JSON pointer of what has these names in each other (RFC 6901)."""
    return literal("".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names))
