"""The conditions of the builder: what its form gives, and their text in an expression.

An attribute may be a path, such as `address.city` or `tags[0]`; a name with dots stands in double quotes.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from hashrange.interchange.plain_json import DECODER
from hashrange_console.reach import Refused
from hashrange_console.values import NAMES, Value

SIZE: Final = "size "
OPERATORS: Final = {
    "=": "=",
    "<>": "≠",
    "<": "<",
    "<=": "≤",
    ">": ">",
    ">=": "≥",
    "between": "between",
    "begins_with": "begins with",
    "contains": "contains",
    "in": "is one of",
    "attribute_exists": "exists",
    "attribute_not_exists": "does not exist",
    "attribute_type": "has type",
    **{f"{SIZE}{operator}": f"size {text}" for operator, text in {
        "=": "=", "<>": "≠", "<": "<", "<=": "≤", ">": ">", ">=": "≥"
    }.items()},
}  # fmt: skip
"""The operators of conditions, and how the form shows them."""
TYPES: Final = ("S", "N", "B", "BOOL", "NULL", "JSON")
"""The types of the form's values. JSON: any value in DynamoDB's JSON."""
_PATH: Final = re.compile(r'(?:(?:^|\.)(?:"((?:[^"]|"")+)"|([^.\[\]"]+))|\[([0-9]{1,9})\])')

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on an attribute. `values` are two for `between`, several for `in`, none for some."""

    path: Path
    operator: str
    values: tuple[Value, ...] = ()

    def is_on(self, attribute: str, kind: str, *operators: str) -> bool:
        """Whether this compares an attribute by one of the operators with values of a type that are not
        empty, as those of keys are not."""
        return (
            self.path == (attribute,)
            and self.operator in operators
            and all(value.get(kind) for value in self.values)
        )

    @property
    def text(self) -> str:
        """The condition as people read it."""
        values = " and ".join(str(next(iter(value.values()))) for value in self.values[:2])
        return f"{shown(self.path)} {OPERATORS[self.operator]} {values}".strip()


class Placeholders:
    """The names and values of an expression."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, Value] = {}

    def path(self, path: Path) -> str:
        """The text of a path."""
        parts = [f"[{part}]" if isinstance(part, int) else f".{self._name(part)}" for part in path]
        return "".join(parts).removeprefix(".")

    def _name(self, name: str) -> str:
        for placeholder, known in self.names.items():
            if known == name:
                return placeholder
        placeholder = f"#n{len(self.names)}"
        self.names[placeholder] = name
        return placeholder

    def value(self, value: Value) -> str:
        """The placeholder of a value."""
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = value
        return placeholder

    def condition(self, condition: Condition) -> str:
        """The text of a condition."""
        path, operator = self.path(condition.path), condition.operator
        values = [self.value(value) for value in condition.values]
        if operator.startswith(SIZE):
            return f"size({path}) {operator.removeprefix(SIZE)} {values[0]}"
        match operator:
            case "between":
                return f"{path} BETWEEN {values[0]} AND {values[1]}"
            case "in":
                return f"{path} IN ({', '.join(values)})"
            case "begins_with" | "contains" | "attribute_type":
                return f"{operator}({path}, {values[0]})"
            case "attribute_exists" | "attribute_not_exists":
                return f"{operator}({path})"
        return f"{path} {operator} {values[0]}"

    def sent(self) -> dict[str, Any]:
        """The members of a request."""
        members: dict[str, Any] = {}
        if self.names:
            members["ExpressionAttributeNames"] = self.names
        if self.values:
            members["ExpressionAttributeValues"] = self.values
        return members


def condition_of(attribute: str, operator: str, kind: str, texts: Sequence[str]) -> Condition:
    """The condition of a row of the form, with its one or two values. Raises `Refused`."""
    path = path_of(attribute)
    if operator not in OPERATORS or kind not in TYPES:
        raise Refused(f"{operator!r} of a {kind!r} is not a condition.")
    try:
        return Condition(path, operator, tuple(_values(operator, kind, texts)))
    except Refused as error:
        raise Refused(f"{shown(path)}: {error}") from None


def _values(operator: str, kind: str, texts: Sequence[str]) -> list[Value]:
    """The values of a condition. Raises `Refused`."""
    if operator.startswith(SIZE):
        return [value_of("N", texts[0])]
    match operator:
        case "attribute_exists" | "attribute_not_exists":
            return []
        case "attribute_type":
            if (name := texts[0].strip().upper()) not in NAMES:
                raise Refused(f"The types are {', '.join(NAMES)}.")
            return [{"S": name}]
        case "between":
            return [value_of(kind, text) for text in texts[:2]]
        case "in":
            return [value_of(kind, text) for text in _choices(texts[0])]
    return [value_of(kind, texts[0])]


def path_of(text: str) -> Path:
    """The path of an attribute. Raises `Refused`."""
    parts: list[str | int] = []
    place = 0
    while match := _PATH.match(text, place):
        quoted, name, number = match.groups()
        parts.append(int(number) if number else quoted.replace('""', '"') if quoted else name)
        place = match.end()
    if not parts or place != len(text) or isinstance(parts[0], int):
        raise Refused(
            f'{text!r} is not an attribute. Write a name, a path like a.b[0], or "a name.with dots".'
        )
    return tuple(parts)


def shown(path: Path) -> str:
    """A path as the form has it."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{quoted(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def quoted(name: str) -> str:
    """A name as the form has it: in quotes, if it would be read as a path."""
    return name if not re.search(r'[.\[\]"]', name) else '"' + name.replace('"', '""') + '"'


def _choices(text: str) -> list[str]:
    """The values of `in`: a JSON array, or texts between commas."""
    if text.lstrip().startswith("["):
        try:
            listed = DECODER.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Refused(f"This list is not JSON: {error}.") from None
        if isinstance(listed, list):
            return [word if isinstance(word, str) else msgspec.json.encode(word).decode() for word in listed]
    return [choice.strip() for choice in text.split(",")]


def value_of(kind: str, text: str) -> Value:
    """A value of the form. Numbers stay the text that they are. Raises `Refused`."""
    match kind:
        case "S":
            return {"S": text}
        case "N":
            if not text.strip():
                raise Refused("Give a number.")
            return {"N": text.strip()}
        case "B":
            try:
                base64.b64decode(text.strip(), validate=True)
            except binascii.Error:
                raise Refused("Binary values are written in base64.") from None
            return {"B": text.strip()}
        case "BOOL":
            if (word := text.strip().lower()) not in ("true", "false"):
                raise Refused("A boolean is true or false.")
            return {"BOOL": word == "true"}
        case "NULL":
            return {"NULL": True}
    try:
        value = DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(f"This value is not JSON: {error}.") from None
    _check(value)
    return dict(value)


def _check(value: Any) -> None:
    """Refuse what is not a value in DynamoDB's JSON."""
    match value:
        case {"S": str()} | {"N": str()} | {"BOOL": bool()} | {"NULL": bool()} if len(value) == 1:
            return
        case {"B": str(text)} if len(value) == 1:
            value_of("B", text)
            return
        case {"SS": list(members)} | {"NS": list(members)} | {"BS": list(members)} if len(value) == 1:
            kind = next(iter(value))[0]
            for member in members:
                _check({kind: member})
            return
        case {"L": list(members)} if len(value) == 1:
            for member in members:
                _check(member)
            return
        case {"M": dict(pairs)} if len(value) == 1:
            for member in pairs.values():
                _check(member)
            return
    raise Refused('A value in DynamoDB’s JSON has its type: {"SS": ["a", "b"]}.')
