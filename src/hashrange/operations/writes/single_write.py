"""PutItem, UpdateItem and DeleteItem: turns requests into a `Write`, and the outcome into an answer.

The members of a transaction have the same shape as these requests, and use the same functions.

Source: API reference, PutItem, UpdateItem, DeleteItem.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hashrange import expressions
from hashrange.errors import (
    ITEM_TOO_LARGE,
    ConditionalCheckFailedException,
    RequestViolation,
    ValidationException,
)
from hashrange.expressions import legacy
from hashrange.limits import ITEM_BYTES_MAX, NESTING_LEVELS_MAX
from hashrange.operations import parameters
from hashrange.operations.context import Answer, Billed, BilledWriteBody, Context, Request, table_name
from hashrange.settings import waves
from hashrange.storage.api import Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.items import capacity, records
from hashrange.tables.items.item_change import ItemChange, Occasion
from hashrange.tables.writes import applying, read_modify_write
from hashrange.tables.writes.read_modify_write import Update, Write
from hashrange.values import admit_item

_CONDITION = ("ConditionExpression",)
_CONDITION_LEGACY = ("Expected", "ConditionalOperator")
_UPDATE = ("UpdateExpression", "ConditionExpression")
_UPDATE_LEGACY = ("AttributeUpdates", "Expected", "ConditionalOperator")

_COLLECTION_STEP_GB = 1.0
_GB = 1024**3


NEWER_LEVEL: Final = 1
OLDER_LEVEL: Final = 0
"""The level of the values of expressions, as the newer and the older layer of the service count it: with the
older one, such a value may have one more level than those of an item. Observed: 33 levels are read, 40 are
refused; the exact limit is [assumed]."""


def prepare_put(request: Request, context: Context) -> BilledWriteBody:
    """The body of a PutItem, which creates an item or replaces the whole item."""
    return _run(request, context, put(request, context.scope), _whole_attributes(request))


def prepare_delete(request: Request, context: Context) -> BilledWriteBody:
    """The body of a DeleteItem. It succeeds if the item does not exist."""
    return _run(request, context, delete(request, context.scope), _whole_attributes(request))


def prepare_update(request: Request, context: Context) -> BilledWriteBody:
    """The body of an UpdateItem, which changes attributes of an item, or creates it."""
    write = update(request, context.scope, level_of("UpdateItem", context))
    return _run(request, context, write, _changed_attributes(request, write.update))


def put(request: Request, scope: str, level: int = NEWER_LEVEL) -> Write:
    """The write of a PutItem or of a transaction's Put; `level` is the level of the expressions' values."""
    is_bare = len(request) == 2  # only the table and the item
    if not is_bare:
        parameters.check_styles(request, _CONDITION, _CONDITION_LEGACY, valued=_CONDITION)
    item = request["Item"]
    size = admit_item(item)
    if not is_bare:
        _check_return_values(request)
    if size > ITEM_BYTES_MAX:
        raise ValidationException(ITEM_TOO_LARGE)
    condition = None
    nested: frozenset[str] = frozenset()
    if not is_bare:
        subs = parameters.substitutions(request, level=level)
        condition = parameters.write_condition(request, subs)
        subs.check_all_used()
        nested = subs.nested
    return Write(
        "put",
        table_name(request["TableName"], scope),
        item,
        records.pack(item, size),
        condition,
        None,
        request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD",
        nested,
    )


def delete(request: Request, scope: str, level: int = NEWER_LEVEL) -> Write:
    """The write of a DeleteItem or of a transaction's Delete."""
    return _keyed("delete", request, scope, level)


def check(request: Request, scope: str, level: int = NEWER_LEVEL) -> Write:
    """The write of a transaction's ConditionCheck, which changes nothing."""
    return _keyed("check", request, scope, level)


def _keyed(action: str, request: Request, scope: str, level: int) -> Write:
    parameters.check_styles(request, _CONDITION, _CONDITION_LEGACY, valued=_CONDITION)
    admit_item(request["Key"])
    _check_return_values(request)
    subs = parameters.substitutions(request, level=level)
    condition = parameters.write_condition(request, subs)
    subs.check_all_used()
    return Write(
        "delete" if action == "delete" else "check",
        table_name(request["TableName"], scope),
        request["Key"],
        None,
        condition,
        None,
        request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD",
        subs.nested,
    )


