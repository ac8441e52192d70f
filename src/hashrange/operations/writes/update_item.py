"""UpdateItem: change attributes of an item, or create it.

Source: API reference, UpdateItem.
"""

from __future__ import annotations

from collections.abc import Callable

from hashrange.operations.context import BilledWriteBody, Context, Request
from hashrange.operations.writes import single_write
from hashrange.tables.items import records
from hashrange.tables.items.item_change import ItemChange
from hashrange.tables.writes.read_modify_write import Update


def prepare(request: Request, context: Context) -> BilledWriteBody:
    """The body of an UpdateItem."""
    write = single_write.update(request, context.scope, single_write.level_of("UpdateItem", context))
    return single_write.run(request, context, write, _attributes(request, write.update))


def _attributes(request: Request, update: Update | None) -> Callable[[ItemChange], object | None]:
    wanted = request.get("ReturnValues") or "NONE"
    if wanted == "ALL_OLD":
        return single_write.old_attributes
    if wanted == "ALL_NEW":
        return _new_attributes
    if update is None or wanted == "NONE":
        return single_write.no_attributes
    if wanted == "UPDATED_OLD":
        return lambda outcome: update.changed_paths(outcome.old_item or {}) or None
    return lambda outcome: update.changed_paths(outcome.new_item or {}) or None


def _new_attributes(outcome: ItemChange) -> object | None:
    return records.fragment_of(outcome.new) if outcome.new is not None else None
