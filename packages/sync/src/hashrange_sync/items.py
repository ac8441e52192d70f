"""Items in DynamoDB's JSON as botocore gives them: equality, digests and differences, exact for every type.

Two values are equal if DynamoDB's `=` says so: numbers by value (1.0 is 1), sets in any order. Numbers are
compared as decimals of up to 38 digits, never as floats. An item that is not there is None, and its digest is
`ABSENT`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from decimal import Context, Decimal
from hashlib import blake2b
from typing import Any, Final

import msgspec

Value = Mapping[str, Any]
Item = Mapping[str, Value]
Differences = Mapping[str, tuple[Value | None, Value | None]]
"""By attribute: its value before and after; None where the attribute is absent."""

ABSENT: Final = b""
_DIGEST_BYTES: Final = 16
_EXACT: Final = Context(prec=60, Emax=10_000, Emin=-10_000)
_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_AS_THEY_ARE: Final = frozenset({"S", "B", "BOOL", "NULL"})


def form(value: Value) -> Any:
    """A form of a value that is equal exactly for equal values."""
    [(kind, held)] = value.items()
    if kind in _AS_THEY_ARE:
        return value
    if kind == "N":
        return {kind: _number(held)}
    if kind == "NS":
        return {kind: sorted(_number(number) for number in held)}
    if kind == "L":
        return {kind: [form(member) for member in held]}
    if kind == "M":
        return {kind: _form(held)}
    return {kind: sorted(held)}


def _form(item: Item) -> Item:
    # (most values are texts, and these are as they are)
    return {name: value if "S" in value else form(value) for name, value in item.items()}


def _number(text: str) -> str:
    if text.isdecimal() and text[0] != "0" != text[-1]:
        return text  # (as it is below)
    number = _EXACT.normalize(Decimal(text))
    return str(number) if number else "0"


def digest(item: Item | None) -> bytes:
    """16 bytes that are equal for equal items; `ABSENT` for None."""
    if item is None:
        return ABSENT
    return _hash(_form(item))


def _hash(value: Any) -> bytes:
    return blake2b(_encode(value), digest_size=_DIGEST_BYTES).digest()


def differences(before: Item | None, after: Item | None) -> Differences:
    """The attributes in which two items differ."""
    old, new = before or {}, after or {}
    return {
        name: (old.get(name), new.get(name))
        for name in [*old, *(name for name in new if name not in old)]
        if not same(old.get(name), new.get(name))
    }


def same(one: Value | None, other: Value | None) -> bool:
    """Whether two values are equal; None is an absent attribute."""
    if one is None or other is None:
        return one is other
    return one == other or form(one) == form(other)


def change_digest(before: Item | None, after: Item | None) -> bytes:
    """The digest of a change of an item: which attributes it touched, from which values to which; of an item
    that was not there before, that of the item."""
    if before is None:
        return digest(after)
    changed = differences(before, after)
    forms = [(name, old and form(old), new and form(new)) for name, (old, new) in sorted(changed.items())]
    return _hash([after is None, forms])


def size(item: Any) -> int:
    """About the bytes of an item, or of a part of a request."""
    return len(_encode(item))


def plain(value: Any) -> Any:
    """A value for JSON: bytes as Base64, as in DynamoDB's JSON."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, Mapping):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(member) for member in value]
    return value
