"""BatchWriteItem: up to 25 puts and deletes without conditions, in one or more tables.

Here a batch is atomic. A client must not rely on this, because DynamoDB does not promise it.

Source: API reference, BatchWriteItem.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hashrange import pace
from hashrange.errors import DUPLICATE_KEYS, ITEM_TOO_LARGE, TransactionConflictException, ValidationException
from hashrange.limits import BATCH_WRITE_ITEMS_MAX, ITEM_BYTES_MAX
from hashrange.operations.context import Answer, Billed, BilledWriteBody, Context, Request, table_name
from hashrange.operations.writes import single_write
from hashrange.storage.api import Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.items import capacity, keys, records
from hashrange.tables.items.item_change import Occasion
from hashrange.tables.writes import read_modify_write
from hashrange.tables.writes.read_modify_write import Write
from hashrange.values import admit_item

_ONE_OF = (
    "Supplied AttributeValue has more than one datatypes set, "
    "must contain exactly one of the supported datatypes"
)


def prepare(request: Request, context: Context) -> BilledWriteBody:
    """The body of a BatchWriteItem."""
    wanted: dict[str, list[Request]] = request["RequestItems"]
    if sum(map(len, wanted.values())) > BATCH_WRITE_ITEMS_MAX:
        raise ValidationException("Too many items requested for the BatchWriteItem call")
    scope = context.scope
    batches = {
        given: [_write(table_name(given, scope), request) for request in requests]
        for given, requests in wanted.items()
    }
    mode = capacity.wanted(request, billed=context.billed)
    metrics = request.get("ReturnItemCollectionMetrics") == "SIZE"
    occasion = Occasion(context.now, context.settings, context.caller.access_key)
    return partial(_run, scope, wanted, batches, mode, metrics, occasion, context.left)


def _run(
    scope: str,
    wanted: dict[str, list[Request]],
    batches: dict[str, list[Write]],
    mode: str | None,
    metrics: bool,
    occasion: Occasion,
    left: frozenset[int],
    txn: Transaction,
) -> Billed:
    tables = {given: catalog.open_active(txn, table_name(given, scope), scope) for given in batches}
    addresses = _addresses(tables, batches)
    bill: list[capacity.Consumed] = []
    collections: dict[str, list[Any]] = {}
    unprocessed: dict[str, list[Request]] = {}
    member = -1
    for given, batch in batches.items():
        table, total = tables[given], capacity.Consumed(given, writes=True)
        for write, request in zip(batch, wanted[given], strict=True):
            member += 1
            if member in left:
                unprocessed.setdefault(given, []).append(request)
                continue
            pace.point()
            try:
                outcome = read_modify_write.perform(txn, table, write, occasion, addresses[member])
            except TransactionConflictException:  # raised before anything was written
                unprocessed.setdefault(given, []).append(request)
                continue
            total.add_write(table, outcome.units)
            if metrics and table.has_local_indexes:
                collections.setdefault(given, []).append(single_write.collection_metrics(txn, write, outcome))
        bill.append(total)
    answer: Answer = {"UnprocessedItems": unprocessed}
    if collections:
        answer["ItemCollectionMetrics"] = collections
    if mode:
        answer["ConsumedCapacity"] = capacity.wires(tuple(bill), mode)
    return answer, tuple(bill)


def _write(name: str, request: Request) -> Write:
    pace.point()
    put = request.get("PutRequest")
    if (put is None) == (request.get("DeleteRequest") is None):
        raise ValidationException(_ONE_OF)
    if put is not None:
        size = admit_item(put["Item"])
        if size > ITEM_BYTES_MAX:
            raise ValidationException(ITEM_TOO_LARGE)
        return Write("put", name, put["Item"], records.pack(put["Item"], size))
    key = request["DeleteRequest"]["Key"]
    admit_item(key)
    return Write("delete", name, key)


def _addresses(tables: dict[str, Table], batches: dict[str, list[Write]]) -> list[tuple[bytes, bytes]]:
    """The addresses of all items. Refuses two writes of the same item, even if the request names the table in
    two ways."""
    addresses: list[tuple[bytes, bytes]] = []
    distinct: set[tuple[int, bytes, bytes]] = set()
    for given, batch in batches.items():
        table = tables[given]
        space, schema, names = table.space, table.key, table.key_names
        for write in batch:
            key = write.key
            if write.action == "put":
                # Unlike in PutItem, the errors of a put's key are those of a `Key`.
                key = {name: key[name] for name in names if name in key}
            partition, sort = keys.address_of_key(schema, key)
            addresses.append((partition, sort))
            distinct.add((space, partition, sort))
            if len(distinct) < len(addresses):
                raise ValidationException(DUPLICATE_KEYS)
    return addresses
