"""BatchGetItem: up to 100 items by their keys, from one or more tables, at most 16 MB at a time.

Source: API reference, BatchGetItem.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import orjson

from hashrange.errors import DUPLICATE_KEYS, ValidationException
from hashrange.expressions import Projection
from hashrange.limits import BATCH_GET_BYTES_MAX, BATCH_GET_KEYS_MAX
from hashrange.operations import parameters
from hashrange.operations.context import Answer, Billed, BilledReadBody, Context, Request, table_name
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog
from hashrange.tables.items import capacity, keys, records
from hashrange.values import Item, admit_item

# Compiled code reads a final name at once; an attribute of a module it has to look up.
_dumps: Final = orjson.dumps
_SORTED: Final = orjson.OPT_SORT_KEYS


def prepare(request: Request, context: Context) -> BilledReadBody:
    """The body of a BatchGetItem."""
    wanted: dict[str, Request] = request["RequestItems"]
    if sum(len(table_request["Keys"]) for table_request in wanted.values()) > BATCH_GET_KEYS_MAX:
        raise ValidationException("Too many items requested for the BatchGetItem call")
    _check_one_style(wanted)
    projections = {given: _prepare_table(table_request) for given, table_request in wanted.items()}
    mode = capacity.wanted(request, billed=context.billed)
    return partial(_run, context.scope, wanted, projections, mode, context.left)


def _run(
    scope: str,
    wanted: dict[str, Request],
    projections: dict[str, Projection | None],
    mode: str | None,
    left: frozenset[int],
    reader: Reader,
) -> Billed:
    responses: dict[str, list[Any]] = {}
    unprocessed: dict[str, Request] = {}
    bill: list[capacity.Consumed] = []
    budget = BATCH_GET_BYTES_MAX
    members = 0
    for given, table_request in wanted.items():
        table = catalog.open_active(reader, table_name(given, scope), scope)
        project = projections[given]
        if project is not None:
            keys.check_scalars(table, project.nested)
        asked, skipped = table_request["Keys"], []
        if left:
            placed = list(enumerate(asked, members))
            asked = [key for position, key in placed if position not in left]
            skipped = [key for position, key in placed if position in left]
            members += len(placed)
        space, schema = table.space, table.key
        addresses: list[tuple[int, bytes, bytes]] = []
        for key in asked:
            partition, sort = keys.address_of_key(schema, key)
            addresses.append((space, partition, sort))
        stored = reader.get_many(addresses)
        kept, units, used = _within(budget, stored, consistent=table_request.get("ConsistentRead") is True)
        budget -= used
        responses[given] = _shown(stored[:kept], project)
        if kept < len(stored) or skipped:
            unprocessed[given] = {**table_request, "Keys": [*asked[kept:], *skipped]}
        if mode is not None:
            consumed = capacity.Consumed(given, writes=False)
            consumed.add(units)
            bill.append(consumed)
    answer: Answer = {"Responses": responses, "UnprocessedKeys": unprocessed}
    if mode:
        answer["ConsumedCapacity"] = capacity.wires(tuple(bill), mode)
    return answer, tuple(bill)


def _check_one_style(wanted: dict[str, Request]) -> None:
    """Refuse legacy parameters beside expressions: the rule applies to the whole request, not to each
    table."""
    together = {
        name: value
        for table_request in wanted.values()
        for name, value in table_request.items()
        if value is not None
    }
    parameters.check_styles(together, ("ProjectionExpression",), ("AttributesToGet",))


def _prepare_table(table_request: Request) -> Projection | None:
    parameters.check_styles(table_request, ("ProjectionExpression",), ("AttributesToGet",))
    for key in table_request["Keys"]:
        admit_item(key)
    subs = parameters.names_only(table_request)
    project = parameters.projection(table_request, subs)
    # [report] dynalite's recordings: the keys are compared after the projection was checked
    _check_distinct(table_request["Keys"])
    subs.check_all_used()
    return project


def _check_distinct(keys: list[Item]) -> None:
    """Refuse a repeated key. Admitted values are in normal form, so equal keys have equal JSON."""
    distinct = {_dumps(key, None, _SORTED) for key in keys}
    if len(distinct) < len(keys):
        raise ValidationException(DUPLICATE_KEYS)


def _within(budget: int, records_: list[bytes | None], *, consistent: bool) -> tuple[int, float, int]:
    """How many of the records fit into `budget` bytes, and their units and bytes."""
    units, used = 0.0, 0
    for position, record in enumerate(records_):
        size = records.size_of(record) if record is not None else 0
        if used + size > budget:
            return position, units, used
        used += size
        # Batch reads round up for each item.
        units += capacity.read_units(size, consistent=consistent)
    return len(records_), units, used


def _shown(records_: list[bytes | None], project: Projection | None) -> list[Any]:
    if project is None:
        return [records.fragment_of(record) for record in records_ if record is not None]
    return [records.shown(record, project.apply) for record in records_ if record is not None]
