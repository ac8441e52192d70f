"""Equality and order of admitted attribute values.

Numbers are in normal form, so equal numbers have equal text and only order needs their value. Sets and
maps compare without order. Values of different types are never equal and have no order.
Source: Developer Guide, "Comparison operator and function reference".
"""

from __future__ import annotations

from typing import Any

from hashrange.values import numbers
from hashrange.values.attributes import AttributeValue, decode_binary


def equal(left: AttributeValue, right: AttributeValue) -> bool:
    """Whether two values have the same type and the same content."""
    if left == right:
        return True
    for name, content in left.items():
        if name not in right:
            return False
        other = right[name]
        if name in ("SS", "NS", "BS"):
            return len(content) == len(other) and set(content) == set(other)
        if name == "L":
            return len(content) == len(other) and all(map(equal, content, other))
        if name == "M":
            return content.keys() == other.keys() and all(equal(content[key], other[key]) for key in content)
    return False


def sort_token(value: AttributeValue) -> tuple[str, Any] | None:
    """`(type, token)` where tokens of one type order as DynamoDB does; None for types without an order."""
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
    one, other = sort_token(left), sort_token(right)
    if one is None or other is None or one[0] != other[0]:
        return None
    return int(one[1] > other[1]) - int(one[1] < other[1])