def update(request: Request, scope: str, level: int = NEWER_LEVEL) -> Write:
    """The write of an UpdateItem or of a transaction's Update."""
    parameters.check_styles(request, _UPDATE, _UPDATE_LEGACY, valued=_UPDATE)
    admit_item(request["Key"])
    subs = parameters.substitutions(request, level=level)
    change: Update | None = None
    is_charged = is_too_deep = False
    if request.get("UpdateExpression") is not None:
        update_of_text = expressions.update(request["UpdateExpression"], subs)
        # With the older layer only the size of the updated item is limited ([report] paritysuite), ...
        is_charged = level == NEWER_LEVEL and update_of_text.charges is not None
        # ... and values in conditions may be nested more deeply than in an item. [report]
        # dynamodb-conformance pull requests 90 and 178
        is_too_deep = level == OLDER_LEVEL and subs.uses_deeper(NESTING_LEVELS_MAX)
        change = update_of_text
    if request.get("AttributeUpdates") is not None:
        legacy.check_updates(request["AttributeUpdates"])
    condition = parameters.write_condition(request, subs)
    if request.get("AttributeUpdates") is not None:
        change = legacy.attribute_updates(request["AttributeUpdates"])
    subs.check_all_used()
    return Write(
        "update",
        table_name(request["TableName"], scope),
        request["Key"],
        None,
        condition,
        change,
        request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD",
        subs.nested,
        is_charged,
        is_too_deep,
    )


def level_of(operation: str, context: Context) -> int:
    """The level of the values of an operation's expressions: that of the layer that reads it."""
    return NEWER_LEVEL if operation in waves.newer(context.settings.words) else OLDER_LEVEL


def _run(
    request: Request,
    context: Context,
    write: Write,
    attributes: Callable[[ItemChange], object | None],
) -> BilledWriteBody:
    """The body of a single write. `attributes` returns the Attributes of the answer, or None if it has
    none."""
    mode = capacity.wanted(request, billed=context.billed)
    metrics = request.get("ReturnItemCollectionMetrics") == "SIZE"
    occasion = Occasion(context.now, context.settings, context.caller.access_key)
    scope = context.scope

    def body(txn: Transaction) -> Billed:
        table = catalog.open_active(txn, write.table_name, scope)
        read_modify_write.check_paths(table, write, alone=True)
        try:
            outcome = read_modify_write.perform(txn, table, write, occasion)
        except ConditionalCheckFailedException as error:
            if mode is not None:
                error.bill = capacity.refused(request["TableName"], error.units)
            raise
        answer: Answer = {}
        returned = attributes(outcome)
        if returned is not None:
            answer["Attributes"] = returned
        bill = capacity.NO_BILL
        if mode is not None:
            consumed = capacity.Consumed(request["TableName"], writes=True)
            consumed.add_write(table, outcome.units)
            bill = (consumed,)
            if mode:
                answer["ConsumedCapacity"] = consumed.wire(mode)
        if metrics and table.has_local_indexes:
            answer["ItemCollectionMetrics"] = collection_metrics(txn, write, outcome)
        return answer, bill

    return body


def collection_metrics(txn: Transaction, write: Write, outcome: ItemChange) -> Answer:
    """The ItemCollectionMetrics of a write to a table with local indexes."""
    attribute = outcome.table.key.partition[0].name
    gigabytes = applying.collection_size(txn, outcome.table, outcome.partition) / _GB
    low = float(int(gigabytes))
    return {
        "ItemCollectionKey": {attribute: write.key[attribute]},
        "SizeEstimateRangeGB": [low, low + _COLLECTION_STEP_GB],
    }


def _check_return_values(request: Request) -> None:
    """Refuse ReturnValues of a put or delete other than ALL_OLD and NONE."""
    if request.get("ReturnValues") not in (None, "NONE", "ALL_OLD"):
        raise RequestViolation("ReturnValues can only be ALL_OLD or NONE")


def _whole_attributes(request: Request) -> Callable[[ItemChange], object | None]:
    """The function for the Attributes of a put or delete, by its ReturnValues."""
    return _old_attributes if request.get("ReturnValues") == "ALL_OLD" else _no_attributes


def _changed_attributes(request: Request, update: Update | None) -> Callable[[ItemChange], object | None]:
    """The function for the Attributes of an update, by its ReturnValues."""
    wanted = request.get("ReturnValues") or "NONE"
    if wanted == "ALL_OLD":
        return _old_attributes
    if wanted == "ALL_NEW":
        return _new_attributes
    if update is None or wanted == "NONE":
        return _no_attributes
    if wanted == "UPDATED_OLD":
        return lambda outcome: update.changed_paths(outcome.old_item or {}) or None
    return lambda outcome: update.changed_paths(outcome.new_item or {}) or None


def _old_attributes(outcome: ItemChange) -> object | None:
    return records.fragment_of(outcome.old) if outcome.old is not None else None


def _new_attributes(outcome: ItemChange) -> object | None:
    return records.fragment_of(outcome.new) if outcome.new is not None else None


def _no_attributes(outcome: ItemChange) -> None:
    """ReturnValues NONE."""
