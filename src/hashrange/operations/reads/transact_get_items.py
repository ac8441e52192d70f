"""TransactGetItems: up to 100 items by their keys, all from one moment.

Source: API reference, TransactGetItems.
"""

from __future__ import annotations

from typing import Any

from hashrange.errors import TransactionCanceledException, TransactionConflictException, ValidationException
from hashrange.expressions import Projection
from hashrange.limits import TRANSACT_BYTES_MAX
from hashrange.operations import parameters
from hashrange.operations.context import Answer, Billed, BilledReadBody, Context, Request, table_name
from hashrange.shapes.items import TRANSACT_GET
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.items import capacity, keys, records
from hashrange.tables.writes import holds
from hashrange.values import admit_item

_REPEATED = "Transaction request cannot include multiple operations on one item"
_TOO_LARGE = "Aggregated item size in the transaction has exceeded the maximum allowed size"


def prepare(request: Request, context: Context) -> BilledReadBody:
    """The body of a TransactGetItems."""
    gets: list[Request] = [
        parameters.known(member["Get"], TRANSACT_GET) for member in request["TransactItems"]
    ]
    projections = [_prepare_get(get) for get in gets]
    mode = capacity.wanted(request, billed=context.billed)
    now, scope = context.now, context.scope
    hold_seconds = context.settings.transaction_seconds

    def body(reader: Reader) -> Billed:
        tables = [catalog.open_active(reader, table_name(get["TableName"], scope), scope) for get in gets]
        for table, project in zip(tables, projections, strict=True):
            if project is not None:
                keys.check_scalars(table, project.nested)
        stored = reader.get_many(_addresses(reader, tables, gets, now, hold_seconds))
        if sum(records.size_of(record) for record in stored if record is not None) > TRANSACT_BYTES_MAX:
            raise ValidationException(_TOO_LARGE)
        answer: Answer = {
            "Responses": [
                _shown(record, project) for record, project in zip(stored, projections, strict=True)
            ]
        }
        if mode is None:
            return answer, capacity.NO_BILL
        sizes = [records.size_of(record) if record is not None else 0 for record in stored]
        bill = capacity.transaction_reads([get["TableName"] for get in gets], sizes)
        if mode:
            answer["ConsumedCapacity"] = capacity.wires(bill, mode, splits=True)
        return answer, bill

    return body


def _prepare_get(get: Request) -> Projection | None:
    admit_item(get["Key"])
    if get.get("ProjectionExpression") is None:
        get = parameters.without_placeholders(get)
    subs = parameters.names_only(get)
    project = parameters.projection(get, subs)
    subs.check_all_used()
    return project


def _addresses(
    reader: Reader, tables: list[Table], gets: list[Request], now: float, hold_seconds: float
) -> list[tuple[int, bytes, bytes]]:
    addresses: list[tuple[int, bytes, bytes]] = []
    reasons: list[dict[str, Any]] = []
    for table, get in zip(tables, gets, strict=True):
        try:
            address = (table.space, *keys.address_of_key(table.key, get["Key"]))
            if hold_seconds > 0:
                holds.check(reader, *address, now, hold_seconds)
            addresses.append(address)
            reasons.append({"Code": "None"})
        except TransactionConflictException as error:
            reasons.append({"Code": "TransactionConflict", "Message": error.message})
        except ValidationException as error:
            reasons.append({"Code": "ValidationError", "Message": error.message})
    if len(set(addresses)) != len(addresses):
        raise ValidationException(_REPEATED)
    if len(addresses) != len(gets):
        raise TransactionCanceledException.of(reasons)
    return addresses


def _shown(record: bytes | None, project: Projection | None) -> dict[str, Any]:
    if record is None:
        return {}
    if project is None:
        return {"Item": records.fragment_of(record)}
    shown = records.shown(record, project.apply)
    # Unlike in GetItem, an item is not shown if the projection leaves nothing of it. [report] extenddb issue
    # 74
    return {"Item": shown} if shown else {}
