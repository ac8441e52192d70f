"""PutItem: create an item, or replace the whole item.

Source: API reference, PutItem.
"""

from __future__ import annotations

from hashrange.operations.context import BilledWriteBody, Context, Request
from hashrange.operations.writes import single_write


def prepare(request: Request, context: Context) -> BilledWriteBody:
    """The body of a PutItem."""
    write = single_write.put(request, context.scope)
    return single_write.run(request, context, write, single_write.whole_attributes(request))
