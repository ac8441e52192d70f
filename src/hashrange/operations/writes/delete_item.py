"""DeleteItem: delete an item by its key. It succeeds if the item does not exist.

Source: API reference, DeleteItem.
"""

from __future__ import annotations

from hashrange.operations.context import BilledWriteBody, Context, Request
from hashrange.operations.writes import single_write


def prepare(request: Request, context: Context) -> BilledWriteBody:
    """The body of a DeleteItem."""
    write = single_write.delete(request, context.scope)
    return single_write.run(request, context, write, single_write.whole_attributes(request))
