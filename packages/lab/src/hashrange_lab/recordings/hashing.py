"""Replaces the values of items in a request by hashes of them, so that a recording shows none.

Equal values get equal hashes, so a hot key stays hot, and a read finds what a write put. A text keeps its
size in bytes, a number its sign, its magnitude and the number of its digits, binary data its length;
booleans, nulls, and the names of tables, indexes and attributes stay as they are. Hashes are made with a
secret of the recording's own, which is not kept.

What does not survive: the order of values, their beginnings, and what conditions compare by these. Values
that are short have few hashes, so two of them may become equal.

Refuses to know operations: values are found by the names of the members that hold them.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final

from hashrange.partiql.tokens import STATEMENT

_MAPS: Final = frozenset({"Item", "Key", "ExpressionAttributeValues", "ExclusiveStartKey"})
"""Members with values by the names of attributes."""
_LISTS_OF_MAPS: Final = frozenset({"Keys"})
_LISTS: Final = frozenset({"AttributeValueList", "Parameters", "SearchVector"})
_OPAQUE: Final = frozenset({"NextToken", "ShardIterator"})
"""Tokens, which may have keys in them."""
_TYPES: Final = frozenset({"S", "N", "B", "SS", "NS", "BS", "BOOL", "NULL", "L", "M"})
"""Texts that `attribute_type` compares with; they stay."""
_NUMBER: Final = re.compile(r"([+-]?)([0-9]*)(\.?)([0-9]*)(.*)", re.DOTALL)
_DIGEST_BYTES: Final = 63
"""The bytes of a hash, which are 84 characters."""


class Hashing:
    """The hashes of one recording."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def request(self, request: Any) -> Any:
        """A request without its values. It may have any form."""
        return self._member("", request)

    def _member(self, name: str, given: Any) -> Any:
        if name in _MAPS and isinstance(given, dict):
            return self._map(given)
        if name in _LISTS_OF_MAPS and isinstance(given, list):
            return [self._map(key) if isinstance(key, dict) else self.value(key) for key in given]
        if name in _LISTS and isinstance(given, list):
            return [self.value(value) for value in given]
        if name in _MAPS or name in _LISTS or name in _LISTS_OF_MAPS or name == "Value":
            return self.value(given)
        if isinstance(given, str):
            if name == "Statement":
                return self.statement(given)
            return self._text(given) if name in _OPAQUE else given
        if name == "RequestItems" and isinstance(given, dict):
            return {table: self._member("", content) for table, content in given.items()}
        if isinstance(given, dict):
            return {member: self._member(member, content) for member, content in given.items()}
        return [self._member("", content) for content in given] if isinstance(given, list) else given

    def _map(self, given: dict[str, Any]) -> dict[str, Any]:
        return {name: self.value(value) for name, value in given.items()}

    def value(self, given: Any) -> Any:
        """An attribute value; of what is none, all texts and numbers are replaced."""
        if isinstance(given, dict):
            if len(given) == 1:
                [(type_, content)] = given.items()
                if (replace := self._of_type(type_)) is not None:
                    return {type_: replace(content)}
            return self._map(given)
        if isinstance(given, list):
            return [self.value(value) for value in given]
        if isinstance(given, str):
            return self._text(given)
        return given if given is None or isinstance(given, bool) else 0

    def _of_type(self, type_: str) -> Callable[[Any], Any] | None:
        scalars = {"S": self._text, "N": self._number, "B": self._binary}
        if type_ in scalars:
            return _if_text(scalars[type_], self.value)
        if type_ in ("SS", "NS", "BS"):
            each = _if_text(scalars[type_[0]], self.value)
            return lambda given: _distinct(map(each, given)) if isinstance(given, list) else self.value(given)
        if type_ == "M":
            return lambda given: self._map(given) if isinstance(given, dict) else self.value(given)
        return self.value if type_ == "L" else None

    def _text(self, given: str) -> str:
        size = len(given.encode("utf-8", "surrogatepass"))
        if not size or given in _TYPES:
            return given
        letters = urlsafe_b64encode(self._digest(b"S", given)).decode()
        return (letters * (size // len(letters) + 1))[:size]

    def _binary(self, given: str) -> str:
        try:
            size = len(b64decode(given, validate=True))
        except ValueError:
            return self._text(given)
        digest = self._digest(b"B", given)
        return b64encode((digest * (size // len(digest) + 1))[:size]).decode()

    def _number(self, given: str) -> str:
        match = _NUMBER.fullmatch(given)
        assert match is not None
        sign, whole, point, part, exponent = match.groups()
        digits = whole + part
        first, last = len(digits) - len(digits.lstrip("0")), len(digits.rstrip("0"))
        if not digits or first >= last or (exponent and not re.fullmatch(r"[eE][+-]?[0-9]+", exponent)):
            return given if re.fullmatch(r"[+-]?[0.]*", given) else self._text(given)
        drawn = self._digest(b"N", given)
        hashed = [str(drawn[place % _DIGEST_BYTES] % 10) for place in range(last - first)]
        # The outer digits are not 0, because the number would be shorter.
        for place in (0, -1):
            hashed[place] = str(drawn[place % (last - first) % _DIGEST_BYTES] % 9 + 1)
        digits = digits[:first] + "".join(hashed) + digits[last:]
        return f"{sign}{digits[: len(whole)]}{point}{digits[len(whole) :]}{exponent}"

    def statement(self, given: str) -> str:
        """A PartiQL statement without its literals and comments; "" for a text that is none."""
        tokens = list(STATEMENT.finditer(given))
        # What is between tokens is white space, unless the text is not a statement.
        if any(gap.strip() for gap in STATEMENT.split(given)[:: STATEMENT.groups + 1]):
            return ""
        kept = [token for token in tokens if token.lastgroup != "comment"]
        return " ".join(self._token(kept, place) for place in range(len(kept)))

    def _token(self, tokens: list[re.Match[str]], place: int) -> str:
        text, kind = tokens[place][0], tokens[place].lastgroup
        if kind not in ("string", "number", "ion", "other"):
            return text
        before = [token[0] for token in tokens[max(place - 2, 0) : place]]
        after = tokens[place + 1][0] if place + 1 < len(tokens) else ""
        is_step = before[1:] == ["["] and after == "]" and (before[0][-1].isalnum() or before[0][-1] in '_"]')
        if is_step or (kind == "string" and after == ":"):
            return text
        if kind == "number":
            return self._number(text)
        hashed = self._text(text[1:-1].replace("''", "'"))
        return f"'{hashed}'"

    def _digest(self, kind: bytes, given: str) -> bytes:
        content = given.encode("utf-8", "surrogatepass")
        return blake2b(content, digest_size=_DIGEST_BYTES, key=self._secret, person=kind).digest()


def _if_text(replace: Callable[[str], str], otherwise: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda given: replace(given) if isinstance(given, str) else otherwise(given)


def _distinct(values: Any) -> list[Any]:
    """The members of a set, without those that have become equal."""
    kept: list[Any] = []
    for value in values:
        if value not in kept:
            kept.append(value)
    return kept
