"""The order in which a request is checked, as a table: which layer of the service reads it, and what it
checks.

A request goes through these steps; the first step that finds a fault answers:

    1. JSON types                     `wire_types`, in the request's order
    2. a bad table name, alone        `shapes.check`
    3. the members of the request     `constraints`, in the order and the words of the operation's `Layer`
    4. values, expressions, rules     `prepare` of the operation; a `RequestViolation` in the layer's words
                                      (of a Query or Scan in the order of `operations.reads.read_parameters`)
    5. the table                      the operation's body: whether it exists and is active, the index, keys
    6. the item                       conditions, then rules about the item that an update finds

In June 2026 the service began to put a newer layer before some operations; `waves` says which ones, by
region. The newer layer reads a request that has its required members and is not too deep; the older layer
reads all others. `NEWER` and `OLDER` say how each layer does step 3, and how it words errors of steps 3 and
4. The newer layer also counts the values of expressions as one level deeper, and charges the text of an
update (`operations.writes.single_write`).

Sources: recordings of all regions of September and October 2026, published by paritysuite ("captures" in
dynamodb-conformance). Facts that they do not show are marked [assumed].
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from hashrange.errors import RequestViolation, ValidationException
from hashrange.settings import waves

JSON_LEVELS_MAX: Final = 128
"""The older layer reads deeper requests. Observed: values of about 62 levels, each of which is two levels of
JSON."""

_RETURN_VALUES: Final = ("ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATE_NEW", "NONE")  # sic
_CONDITIONAL_OPERATOR: Final = ("ALL", "OR")  # sic


@dataclass(frozen=True, slots=True)
class Layer:
    """How a layer checks the members of an operation's request, and how it words the errors.

    words: which text of a `RequestViolation` it answers: the older, the newer, or the newer after a count.
    alone: members whose violation is reported alone and before all others, in this order.
    order: members whose violations come first, in this order; the others follow in the API model's order.
    last: members that are checked only if nothing else is wrong.
    first_only: only the first of several violations is reported.
    lists: enums whose violations list these words, and do not show the value.
    bare: members of `alone`, each with the member beside which its violation is reported without a count.
    terse: a bad length or size is reported with the API's path and without the value; maps are shown as JSON.
    """

    words: Literal["older", "newer", "counted"] = "older"
    alone: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    first_only: bool = False
    bare: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    terse: bool = False

    def arranged(self, members: Iterable[str]) -> list[str]:
        """The members in the order in which their violations are reported, without those of `last`."""
        rest = [name for name in members if name not in self.order and name not in self.last]
        return [*self.order, *rest]


_LISTS: Final = {"ReturnValues": _RETURN_VALUES, "ConditionalOperator": _CONDITIONAL_OPERATOR}
_WRITE: Final = Layer(
    "counted",
    order=("ReturnConsumedCapacity", "ReturnValues", "ReturnItemCollectionMetrics"),
    lists=_LISTS,
    terse=True,
)

NEWER: Final = {
    "PutItem": _WRITE,
    "DeleteItem": _WRITE,
    # A bad ConditionalOperator is reported after a bad ReturnValues [assumed].
    "UpdateItem": Layer(
        "counted", alone=("ReturnValues", "ConditionalOperator"), first_only=True, lists=_LISTS, terse=True
    ),
    # It is [assumed] that QueryFilter by itself makes the error bare, whatever else is wrong.
    "Query": Layer(
        "newer",
        alone=("ConditionalOperator",),
        bare={"ConditionalOperator": "QueryFilter"},
        lists=_LISTS,
        terse=True,
    ),
    "GetItem": Layer("newer", terse=True),
    "BatchGetItem": Layer("newer", terse=True),
    # Of these, captures show an empty list or map, and a transaction's values that are too deep; that all
    # their errors have the newer form is [assumed].
    "BatchWriteItem": Layer("newer", last=("RequestItems",), terse=True),
    "TransactGetItems": Layer("newer", terse=True),
    "TransactWriteItems": Layer("newer", order=("ClientRequestToken",), terse=True),
}
"""How the newer layer reads the operations that `waves` has."""

OLDER: Final = {
    "UpdateItem": Layer(
        order=("ReturnConsumedCapacity", "TableName", "ReturnValues", "ConditionalOperator", "Key")
    ),
    "PutItem": Layer(order=("ReturnConsumedCapacity", "ReturnValues", "TableName", "Item")),
    "BatchWriteItem": Layer(last=("RequestItems",)),
    "TransactWriteItems": Layer(order=("ClientRequestToken",)),
    "ExecuteTransaction": Layer(order=("ClientRequestToken",)),  # [assumed]
    "CreateTable": Layer(
        order=(
            "AttributeDefinitions",
            "TableName",
            "KeySchema",
            "GlobalSecondaryIndexes",
            "LocalSecondaryIndexes",
        )
    ),
}
"""The order of the older layer, for operations where it differs from the API model's."""

_PLAIN: Final = Layer()
_NEEDED: Final = {"PutItem": "Item", "DeleteItem": "Key", "UpdateItem": "Key", "GetItem": "Key"}
_BY_DEFAULT: Final = waves.newer(waves.DEFAULT)


def layer_of(operation: str, request: dict[str, Any], newer: Collection[str] = _BY_DEFAULT) -> Layer:
    """The layer that checks a request; the newer one reads the operations in `newer` (`waves.newer`)."""
    if operation in newer:
        needed = _NEEDED.get(operation)
        has_needed = needed is None or request.get(needed) is not None
        if has_needed and not _is_deeper(request, JSON_LEVELS_MAX):
            return NEWER[operation]
    return OLDER.get(operation, _PLAIN)


def spoken(
    operation: str, request: dict[str, Any], error: RequestViolation, newer: Collection[str] = _BY_DEFAULT
) -> ValidationException:
    """The error for a broken rule, as the layer that read the request words it."""
    words = layer_of(operation, request, newer).words
    if words == "counted":
        return error.counted()
    return ValidationException(error.newer if words == "newer" else error.message)


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether the list or map `value` has more than `levels` levels of lists and maps."""
    if levels == 0:
        return True
    for content in value.values() if type(value) is dict else value:
        if (type(content) is dict or type(content) is list) and _is_deeper(content, levels - 1):
            return True
    return False
