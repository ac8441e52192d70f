"""Matches a key condition against the key of a table or index.

The languages (expression and legacy) give a flat list of comparisons; here it is decided which of them
bind the partition key and which the sort key, and what DynamoDB refuses.

Source: Developer Guide, "Key condition expressions for the Query operation".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hashrange import encoding
from hashrange.errors import INVALID, ValidationException
from hashrange.expressions import KeyComparison
from hashrange.tables import keys, ranges
from hashrange.tables.ranges import Source
from hashrange.tables.table import KeyAttribute
from hashrange.values import AttributeValue

WRONG_COUNT = "Conditions can be of length 1 or 2 only"
NOT_SUPPORTED = "Query key condition not supported"
_NOT_VALID = "One or more parameter values are not valid. "
_TYPE_MISMATCH = INVALID + "Condition parameter type does not match schema type"


class KeyRange(NamedTuple):
    """The records that a key condition selects."""

    partition: bytes
    low: bytes
    high: bytes | None


def match(source: Source, comparisons: Sequence[KeyComparison]) -> KeyRange:
    """The records that `comparisons` select. Raises `ValidationException` where they do not fit the key."""
    by_name = {comparison.attribute: comparison for comparison in comparisons}
    key = source.key
    if len(comparisons) > max(2, len(key.attributes())):
        raise ValidationException(WRONG_COUNT)
    bound: list[AttributeValue] = []
    for attribute in key.partition:
        comparison = by_name.pop(attribute.name, None)
        if comparison is None:
            raise ValidationException(f"Query condition missed key schema element: {attribute.name}")
        if comparison.operator != "=":
            raise ValidationException(NOT_SUPPORTED)
        bound.append(_operand(comparison.operands[0], attribute, source, is_sort=False))
    equal: list[AttributeValue] = []
    last: KeyComparison | None = None
    for attribute in key.sort:
        comparison = by_name.pop(attribute.name, None)
        if comparison is None:
            break
        if last is not None:
            raise ValidationException(NOT_SUPPORTED)
        operands = [_operand(one, attribute, source, is_sort=True) for one in comparison.operands]
        if comparison.operator == "=" and len(key.sort) > 1:
            equal.append(operands[0])
        else:
            if comparison.operator == "begins_with" and attribute.type == "N":
                raise ValidationException(_TYPE_MISMATCH)
            last = comparison
    if by_name:
        _refuse_rest(source, by_name)
    low, high = ranges.sort_bounds(
        source.index is not None,
        equal,
        last.operator if last is not None else None,
        last.operands if last is not None else (),
    )
    partition = (
        encoding.partition_of(bound)
        if source.index is None or source.index.is_global
        else encoding.partition_of(bound[:1])
    )
    return KeyRange(partition, low, high)


def _refuse_rest(source: Source, rest: dict[str, KeyComparison]) -> None:
    """Conditions on attributes that are not part of the key, or behind a gap in it."""
    for attribute in source.key.sort:
        if attribute.name not in rest:
            raise ValidationException(f"Query condition missed key schema element: {attribute.name}")
    raise ValidationException(NOT_SUPPORTED)


def _operand(
    value: AttributeValue, attribute: KeyAttribute, source: Source, *, is_sort: bool
) -> AttributeValue:
    if attribute.type not in value:
        raise ValidationException(_TYPE_MISMATCH)
    if attribute.type != "N" and not value[attribute.type]:
        what = "string" if attribute.type == "S" else "binary"
        empty = f"The AttributeValue for a key attribute cannot contain an empty {what} value."
        if source.index is None:
            raise ValidationException(f"{_NOT_VALID}{empty} Key: {attribute.name}")
        raise ValidationException(
            f"{_NOT_VALID}A value specified for a secondary index key is not supported. {empty} "
            f"IndexName: {source.index.name}, IndexKey: {attribute.name}"
        )
    keys.check_key_size(value, is_sort=is_sort)
    return value
