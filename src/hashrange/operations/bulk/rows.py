"""The write of a row of a bulk operation.

A row has an Item, and may have a condition, in the same members as PutItem [assumed].
"""

from __future__ import annotations

from typing import Final

from hashrange import shapes
from hashrange.errors import RequestViolation, SerializationException, ValidationException
from hashrange.operations.context import Request
from hashrange.operations.writes import single_write
from hashrange.tables.writes.read_modify_write import Write

_MEMBERS: Final[tuple[str, ...]] = (
    "TableName",
    "Item",
    "ConditionExpression",
    "ExpressionAttributeNames",
    "ExpressionAttributeValues",
)


def put(row: Request) -> Write:
    """The write of a row. Raises the `ServiceError` that a PutItem with these members would."""
    request = {name: row[name] for name in _MEMBERS if name in row}
    try:
        shapes.check("PutItem", request)
        return single_write.put(request, "")
    except RequestViolation as error:
        raise shapes.spoken("PutItem", request, error) from None
    except (SerializationException, ValidationException):
        shapes.check_types("PutItem", request)
        raise
