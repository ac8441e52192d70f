"""Refuses an UpdateTable with changes that may not share a request.

Changes of encryption, table class, protections and warm throughput each need a separate request.
Ceilings of on-demand requests may be changed only together with the billing mode. A request may combine only
one of: a change of the stream, a change of indexes, new units.

Source: the measurements of ack-api-quirks of October 2026 (its DDB-TABLE-174, 359, 433, 456).
"""

from __future__ import annotations

from typing import Final

from hashrange.errors import INVALID, ValidationException
from hashrange.operations.context import Request
from hashrange.operations.tables import index_changes, throughput

# If a request has several of them, the error names the first in this order.
_ALONE: Final = {
    "SSESpecification": "Server-Side Encryption modification",
    "TableClass": "TableClass modification",
    "DeletionProtectionEnabled": "DeletionProtection modification",
    # [docs] for the rule, [assumed] for the words
    "DisassociationProtectionEnabled": "DisassociationProtection modification",
}
CHANGES: Final = (
    *_ALONE,
    "WarmThroughput",
    "OnDemandThroughput",
    "StreamSpecification",
    "ProvisionedThroughput",
    "BillingMode",
    "GlobalSecondaryIndexUpdates",
    "VectorIndexUpdates",
    "GlobalTableSettingsReplicationMode",
)
"""The members of an UpdateTable that change something, except those about replicas."""


def check(request: Request) -> None:
    """Raise `ValidationException` for changes that may not share a request."""
    if request.get("GlobalSecondaryIndexUpdates") == []:
        # A request with only this member was refused earlier, because it changes nothing.
        raise ValidationException(f"{INVALID}List of GlobalSecondaryIndexUpdates is empty")
    changes = {member for member in CHANGES if request.get(member) is not None}
    # A WarmThroughput without members is ignored beside other changes.
    if throughput.warm(request.get("WarmThroughput")) is None:
        changes.discard("WarmThroughput")
    if throughput.ceilings(request.get("OnDemandThroughput")) is None:
        changes.discard("OnDemandThroughput")
    if len(changes) < 2:
        return
    for member, name in _ALONE.items():
        if member in changes:
            raise ValidationException(f"{INVALID}{name} must be the only operation in the request")
    indexes = index_changes.slow(request.get("GlobalSecondaryIndexUpdates")) or (
        "VectorIndexUpdates" in changes
    )
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
            indexes and "ProvisionedThroughput" in changes and not _deletes_vectors_of_a_switch(request),
            "You cannot create or delete index while updating table IOPS",
        ),
        (
            indexes and "StreamSpecification" in changes,
            "You cannot create or delete index while changing stream status",
        ),
    ):
        if refused:
            raise ValidationException(f"{INVALID}{problem}")


def _deletes_vectors_of_a_switch(request: Request) -> bool:
    """Whether the request switches to provisioned capacity and only deletes a vector index: the table decides
    then. [report] dynoxide's captures, extenddb"""
    updates = request.get("VectorIndexUpdates") or ()
    return (
        request.get("BillingMode") == "PROVISIONED"
        and not request.get("GlobalSecondaryIndexUpdates")
        and all(update.get("Create") is None for update in updates)
    )
