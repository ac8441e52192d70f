"""GetItem: one item by its key.

Source: API reference, GetItem.
"""

from __future__ import annotations

from hashrange.operations import parameters
from hashrange.operations.context import Answer, Billed, BilledReadBody, Context, Request, table_name
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog
from hashrange.tables.items import capacity, keys, records
from hashrange.values import admit_item


def prepare(request: Request, context: Context) -> BilledReadBody:
    """The body of a GetItem."""
    is_bare = len(request) == 2  # only the table and the key
    if not is_bare:
        parameters.check_styles(request, ("ProjectionExpression",), ("AttributesToGet",))
    key = request["Key"]
    admit_item(key)
    project = None
    nested: frozenset[str] = frozenset()
    if not is_bare:
        subs = parameters.names_only(request)
        project = parameters.projection(request, subs)
        subs.check_all_used()
        nested = subs.nested
    scope = context.scope
    name = table_name(request["TableName"], scope)
    consistent = request.get("ConsistentRead") is True
    mode = capacity.wanted(request, billed=context.billed)

    def body(reader: Reader) -> Billed:
        table = catalog.open_active(reader, name, scope)
        keys.check_scalars(table, nested)
        partition, sort = keys.address_of_key(table.key, key)
        record = reader.get(table.space, partition, sort)
        answer: Answer = {}
        if record is not None:
            if project is None:
                answer["Item"] = records.fragment_of(record)
            else:
                answer["Item"] = records.shown(record, project.apply)
        if mode is None:
            return answer, capacity.NO_BILL
        consumed = capacity.Consumed(request["TableName"], writes=False)
        size = records.size_of(record) if record is not None else 0
        consumed.add(capacity.read_units(size, consistent=consistent))
        if mode:
            answer["ConsumedCapacity"] = consumed.wire(mode)
        return answer, (consumed,)

    return body
