"""The range of records that a key condition selects in a table or index.

`expressions.key_conditions` and `expressions.legacy` give a flat list of comparisons. This module assigns
them to the partition key and the sort key, and refuses the combinations that DynamoDB refuses.
`tables.reads.ranges.sort_bounds`, which SELECT also uses, makes the bytes of the range.

Source: Developer Guide, "Key condition expressions for the Query operation".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hashrange import encoding
from hashrange.errors import INVALID, ValidationException
from hashrange.expressions import INDEXABLE, KeyComparison
from hashrange.tables.definitions.table import KeyAttribute, KeySchema
from hashrange.tables.items import keys
from hashrange.tables.reads import ranges
from hashrange.tables.reads.ranges import ReadSource
from hashrange.values import AttributeValue

WRONG_COUNT = "Conditions can be of length 1 or 2 only"
# [report] paritysuite, of three conditions and a key of two attributes; of the others [assumed]
_TOO_MANY = (
    "The number of query conditions ({}) exceeds the number of key attributes defined in the schema ({})"
)
_NOT_INDEXABLE = "Attempted conditional constraint is not an indexable operation"
_NOT_SUPPORTED = "Query key condition not supported"
_MISSED = "Query condition missed key schema element: "
# DynamoDB Local's message. The service names the same attributes: [report] scylladb pull request 31448.
_EQUALITY = "must have equality conditions specified in the query"
_NOT_VALID = "One or more parameter values are not valid. "
_TYPE_MISMATCH = INVALID + "Condition parameter type does not match schema type"


class KeyRange(NamedTuple):
    """The records that a key condition selects."""

    partition: bytes
    low: bytes
    high: bytes | None


def select(source: ReadSource, comparisons: Sequence[KeyComparison], *, is_legacy: bool = False) -> KeyRange:
    """The records that `comparisons` select. Raises `ValidationException` if they do not fit the key.

    `is_legacy`: they come from KeyConditions, for which the error about their number has another text.
    """
    by_name = {comparison.attribute: comparison for comparison in comparisons}
    key = source.key
    is_composite = len(key.partition) > 1 or len(key.sort) > 1
    if is_legacy and len(comparisons) > 2 and not is_composite:
        raise ValidationException(WRONG_COUNT)
    attributes = len(key.partition) + len(key.sort)
    if len(comparisons) > attributes:
        if is_legacy or len(comparisons) == 2:
            # [report] run on the service in June 2025: two conditions on a key of one attribute
            raise ValidationException(_NOT_SUPPORTED)
        raise ValidationException(_TOO_MANY.format(len(comparisons), attributes))
    if not is_composite:
        _check_complete(key, by_name)
    for operand in comparisons:
        if operand.operator not in INDEXABLE:
            raise ValidationException(_NOT_INDEXABLE)
    if is_composite:
        _check_all_equal(key, by_name)
    bound: list[AttributeValue] = []
    for attribute in key.partition:
        comparison = by_name.pop(attribute.name)
        operands = [_operand(operand, attribute, source, is_sort=False) for operand in comparison.operands]
        if comparison.operator != "=":
            raise ValidationException(_NOT_SUPPORTED)
        bound.append(operands[0])
    if is_composite:
        _check_left_to_right(key, by_name)
    equal: list[AttributeValue] = []
    last: KeyComparison | None = None
    for attribute in key.sort:
        if attribute.name not in by_name:
            break
        comparison = by_name.pop(attribute.name)
        operands = [_operand(operand, attribute, source, is_sort=True) for operand in comparison.operands]
        if comparison.operator == "=" and len(key.sort) > 1:
            equal.append(operands[0])
        else:
            if comparison.operator == "begins_with" and attribute.type == "N":
                raise ValidationException(_TYPE_MISMATCH)
            last = comparison
    if by_name:
        # There are at most as many comparisons as key attributes, so a sort key attribute has none.
        raise ValidationException(_MISSED + key.sort[len(equal) + (last is not None)].name)
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


def _check_complete(key: KeySchema, given: Mapping[str, KeyComparison]) -> None:
    """Refuse conditions that lack one on the partition key or, if there are two, on the sort key.

    [report] dynalite's recordings: before operators that key conditions do not have.
    """
    partition = key.partition[0].name
    if partition not in given:
        raise ValidationException(_MISSED + partition)
    if len(given) > 1 and key.sort[0].name not in given:
        raise ValidationException(_MISSED + key.sort[0].name)


def _check_all_equal(key: KeySchema, given: Mapping[str, KeyComparison]) -> None:
    """Refuse a partition key of several attributes without an equality for each of them. Attributes without
    any condition are reported first."""
    names = [attribute.name for attribute in key.partition]
    lacking = [name for name in names if name not in given] or [
        name for name in names if given[name].operator != "="
    ]
    if lacking:
        raise ValidationException(f"HASH key attributes {', '.join(lacking)} {_EQUALITY}")


def _check_left_to_right(key: KeySchema, given: Mapping[str, KeyComparison]) -> None:
    """Refuse conditions on a sort key of several attributes that skip an attribute, or have an inequality
    before the last."""
    before: list[str] = []
    gap: list[str] = []
    for attribute in key.sort:
        name = attribute.name
        if name not in given:
            gap.append(name)
        elif gap:
            raise _sort_error(gap, name)
        else:
            before.append(name)
    ranges_before = [name for name in before[:-1] if given[name].operator != "="]
    if ranges_before:
        raise _sort_error(ranges_before, before[-1])


def _sort_error(lacking: Sequence[str], name: str) -> ValidationException:
    return ValidationException(
        f"RANGE key attributes {', '.join(lacking)} {_EQUALITY} because a condition is present on key "
        f"attribute {name}"
    )


def _operand(
    value: AttributeValue, attribute: KeyAttribute, source: ReadSource, *, is_sort: bool
) -> AttributeValue:
    if attribute.type not in value:
        raise ValidationException(_TYPE_MISMATCH)
    if attribute.type != "N" and not value[attribute.type]:
        type_name = "string" if attribute.type == "S" else "binary"
        empty = f"The AttributeValue for a key attribute cannot contain an empty {type_name} value."
        if source.index is None:
            raise ValidationException(f"{_NOT_VALID}{empty} Key: {attribute.name}")
        raise ValidationException(
            f"{_NOT_VALID}A value specified for a secondary index key is not supported. {empty} "
            f"IndexName: {source.index.name}, IndexKey: {attribute.name}"
        )
    keys.check_key_size(value, is_sort=is_sort)
    return value
