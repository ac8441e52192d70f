"""Request shapes: what every operation takes, and DynamoDB's errors for a request that does not fit.

    check(operation, request)        before anything else is done with a request
    check_types(operation, request)  after a failure elsewhere: was it a wrong JSON type all along?

The order is DynamoDB's: JSON types, one at a time (`wire_types`); then a bad table name, alone; then all
other violations in one message (`constraints`), as `layers` says for the operation. Unknown members are
ignored; null stands for absent, and `check` removes it, so that nobody below meets one.

The declarations, by family: `items`, `control` and its `replicas`, `statements`, `streams`; what they share
is in `members` and `table_parts`, the words they are written in are in `vocabulary`. A shape comes with its
operation: an operation that does not exist answers before any shape is looked at.

Good requests never reach the exact walk: `quick` answers for them in a microsecond or two, without
looking into attribute values. `values` checks those, and `check_types` gives its errors their rank.
`spoken` puts what the operation finds broken in the words that the operation has for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from hashrange.errors import ValidationException
from hashrange.shapes import (
    constraints,
    control,
    items,
    quick,
    statements,
    streams,
    wire_types,
)
from hashrange.shapes.layers import Layer, layer_of, spoken
from hashrange.shapes.vocabulary import List, Map, Shape, Structure

__all__ = ["OPERATIONS", "check", "check_types", "spoken"]

OPERATIONS: Final[dict[str, Structure]] = {
    **items.OPERATIONS,
    **control.OPERATIONS,
    **statements.OPERATIONS,
    **streams.OPERATIONS,
}

_TESTS: Final = {operation: quick.structure_test(shape) for operation, shape in OPERATIONS.items()}

# These still say so in their own words when the table name is missing; the others give the common
# constraint message. [report] aws-sdk-java issues 344 and 977 for these, a GetItem of 2024 for the others.
_OWN_WORDS_FOR_NO_TABLE: Final = frozenset(("CreateTable", "DescribeTable", "UpdateTable", "DeleteTable"))
_NO_TABLE: Final = "The parameter 'TableName' is required but was not present in the request"

_NO_ITEMS: Final = "The requestItems parameter is required for BatchWriteItem"


def check(operation: str, request: dict[str, Any], *, older: bool = False) -> None:
    """Raise what DynamoDB answers to a request of the wrong shape.

    Removes null members. Attribute values are not looked into. `older` as in `layers.layer_of`.
    Raises SerializationException and ValidationException; KeyError for an unknown operation.
    """
    try:
        if _TESTS[operation](request):
            return
    except TypeError:
        # A list or map where an enum's word belongs cannot be looked up. The exact walk names it.
        pass
    shape = OPERATIONS[operation]
    wire_types.check_request(shape, request)
    layer = layer_of(operation, request, older=older)
    _check_table_name(operation, shape, request, layer)
    if operation == "BatchWriteItem" and request.get("RequestItems") == {}:
        raise ValidationException(_NO_ITEMS)
    found = _violations(shape, request, layer)
    first = next(found, None)
    if first is not None:
        rest = () if layer.first_only else found
        raise ValidationException(constraints.message(chain((first,), rest)))
    _drop_nulls(shape, request)


def _violations(shape: Structure, request: dict[str, Any], layer: Layer) -> Iterator[str]:
    """Every violation of a request that is told, in order."""
    for name in layer.alone:
        for text in _of_member(shape, request, name, layer):
            yield text
            return
    is_good = True
    for name in layer.arranged(shape.members):
        for text in _of_member(shape, request, name, layer):
            is_good = False
            yield text
    if is_good:
        for name in layer.last:
            yield from _of_member(shape, request, name, layer)


def _of_member(shape: Structure, request: dict[str, Any], name: str, layer: Layer) -> Iterator[str]:
    found = constraints.member_violations(shape, request, name, terse=layer.terse)
    if name not in layer.lists:
        return found
    return (constraints.unlisted(layer.lists[name]) for _ in found)


def check_types(operation: str, request: dict[str, Any]) -> None:
    """Raise SerializationException if any value of `request` has a wrong JSON type, attribute values too."""
    wire_types.check_request(OPERATIONS[operation], request)


def _check_table_name(operation: str, shape: Structure, request: dict[str, Any], layer: Layer) -> None:
    member = shape.members.get("TableName")
    if member is None:
        return
    name = request.get("TableName")
    if name is None and operation in _OWN_WORDS_FOR_NO_TABLE:
        raise ValidationException(_NO_TABLE)
    if name or (name is not None and layer.terse):
        # Elsewhere an empty name breaks the wide rule of the shape and is reported among the others.
        found = constraints.violations(member, name, "tableName", terse=layer.terse)
        first = next(found, None)
        if first is not None:
            raise ValidationException(constraints.message(chain((first,), found)))


def _drop_nulls(shape: Shape, value: Any) -> None:
    match shape:
        case Structure():
            for name in [name for name, one in value.items() if one is None]:
                del value[name]
            for name, member in shape.members.items():
                if name in value:
                    _drop_nulls(member, value[name])
        case List():
            for one in value:
                _drop_nulls(shape.member, one)
        case Map():
            for one in value.values():
                _drop_nulls(shape.value, one)
