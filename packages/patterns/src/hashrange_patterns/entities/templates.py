"""Templates of keys: ``PHOTO#{username}#{taken_at}``.

A filled template determines its values: a value ends where the text that follows it in the template is found
first. Otherwise ``REACTION#{username}#{type}`` would be equal for "a#b" and "c" and for "a" and "b#c", and a
user with such a name would write to another user's items. So a value is refused if it contains that text, or
makes a part of it: in ``USER#{username}#PHOTO#{serial}``, "bob#PHOTO" with "1" would be "bob" with "PHOTO#1".
An empty value is refused, because the key would be a prefix of all others.

Sort keys sort as texts do. Moments are written so that they sort as moments; a whole number needs a width,
as in ``{serial:09}``, because "10" sorts before "9".

Refuses to know the fields' types and the table.
"""

from __future__ import annotations

import enum
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from hashrange_patterns.entities.attributes import enum_value, iso


@dataclass(frozen=True, slots=True)
class _Part:
    """A literal text and the field after it, which has a width if it is a number; and the text after that."""

    literal: str
    field: str | None
    width: int | None
    following: str


@dataclass(frozen=True, slots=True)
class Filled:
    """The part of a template that has values: its text, the next field (None at the end), and the text behind
    that field."""

    text: str
    next_field: str | None
    following: str = ""


class Template:
    """A key that contains fields of an entity. Raises ValueError if it cannot be read back."""

    def __init__(self, text: str) -> None:
        self.text = text
        parsed = list(string.Formatter().parse(text))
        self._parts: list[_Part] = []
        for place, (literal, field, spec, conversion) in enumerate(parsed):
            following = parsed[place + 1][0] if place + 1 < len(parsed) else ""
            if field is not None and not field.isidentifier():
                raise ValueError(f"{text!r}: {{{field}}} names no field")
            if conversion or not re.fullmatch(r"(0[1-9][0-9]*)?", spec or ""):
                raise ValueError(
                    f"{text!r}: a field takes nothing but a width with a zero before, as in {{n:09}}"
                )
            if field is not None and place + 1 < len(parsed) and not following:
                raise ValueError(f"{text!r}: put a text between two fields, or they cannot be distinguished")
            self._parts.append(_Part(literal, field, int(spec) if spec else None, following))
        self.fields = tuple(dict.fromkeys(part.field for part in self._parts if part.field is not None))

    def __repr__(self) -> str:
        return f"Template({self.text!r})"

    def fill(self, values: Mapping[str, Any]) -> str | None:
        """The key with `values` in it; None if one of them is None. Raises ValueError or TypeError."""
        if any(values[field] is None for field in self.fields):
            return None
        return self.begin(values).text

    def begin(self, values: Mapping[str, Any]) -> Filled:
        """The key up to the first field that `values` lacks."""
        text = ""
        for part in self._parts:
            text += part.literal
            if part.field is None:
                continue
            if part.field not in values:
                return Filled(text, part.field, part.following)
            text += self._written(part, values[part.field])
        return Filled(text, None)

    def matches(self, text: str) -> bool:
        """Whether `text` may be this template, filled."""
        pattern = "".join(re.escape(part.literal) + ("(.+)" if part.field else "") for part in self._parts)
        return re.fullmatch(pattern, text, re.DOTALL) is not None

    def width(self, field: str) -> int | None:
        """The width of the numbers in `field`, None if it has none."""
        return next((part.width for part in self._parts if part.field == field), None)

    def _written(self, part: _Part, value: Any) -> str:
        text = key_text(value, part.width)
        if not text:
            raise ValueError(f"{self.text!r}: {part.field} is empty, and a key needs a value there")
        if part.following and (text + part.following).index(part.following) < len(text):
            raise ValueError(
                f"{self.text!r}: {part.field} is {text!r}, which contains the {part.following!r} that comes "
                "behind it in the key, or makes a part of it: refuse such values, or use another separator"
            )
        return text


def key_text(value: Any, width: int | None = None) -> str:
    """A value as a part of a key. Raises TypeError for a type that does not sort as text."""
    if isinstance(value, enum.Enum):
        return key_text(enum_value(value), width)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        text = f"{value:0{width or 1}d}"
        if width is not None and (value < 0 or len(text) > width):
            raise ValueError(f"{value} does not fit into a width of {width}")
        return text
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, date | UUID):
        return str(value)
    raise TypeError(
        f"{value!r} is a {type(value).__name__}: keys hold texts, whole numbers, moments, dates, UUIDs, enums"
    )
