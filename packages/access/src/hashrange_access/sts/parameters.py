"""The parameters of STS's requests, which are forms: `Form`.

Source: AWS Security Token Service API Reference, "AssumeRole", "GetSessionToken", "Common Errors". The texts
of a ValidationError are those that clients of AWS report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from hashrange_access.sts.answers import StsError

VERSION: Final = "2011-06-15"
_FIELDS_MAX: Final = 500
_BODY_BYTES_MAX: Final = 262_144
_INTEGER: Final = re.compile(r"-?[0-9]{1,9}")


class Form:
    """The fields of a form by their names."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = fields

    @property
    def action(self) -> str:
        return self._fields.get("Action", "")

    @property
    def is_of_sts(self) -> bool:
        """Whether the form is a request to STS, by the version of its API."""
        return bool(self.action) and self._fields.get("Version") == VERSION

    def text(
        self, name: str, least: int, most: int, pattern: re.Pattern[str] | None = None
    ) -> str | None:
        """A text with a length from `least` to `most`; None if the form has no such field."""
        value = self._fields.get(name)
        if value is None:
            return None
        if len(value) < least:
            raise _invalid(name, value, f"Member must have length greater than or equal to {least}")
        if len(value) > most:
            raise _invalid(name, value, f"Member must have length less than or equal to {most}")
        if pattern is not None and not pattern.fullmatch(value):
            raise _invalid(name, value, f"Member must satisfy regular expression pattern: {pattern.pattern}")
        return value

    def required(self, name: str, least: int, most: int, pattern: re.Pattern[str] | None = None) -> str:
        """Like `text`, for a field that must be there."""
        value = self.text(name, least, most, pattern)
        if value is None:
            raise _invalid(name, None, "Member must not be null")
        return value

    def seconds(self, name: str, default: int, least: int, most: int) -> int:
        """A number of seconds."""
        value = self._fields.get(name)
        if value is None:
            return default
        if not _INTEGER.fullmatch(value):
            raise StsError("MalformedInput", f"{name} is not a whole number: {value!r}")
        if int(value) < least:
            raise _invalid(name, value, f"Member must have value greater than or equal to {least}")
        if int(value) > most:
            raise _invalid(name, value, f"Member must have value less than or equal to {most}")
        return int(value)

    def members(self, name: str, *parts: str) -> list[tuple[str, ...]]:
        """The members of a list, such as `Tags.member.1.Key` and `Tags.member.1.Value`, each with these
        parts; "" for a part that is missing."""
        listed: list[tuple[str, ...]] = []
        while any(f"{name}.member.{len(listed) + 1}.{part}" in self._fields for part in parts):
            start = f"{name}.member.{len(listed) + 1}"
            listed.append(tuple(self._fields.get(f"{start}.{part}", "") for part in parts))
        return listed

    def refuse(self, names: Mapping[str, str]) -> None:
        """Refuse a form with one of these fields, and say why."""
        for name, why in names.items():
            if any(field == name or field.startswith(f"{name}.") for field in self._fields):
                raise StsError("ValidationError", f"{name}: {why}")


def read(body: bytes | bytearray) -> Form | None:
    """The form of a body; None for a body that is none."""
    if len(body) > _BODY_BYTES_MAX:
        return None
    try:
        return Form(dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_FIELDS_MAX)))
    except (UnicodeDecodeError, ValueError):
        return None


def _invalid(name: str, value: str | None, constraint: str) -> StsError:
    shown = "null" if value is None else f"'{value}'"
    member = name[0].lower() + name[1:]
    failure = f"Value {shown} at '{member}' failed to satisfy constraint: {constraint}"
    return StsError("ValidationError", f"1 validation error detected: {failure}")
