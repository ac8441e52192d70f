"""Which changes of an UpdateTable may share a request: hardly any.

Encryption, table class, deletion protection and warm throughput each stand alone; ceilings of on-demand
requests go with the billing mode only; a stream and an index go with neither each other nor new units.

Source: what ack-api-quirks measured in October 2026 (its DDB-TABLE-174, 359, 433, 456).
"""

from __future__ import annotations

from typing import Final

from hashrange.errors import INVALID, ValidationException
from hashrange.operations.context import Request
from hashrange.operations.tables import index_changes, throughput

# In the order in which they are named where there are several.
_ALONE: Final = {
    "SSESpecification": "Server-Side Encryption modification",
    "TableClass": "TableClass modification",
    "DeletionProtectionEnabled": "DeletionProtection modification",
}
CHANGES: Final = (
    *_ALONE,
    "WarmThroughput",
    "OnDemandThroughput",
    "StreamSpecification",
    "ProvisionedThroughput",
    "BillingMode",
    "GlobalSecondaryIndexUpdates",
    "GlobalTableSettingsReplicationMode",
)
"""The members of an UpdateTable that ask for a change, but for those about replicas."""


def check(request: Request) -> None:
    """Raise `ValidationException` for changes that may not share a request."""
    if request.get("GlobalSecondaryIndexUpdates") == []:
        # Nobody gets here with this alone: it is no change.
        raise ValidationException(f"{INVALID}List of GlobalSecondaryIndexUpdates is empty")
    changes = {member for member in CHANGES if request.get(member) is not None}
    # One that names nothing is ignored beside others.
    if throughput.warm(request.get("WarmThroughput")) is None:
        changes.discard("WarmThroughput")
    if throughput.ceilings(request.get("OnDemandThroughput")) is None:
        changes.discard("OnDemandThroughput")
    if len(changes) < 2:
        return
    for member, name in _ALONE.items():
        if member in changes:
            raise ValidationException(f"{INVALID}{name} must be the only operation in the request")
    indexes = index_changes.slow(request.get("GlobalSecondaryIndexUpdates"))
    for refused, problem in (
        (
            bool(changes - {"OnDemandThroughput", "BillingMode"}) and "OnDemandThroughput" in changes,
            "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request",
        ),
        (
            indexes and "WarmThroughput" in changes,
            "Create global secondary index cannot be specified when updating WarmThroughput",
        ),
        ("WarmThroughput" in changes, "WarmThroughput must be the only operation in the request"),
        (
            "StreamSpecification" in changes and "ProvisionedThroughput" in changes,
            "You cannot modify stream status while updating table IOPS",
        ),
        (
            indexes and "ProvisionedThroughput" in changes,
            "You cannot create or delete index while updating table IOPS",
        ),
        (
            indexes and "StreamSpecification" in changes,
            "You cannot create or delete index while changing stream status",
        ),
    ):
        if refused:
            raise ValidationException(f"{INVALID}{problem}")
