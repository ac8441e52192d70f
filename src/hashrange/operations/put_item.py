"""PutItem: create an item or replace it whole.

Source: API reference, PutItem.
"""

from __future__ import annotations

from hashrange.errors import ValidationException
from hashrange.operations import single_write
from hashrange.operations.context import Context, Request, WriteBody


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of a PutItem."""
    wanted = request.get("ReturnValues") or "NONE"
    if wanted not in ("NONE", "ALL_OLD"):
        raise ValidationException("ReturnValues can only be ALL_OLD or NONE")
    attributes = single_write.old_attributes if wanted == "ALL_OLD" else single_write.no_attributes
    return single_write.run(request, context, single_write.put(request), attributes)
