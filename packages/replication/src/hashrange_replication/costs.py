"""What a copy costs in a month on S3: requests, and bytes.

The prices are those of S3 Standard in us-east-1, from AWS's page of S3's prices; other stores differ. An
estimate knows what is in the bucket, and how often segments were shipped lately.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from hashrange_replication.format.segments import SegmentHeader
from hashrange_replication.lease import RENEWALS_PER_TTL

STORAGE_GB_MONTH: Final = Decimal("0.023")
"""Dollars for a GB (2^30 bytes) in a month, below 50 TB."""
WRITES_1000: Final = Decimal("0.005")
"""Dollars for a thousand PUT and LIST requests; DELETE is free."""

_MONTH_SECONDS: Final = 730 * 3600
_GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Estimate:
    """The costs of a month: bytes that are stored, requests that write, and dollars for both."""

    bytes: int
    writes: int
    storage: Decimal
    requests: Decimal

    @property
    def dollars(self) -> Decimal:
        return self.storage + self.requests


def estimate(
    stored_bytes: int, ttl_seconds: float, first: SegmentHeader | None, last: SegmentHeader | None
) -> Estimate:
    """The costs if the rest of the month is as the time between two segments was; without two, of a server to
    which nobody writes."""
    writes = _MONTH_SECONDS / (ttl_seconds / RENEWALS_PER_TTL)
    if first is not None and last is not None and last.last_moment > first.last_moment:
        seconds = (last.last_moment - first.last_moment) / 1_000
        writes += _MONTH_SECONDS * (last.index - first.index) / seconds
    number = round(writes)
    return Estimate(
        stored_bytes,
        number,
        (STORAGE_GB_MONTH * stored_bytes / _GIB).quantize(Decimal("0.01")),
        (WRITES_1000 * number / 1_000).quantize(Decimal("0.01")),
    )
