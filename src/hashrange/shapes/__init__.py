"""Request shapes: the parameters of every operation, and DynamoDB's errors for a request that does not fit.

    check(operation, request)        the first check of a request
    check_types(operation, request)  after another error: raises that of a wrong JSON type, which goes first

The order is DynamoDB's: JSON types, one at a time (`wire_types`, `search_types`); then a bad table name,
alone; then all other violations in one message (`constraints`), as `layers` says for the operation. Unknown
members are ignored. Null means absent; `check` removes nulls, so that no other module has to handle them.

The declarations, by family: `items`, `control` and its `replicas`, `features`, `global_tables`, `backups`,
`transfers`, `statements`, `streams`. `members` and `table_parts` hold their common parts,
`vocabulary` the types that they are written with. Each shape belongs to an operation that exists: an
unknown operation is refused before any shape is used.

Good requests never reach the exact walk: `quick` accepts them in a microsecond or two, without checking
attribute values. `values` checks these later; `check_types` then raises an error of types in place of its
error. `spoken` words the error of a rule as the operation's layer does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import chain
from typing import Any, Final

from hashrange.errors import ValidationException
from hashrange.settings import waves
from hashrange.shapes import (
    backups,
    constraints,
    control,
    features,
    global_tables,
    items,
    quick,
    search_types,
    statements,
    streams,
    transfers,
    wire_types,
)
from hashrange.shapes.layers import Layer, layer_of, spoken
from hashrange.shapes.vocabulary import List, Map, Shape, Structure

__all__ = ["OPERATIONS", "check", "check_types", "quick", "spoken", "test_of"]

OPERATIONS: Final[dict[str, Structure]] = {
    **items.OPERATIONS,
    **control.OPERATIONS,
    **features.OPERATIONS,
    **global_tables.OPERATIONS,
    **backups.OPERATIONS,
    **transfers.OPERATIONS,
    **statements.OPERATIONS,
    **streams.OPERATIONS,
}

# Each test is compiled when its operation is first used: most programs use a few operations.
_TESTS: Final[dict[str, Callable[[Any], object]]] = {}

# These operations have their own message for a missing table name; the others have the common message of
# constraints. [report] aws-sdk-java issues 344 and 977 for these, a GetItem of 2024 for the others,
# dynalite's recordings for DescribeTimeToLive and for ARNs.
_OWN_WORDS_FOR_NO_TABLE: Final = frozenset(
    ("CreateTable", "DescribeTable", "DescribeTimeToLive", "UpdateTable", "DeleteTable")
)
_NO_TABLE: Final = "The parameter 'TableName' is required but was not present in the request"
_OWN_WORDS_FOR_NO_ARN: Final = frozenset(("TagResource", "UntagResource"))
_NO_ARN: Final = "Invalid TableArn"

_NO_ITEMS: Final = "The requestItems parameter is required for BatchWriteItem"


def check(
    operation: str, request: dict[str, Any], newer: Collection[str] = waves.newer(waves.DEFAULT)
) -> None:
    """Raise DynamoDB's error for a request of the wrong shape.

    Removes null members. Does not check attribute values. `newer` is as in `layers.layer_of`.
    Raises SerializationException and ValidationException; KeyError for an unknown operation.
    """
    if quick.fits(test_of(operation), request):
        return
    shape = OPERATIONS[operation]
    check_types(operation, request)
    layer = layer_of(operation, request, newer)
    _check_table_name(operation, shape, request, layer)
    if operation == "BatchWriteItem" and not layer.terse and request.get("RequestItems") == {}:
        raise ValidationException(_NO_ITEMS)
    for name, companion in layer.bare.items():
        if request.get(companion):
            for text in _of_member(shape, request, name, layer):
                raise ValidationException(text)
    texts = _violations(shape, request, layer)
    first = next(texts, None)
    if first is not None:
        found = chain((first,), () if layer.first_only else texts)
        if operation == "UpdateTable":
            found = chain(_indexes_without_units(request), found)
        raise ValidationException(constraints.message(found))
    _drop_nulls(shape, request)


def test_of(operation: str) -> quick.Test:
    """The test that accepts most good requests of an operation. Raises KeyError for an unknown one."""
    test = _TESTS.get(operation)
    if test is None:
        test = _TESTS[operation] = quick.structure_test(OPERATIONS[operation])
    return test


def _violations(shape: Structure, request: dict[str, Any], layer: Layer) -> Iterator[str]:
    """The violations of a request that are reported, in order."""
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


def _indexes_without_units(request: dict[str, Any]) -> Iterator[str]:
    """The violations of updates of indexes that change nothing. They are reported beside others only: alone,
    such an update gets the error of the table's billing mode.

    [report] dynoxide's captures of August 2026; their place, before the others, is [assumed].
    """
    for position, update in enumerate(request.get("GlobalSecondaryIndexUpdates") or (), 1):
        part = (update or {}).get("Update") or {}
        if [name for name, value in part.items() if value is not None] == ["IndexName"]:
            path = f"globalSecondaryIndexUpdates.{position}.member.update.provisionedThroughput"
            yield constraints.violation(None, path, constraints.NOT_NULL)


def _of_member(shape: Structure, request: dict[str, Any], name: str, layer: Layer) -> Iterator[str]:
    texts = constraints.member_violations(shape, request, name, terse=layer.terse)
    if name not in layer.lists:
        return texts
    return (constraints.unlisted(layer.lists[name]) for _ in texts)


def check_types(operation: str, request: dict[str, Any]) -> None:
    """Raise SerializationException if any value of `request` has a wrong JSON type, attribute values too."""
    if operation == "SearchVectors":
        search_types.check(request)
    wire_types.check_request(OPERATIONS[operation], request)


def _check_table_name(operation: str, shape: Structure, request: dict[str, Any], layer: Layer) -> None:
    if operation in _OWN_WORDS_FOR_NO_ARN and request.get("ResourceArn") is None:
        raise ValidationException(_NO_ARN)
    member = shape.members.get("TableName")
    if member is None:
        return
    name = request.get("TableName")
    if name is None and operation in _OWN_WORDS_FOR_NO_TABLE:
        raise ValidationException(_NO_TABLE)
    if name or (name is not None and layer.terse):
        # For other operations an empty name breaks the shape's own rules, and is reported with the other
        # violations.
        texts = constraints.violations(member, name, "tableName", terse=layer.terse)
        first = next(texts, None)
        if first is not None:
            raise ValidationException(constraints.message(chain((first,), texts)))


def known(operation: str, request: dict[str, Any]) -> dict[str, Any]:
    """A request without the members that the API does not know, for an operation that stores it. `check`
    has passed it. Unknown members have no meaning, any size and any depth."""
    kept: dict[str, Any] = _known(OPERATIONS[operation], request)
    return kept


def _known(shape: Shape, value: Any) -> Any:
    match shape:
        case Structure():
            members = shape.members
            return {name: _known(members[name], value[name]) for name in value if name in members}
        case List():
            return [_known(shape.member, content) for content in value]
        case Map():
            return {name: _known(shape.value, content) for name, content in value.items()}
    return value


def _drop_nulls(shape: Shape, value: Any) -> None:
    match shape:
        case Structure():
            for name in [name for name, content in value.items() if content is None]:
                del value[name]
            for name, member in shape.members.items():
                if name in value:
                    _drop_nulls(member, value[name])
        case List():
            for content in value:
                _drop_nulls(shape.member, content)
        case Map():
            for content in value.values():
                _drop_nulls(shape.value, content)
