"""Equality and order of admitted attribute values.

Numbers are in normal form, so equal numbers have equal text and only `order` needs their value. The order of
members does not matter in sets and maps. Values of different types are never equal and have no order.
Source: Developer Guide, "Comparison operator and function reference".
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import orjson

from hashrange.values import numbers
from hashrange.values.attributes import AttributeValue, decode_binary, portions


def equal(left: AttributeValue, right: AttributeValue) -> bool:
    """Whether two values have equal types and contents."""
    if left == right:
        return True
    for name, content in left.items():
        if name not in right:
            return False
        compared = right[name]
        if name in ("SS", "NS", "BS"):
            return len(content) == len(compared) and set(content) == set(compared)
        if name == "L":
            return len(content) == len(compared) and all(map(equal, content, compared))
        if name == "M":
            names = content.keys()
            return names == compared.keys() and all(equal(content[key], compared[key]) for key in names)
    return False


def sort_token(value: AttributeValue) -> tuple[str, Any] | None:
    """`(type, token)`; tokens of one type have DynamoDB's order. None for types without an order."""
    for name, content in value.items():
        if name == "S":
            # Code point order is the order of the UTF-8 bytes.
            return name, content
        if name == "N":
            return name, numbers.parse(content)
        if name == "B":
            return name, decode_binary(content)
    return None


def order(left: AttributeValue, right: AttributeValue) -> int | None:
    """-1, 0 or 1 as `left` is below, equal to or above `right`; None if they cannot be ordered."""
    for name, content in left.items():
        compared = right.get(name)
        if compared is None:
            # The types differ: nothing needs to be decoded.
            return None
        if name == "S":
            return int(content > compared) - int(content < compared)
        if content == compared:
            return 0 if name == "N" or name == "B" else None
    left_token, right_token = sort_token(left), sort_token(right)
    if left_token is None or right_token is None or left_token[0] != right_token[0]:
        return None
    return int(left_token[1] > right_token[1]) - int(left_token[1] < right_token[1])


def canonical_members(members: list[AttributeValue]) -> frozenset[bytes]:
    """The canonical forms of a list's members."""
    forms: set[bytes] = set()
    for chunk in portions(members):
        if _may_have_sets(orjson.dumps(chunk)):
            forms.update([canonical(member) for member in chunk])
        else:
            # A loop in C: a list may have 200,000 members.
            forms.update(map(_dumps_sorted, chunk))
    return frozenset(forms)


_dumps_sorted: Final = partial(orjson.dumps, option=orjson.OPT_SORT_KEYS)


def _may_have_sets(text: bytes) -> bool:
    # Only the type of a set has these bytes: quotes inside a text are escaped, and a name is followed by a
    # brace.
    return b'"SS":[' in text or b'"NS":[' in text or b'"BS":[' in text


def canonical(value: AttributeValue) -> bytes:
    """Bytes that are equal for two values if and only if the values are `equal`."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if _may_have_sets(text):
        return orjson.dumps(_with_sorted_sets(value), option=orjson.OPT_SORT_KEYS)
    return text


def _with_sorted_sets(value: AttributeValue) -> AttributeValue:
    for name, content in value.items():
        if name in ("SS", "NS", "BS"):
            return {name: sorted(content)}
        if name == "L":
            return {name: [_with_sorted_sets(member) for member in content]}
        if name == "M":
            return {name: {key: _with_sorted_sets(member) for key, member in content.items()}}
    return value


def has_sets(value: AttributeValue) -> bool:
    """Whether a value is a set, or may contain one."""
    for name in value:
        if name == "L" or name == "M":
            return _may_have_sets(orjson.dumps(value))
        return name in ("SS", "NS", "BS")
    return False
