"""ExecuteStatement: one PartiQL statement.

Source: API reference, ExecuteStatement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hashrange import partiql
from hashrange.errors import ConditionalCheckFailedException, DuplicateItemException, ValidationException
from hashrange.operations.context import Answer, Billed, BilledReadBody, BilledWriteBody, Context, Request
from hashrange.partiql import changes, reads
from hashrange.partiql.prepared import Bound
from hashrange.partiql.statements import Exists
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.items import capacity
from hashrange.tables.items.item_change import Occasion
from hashrange.tables.reads.ranges import Begun

ONLY_IN_TRANSACTIONS = "EXISTS can only be used in ExecuteTransaction write requests."


def reads_only(request: Request) -> bool:
    """Whether the statement is a SELECT."""
    return partiql.reads_only(request["Statement"])


def prepare(request: Request, context: Context) -> Callable[[Any], Billed]:
    """The body of an ExecuteStatement."""
    bound = partiql.bind(partiql.prepare(request["Statement"]), request.get("Parameters"))
    if isinstance(bound.prepared.statement, Exists):
        raise ValidationException(ONLY_IN_TRANSACTIONS)
    mode = capacity.wanted(request, billed=context.billed)
    if bound.prepared.reads:
        return _read(request, context, bound, mode)
    return _write(request, context, bound, mode)


def _read(request: Request, context: Context, bound: Bound, mode: str | None) -> BilledReadBody:
    name = bound.prepared.statement.table
    consistent = request.get("ConsistentRead") is True
    limit, token = request.get("Limit"), request.get("NextToken")
    begun = Begun()

    def body(reader: Reader) -> Billed:
        table = catalog.open_active(reader, name, context.scope)
        page = reads.select(reader, table, bound, begun, consistent=consistent, limit=limit, token=token)
        answer: Answer = {"Items": page.items}
        if page.next_token is not None:
            answer["NextToken"] = page.next_token
        if page.last_key is not None:
            answer["LastEvaluatedKey"] = page.last_key
        if mode:
            answer["ConsumedCapacity"] = page.consumed.wire(mode)
        return answer, (page.consumed,)

    return body


def _write(
    request: Request, context: Context, bound: Bound, mode: str | None
) -> BilledWriteBody:
    name = bound.prepared.statement.table
    return_item = request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
    occasion = Occasion(context.now, context.settings, context.caller.access_key)

    def body(txn: Transaction) -> Billed:
        table = catalog.open_active(txn, name, context.scope)
        write = changes.write_of(table, bound, return_item_on_failure=return_item)
        changes.check_paths(table, bound, write)
        try:
            outcome = changes.perform(txn, table, bound, write, occasion)
        except (ConditionalCheckFailedException, DuplicateItemException) as error:
            error.bill = capacity.refused(name, error.units)
            raise
        item = changes.returned(bound, write, outcome)
        answer: Answer = {"Items": [] if item is None else [item]}
        if mode is None:
            return answer, capacity.NO_BILL
        consumed = capacity.Consumed(name, writes=True)
        consumed.add_write(table, outcome.units)
        if mode:
            answer["ConsumedCapacity"] = consumed.wire(mode)
        return answer, (consumed,)

    return body
