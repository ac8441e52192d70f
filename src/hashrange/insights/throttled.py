"""Which members of a request were throttled: all, some of a transaction, or those that a batch left."""

from __future__ import annotations

from typing import Final

from hashrange.errors import (
    ProvisionedThroughputExceededException,
    RequestLimitExceeded,
    ThrottlingException,
    TransactionCanceledException,
)
from hashrange.observing.observer import ObservedRequest
from hashrange.operations.targets import Target

_THROTTLING: Final = (
    ProvisionedThroughputExceededException,
    RequestLimitExceeded,
    ThrottlingException,
)
_THROTTLED_REASONS: Final = frozenset(("ThrottlingError", "ProvisionedThroughputExceeded"))


def throttled(seen: ObservedRequest, named: tuple[Target, ...]) -> frozenset[int]:
    """The members of a request that were throttled."""
    error = seen.error
    if isinstance(error, _THROTTLING):
        return frozenset(target.member for target in named)
    if isinstance(error, TransactionCanceledException):
        reasons = error.members.get("CancellationReasons") or ()
        return frozenset(
            member for member, reason in enumerate(reasons) if reason.get("Code") in _THROTTLED_REASONS
        )
    return seen.left
