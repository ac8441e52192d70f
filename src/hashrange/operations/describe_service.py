"""DescribeEndpoints and DescribeLimits.

Source: API reference, DescribeEndpoints, DescribeLimits; the limits are AWS's defaults in most regions.
"""

from __future__ import annotations

from hashrange.operations.context import Answer, Context, ReadBody, Request
from hashrange.storage.api import Reader

_CACHE_MINUTES = 1_440
_LIMITS = {
    "AccountMaxReadCapacityUnits": 80_000,
    "AccountMaxWriteCapacityUnits": 80_000,
    "TableMaxReadCapacityUnits": 40_000,
    "TableMaxWriteCapacityUnits": 40_000,
}


def prepare_endpoints(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeEndpoints."""
    address = f"dynamodb.{context.caller.region}.amazonaws.com"

    def body(reader: Reader) -> Answer:
        return {"Endpoints": [{"Address": address, "CachePeriodInMinutes": _CACHE_MINUTES}]}

    return body


def prepare_limits(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeLimits."""

    def body(reader: Reader) -> Answer:
        return dict(_LIMITS)

    return body
