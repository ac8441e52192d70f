"""BatchExecuteStatement: up to 25 PartiQL statements, all reads or all writes, each with its own answer.

A failed statement does not affect the others: the answer has its error in its place. Each read names one
item by its whole key.

Source: API reference, BatchExecuteStatement and BatchStatementError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hashrange import pace, partiql
from hashrange.errors import DUPLICATE_KEYS, ServiceError, ValidationException
from hashrange.operations.context import Answer, Billed, Context, Request
from hashrange.operations.statements.execute_statement import ONLY_IN_TRANSACTIONS
from hashrange.partiql import changes, reads
from hashrange.partiql.prepared import Bound
from hashrange.partiql.statements import Exists
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.items import capacity, keys, records
from hashrange.tables.items.item_change import Occasion
from hashrange.tables.writes import read_modify_write
from hashrange.tables.writes.read_modify_write import Write

# The message of a transaction with the name of the batch [assumed]. DynamoDB Local says "Only single item
# select is supported" here.
_WHOLE_KEY = (
    "Select statements within BatchExecuteStatement must specify the primary key in the where clause."
)
_MIXED = "Read and write requests together in the same batch is not supported."
_CODES = {
    "ConditionalCheckFailedException": "ConditionalCheckFailed",
    "DuplicateItemException": "DuplicateItem",
    "InternalServerError": "InternalServerError",
    "ItemCollectionSizeLimitExceededException": "ItemCollectionSizeLimitExceeded",
    "ProvisionedThroughputExceededException": "ProvisionedThroughputExceeded",
    "RequestLimitExceeded": "RequestLimitExceeded",
    "ResourceNotFoundException": "ResourceNotFound",
    "ThrottlingException": "ThrottlingError",
    "TransactionConflictException": "TransactionConflict",
}


class _Member(NamedTuple):
    """A statement of the batch, or its error if its preparation failed."""

    request: Request
    bound: Bound | None
    error: ServiceError | None


class _Refused(NamedTuple):
    """A write that failed before it was performed. The answer names the table if the key fits it."""

    error: ServiceError
    table_name: str | None


class _Read(NamedTuple):
    """A read that is ready to be performed."""

    bound: Bound
    address: tuple[int, bytes, bytes]
    consistent: bool


class _Ready(NamedTuple):
    """A write that is ready to be performed."""

    table: Table
    bound: Bound
    write: Write
    address: tuple[int, bytes, bytes]


class _Totals:
    """The capacity that the batch consumes.

    `shown` is in the answer: the members that succeeded. The answer adds the units of `refused`, the members
    whose condition failed, to the total of a table that it shows, and to no part of the total ([report]
    dynoxide's captures of August 2026 in eu-west-2; [assumed] that a table without a success is not shown).
    """

    __slots__ = ("refused", "shown")

    def __init__(self, *, writes: bool) -> None:
        self.shown = capacity.TableTotals(writes=writes)
        self.refused: capacity.Bill = capacity.NO_BILL

    def refused_units(self, table_name: str) -> float:
        """The units of the table's members whose condition failed."""
        return sum([refused.table for refused in self.refused if refused.table_name == table_name])


def reads_only(request: Request) -> bool:
    """Whether no statement writes; only the first word of each statement is examined."""
    return all(partiql.reads_only(member["Statement"]) for member in request["Statements"])


def prepare(request: Request, context: Context) -> Callable[[Any], Billed]:
    """The body of a BatchExecuteStatement."""
    members = [_member(member_request) for member_request in request["Statements"]]
    kinds = {member.bound.prepared.reads for member in members if member.bound is not None}
    if len(kinds) > 1:
        raise ValidationException(_MIXED)
    mode = capacity.wanted(request, billed=context.billed)
    occasion = Occasion(context.now, context.settings, context.caller.access_key)
    reads = kinds == {True}
    run = _reads if reads else _writes

    def body(txn: Transaction) -> Billed:
        totals = _Totals(writes=not reads)
        answer: Answer = {"Responses": run(txn, members, occasion, totals, context.scope)}
        bill = totals.shown.bill()
        if mode:
            answer["ConsumedCapacity"] = [
                consumed.wire(mode, refused=totals.refused_units(consumed.table_name)) for consumed in bill
            ]
        return answer, bill + totals.refused

    return body


def _member(request: Request) -> _Member:
    try:
        bound = partiql.bind(partiql.prepare(request["Statement"]), request.get("Parameters"))
        if isinstance(bound.prepared.statement, Exists):
            raise ValidationException(ONLY_IN_TRANSACTIONS)
    except ValidationException as error:
        return _Member(request, None, error)
    return _Member(request, bound, None)


def _failure(error: ServiceError, table_name: str | None = None) -> Answer:
    content: Answer = {"Code": _CODES.get(error.code, "ValidationError"), "Message": error.message}
    answer: Answer = {"Error": content | error.members}
    return answer if table_name is None else answer | {"TableName": table_name}


def _reads(
    reader: Reader, members: Sequence[_Member], occasion: Occasion, totals: _Totals, scope: str
) -> list[Answer]:
    prepared: list[_Read | ServiceError] = [_prepare_read(reader, member, scope) for member in members]
    addresses = [read.address for read in prepared if isinstance(read, _Read)]
    if len(set(addresses)) < len(addresses):
        raise ValidationException(DUPLICATE_KEYS)
    stored = iter(reader.get_many(addresses))
    answers: list[Answer] = []
    for read in prepared:
        if not isinstance(read, _Read):
            answers.append(_failure(read))
            continue
        record = next(stored)
        name = read.bound.prepared.statement.table
        size = records.size_of(record) if record is not None else 0
        totals.shown.of(name).add(capacity.read_units(size, consistent=read.consistent))
        answer: Answer = {"TableName": name}
        if record is not None:
            answer["Item"] = reads.shown_single(record, read.bound.prepared.projection)
        answers.append(answer)
    return answers


def _prepare_read(reader: Reader, member: _Member, scope: str) -> _Read | ServiceError:
    try:
        bound = _ready(member)
        table = catalog.open_active(reader, bound.prepared.statement.table, scope)
        return _Read(bound, _address(table, bound), member.request.get("ConsistentRead") is True)
    except ServiceError as error:
        return error


def _ready(member: _Member) -> Bound:
    if member.bound is None:
        assert member.error is not None
        raise member.error
    return member.bound


def _address(table: Table, bound: Bound) -> tuple[int, bytes, bytes]:
    key = reads.single_key(table, bound)
    if key is None:
        raise ValidationException(_WHOLE_KEY)
    return (table.space, *keys.address_of_key(table.key, key))


def _writes(
    txn: Transaction, members: Sequence[_Member], occasion: Occasion, totals: _Totals, scope: str
) -> list[Answer]:
    prepared = [_prepare_write(txn, member, scope) for member in members]
    addresses = [ready.address for ready in prepared if isinstance(ready, _Ready)]
    if len(set(addresses)) < len(addresses):
        raise ValidationException(DUPLICATE_KEYS)
    answers: list[Answer] = []
    for ready in prepared:
        if isinstance(ready, _Refused):
            answers.append(_failure(ready.error, ready.table_name))
            continue
        name = ready.write.table_name
        pace.point()
        try:
            outcome = changes.perform(txn, ready.table, ready.bound, ready.write, occasion)
        except ServiceError as error:
            answers.append(_failure(error, name))
            if error.units:
                totals.refused += capacity.refused(name, error.units)
            continue
        totals.shown.of(name).add_write(ready.table, outcome.units)
        item = changes.returned(ready.bound, ready.write, outcome)
        answers.append({"TableName": name} if item is None else {"TableName": name, "Item": item})
    return answers


def _prepare_write(txn: Transaction, member: _Member, scope: str) -> _Ready | _Refused:
    fitting: str | None = None
    try:
        bound = _ready(member)
        table = catalog.open_active(txn, bound.prepared.statement.table, scope)
        return_item = member.request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
        write = changes.write_of(table, bound, return_item_on_failure=return_item)
        fitting = write.table_name
        changes.check_paths(table, bound, write)
        return _Ready(table, bound, write, (table.space, *read_modify_write.address_of(table, write)))
    except ServiceError as error:
        return _Refused(error, fitting)
