"""ExecuteTransaction: up to 100 PartiQL statements, all reads or all writes, all or nothing.

EXISTS is the condition check of such a transaction and counts as a write. Each read names one item by its
whole key; all reads see one moment.

Source: API reference, ExecuteTransaction; Developer Guide, "Performing transactions with PartiQL".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hashrange import partiql
from hashrange.errors import TransactionCanceledException, TransactionConflictException, ValidationException
from hashrange.limits import TRANSACT_BYTES_MAX
from hashrange.operations.context import Answer, Billed, BilledReadBody, BilledWriteBody, Context, Request
from hashrange.operations.writes.transact_write_items import (
    TOO_LARGE,
    Claim,
    bill_of,
    check_distinct,
    payload_of,
    run_all,
)
from hashrange.partiql import access, changes, reads
from hashrange.partiql.prepared import Bound, Prepared
from hashrange.partiql.statements import DeleteFrom, Exists, Update
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.items import capacity, keys, records
from hashrange.tables.items.item_change import ItemChange, Occasion
from hashrange.tables.writes import holds, read_modify_write

_MIXED = "ExecuteTransaction API does not support both read and write operations in the same request."
_WHOLE_KEY = "Select statements within ExecuteTransaction must specify the primary key in the where clause."
_NO_RETURNING = "RETURNING clause is not supported in ExecuteTransaction."
_NO_INDEX = "Reads on indices are not supported within transactions."
_EXISTS = "EXISTS() must contain a single item read with additional condition"

Address = tuple[int, bytes, bytes]


def reads_only(request: Request) -> bool:
    """Whether no statement writes."""
    return all(partiql.reads_only(member["Statement"]) for member in request["TransactStatements"])


def prepare(request: Request, context: Context) -> Callable[[Any], Billed]:
    """The body of an ExecuteTransaction."""
    statements: list[Request] = request["TransactStatements"]
    # The tokens of this operation and of TransactWriteItems are separate [report, dynoxide pull request 125].
    token = request.get("ClientRequestToken")
    # Computed before the parameters are normalised, so that a repeated request has equal bytes.
    payload = payload_of(statements) if token is not None else b""
    prepared: list[Prepared] = []
    for number, member in enumerate(statements):
        with _Numbered(number):
            prepared.append(partiql.prepare(member["Statement"]))
    batch: list[Bound] = []
    for number, (member, statement) in enumerate(zip(statements, prepared, strict=True)):
        # An error of a parameter by itself does not name this statement ([report] paritysuite).
        partiql.admit(member.get("Parameters"))
        with _Numbered(number):
            batch.append(partiql.bind(statement, member.get("Parameters")))
            _check(batch[-1])
    if len({bound.prepared.reads for bound in batch}) > 1:
        raise ValidationException(_MIXED)
    mode = capacity.wanted(request, billed=context.billed)
    occasion = Occasion(context.now, context.settings, context.caller.access_key)
    if batch[0].prepared.reads:
        return _read_body(batch, context.scope, occasion, mode)
    owner = context.scope or context.caller.account_id
    claim = None if token is None else Claim(owner, f"PartiQL {token}", payload)
    shown = [member.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" for member in statements]
    return _write_body(batch, context.scope, shown, claim, occasion, mode)


class _Numbered:
    """Adds the number of the statement to a ValidationException."""

    __slots__ = ("_number",)

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ValidationException):
            raise ValidationException(
                f"Validation failed in TransactStatements[{self._number}]: {error.message}"
            ) from None


def _check(bound: Bound) -> None:
    """Refuse a statement that a transaction may not contain, by the rules that need no table."""
    statement = bound.prepared.statement
    if isinstance(statement, Update | DeleteFrom) and statement.returning is not None:
        raise ValidationException(_NO_RETURNING)
    select = statement.select if isinstance(statement, Exists) else statement
    if getattr(select, "index", None) is not None:
        raise ValidationException(_NO_INDEX)


def _read_body(
    batch: list[Bound], scope: str, occasion: Occasion, mode: str | None
) -> BilledReadBody:
    names = [bound.prepared.statement.table for bound in batch]

    def body(reader: Reader) -> Billed:
        tables = [catalog.open_active(reader, name, scope) for name in names]
        addresses = _addresses(tables, batch)
        check_distinct(addresses)
        _check_holds(reader, addresses, occasion)
        stored = reader.get_many(addresses)
        if sum(records.size_of(record) for record in stored if record is not None) > TRANSACT_BYTES_MAX:
            raise ValidationException(TOO_LARGE)
        answer: Answer = {
            "Responses": [
                {} if record is None else {"Item": reads.shown_single(record, bound.prepared.projection)}
                for record, bound in zip(stored, batch, strict=True)
            ]
        }
        if mode is None:
            return answer, capacity.NO_BILL
        sizes = [records.size_of(record) if record is not None else 0 for record in stored]
        bill = capacity.transaction_reads(names, sizes)
        if mode:
            answer["ConsumedCapacity"] = capacity.wires(bill, mode, splits=True)
        return answer, bill

    return body


def _addresses(tables: list[Table], batch: list[Bound]) -> list[Address]:
    """The addresses of the items. A key of a wrong type cancels the transaction, as in a transaction of
    writes."""
    addresses: list[Address] = []
    reasons: list[Answer] = [{"Code": "None"} for _ in batch]
    for number, (table, bound) in enumerate(zip(tables, batch, strict=True)):
        try:
            key = reads.single_key(table, bound)
        except ValidationException as error:
            reasons[number] = {"Code": "ValidationError", "Message": error.message}
            continue
        if key is None:
            with _Numbered(number):
                raise ValidationException(_WHOLE_KEY)
        addresses.append((table.space, *keys.address_of_key(table.key, key)))
    _check_reasons(reasons)
    return addresses


def _check_reasons(reasons: list[Answer]) -> None:
    if any(reason["Code"] != "None" for reason in reasons):
        raise TransactionCanceledException.of(reasons)


def _check_holds(reader: Reader, addresses: list[Address], occasion: Occasion) -> None:
    """Raise `TransactionCanceledException` if another transaction is using any of the items."""
    if occasion.settings.transaction_seconds <= 0:
        return
    reasons: list[Answer] = []
    for address in addresses:
        try:
            holds.check(reader, *address, occasion.now, occasion.settings.transaction_seconds)
            reasons.append({"Code": "None"})
        except TransactionConflictException as error:
            reasons.append({"Code": "TransactionConflict", "Message": error.message})
    _check_reasons(reasons)


def _write_body(
    batch: list[Bound],
    scope: str,
    shown: list[bool],
    claim: Claim | None,
    occasion: Occasion,
    mode: str | None,
) -> BilledWriteBody:
    names = [bound.prepared.statement.table for bound in batch]

    def body(txn: Transaction) -> Billed:
        tables = [catalog.open_active(txn, name, scope) for name in names]
        if claim is not None and not claim.make(txn, occasion):
            repeated, bill = claim.repeat(txn, names, mode)
            return {"Responses": []} | repeated, bill
        attempts: list[Callable[[], ItemChange]] = []
        addresses: list[Address] = []
        for number, (table, bound, show) in enumerate(zip(tables, batch, shown, strict=True)):
            changes.check_paths(table, bound)
            if isinstance(bound.prepared.statement, Exists):
                with _Numbered(number):
                    _check_exists(table, bound)
            attempts.append(_attempt(txn, table, bound, occasion, addresses, show_item=show))
        check_distinct(addresses)
        outcomes = run_all(txn, names, attempts, claim, occasion)
        answer: Answer = {"Responses": []}
        if mode is None:
            return answer, capacity.NO_BILL
        bill = bill_of(names, outcomes)
        if mode:
            answer["ConsumedCapacity"] = capacity.wires(bill, mode, splits=True)
        return answer, bill

    return body


def _check_exists(table: Table, bound: Bound) -> None:
    plan = access.plan(bound.prepared, table.key)
    if plan.key is None or plan.rest is None:
        raise ValidationException(_EXISTS)


def _attempt(
    txn: Transaction,
    table: Table,
    bound: Bound,
    occasion: Occasion,
    addresses: list[Address],
    *,
    show_item: bool,
) -> Callable[[], ItemChange]:
    """The write of a statement, as a member of the transaction. If it does not fit the table, running it
    fails."""
    try:
        write = changes.write_of(table, bound, return_item_on_failure=show_item)
        addresses.append((table.space, *read_modify_write.address_of(table, write)))
    except ValidationException as error:
        misfit = error

        def fail() -> ItemChange:
            raise misfit

        return fail
    return lambda: changes.perform(txn, table, bound, write, occasion)
