"""The errors of throttled requests: the 16 reasons, the exceptions that come with them, and their texts.

A reason is put together of what is throttled, the kind of request, and the limit:
``{Table,Index}{Read,Write}{ProvisionedThroughputExceeded, KeyRangeThroughputExceeded, AccountLimitExceeded,
MaxOnDemandThroughputExceeded}``. `faults` raises these errors on demand, `lab` when a limit is exceeded.

Source: API reference, "ThrottlingReason"; Developer Guide, "Diagnosing throttling" and "Error handling with
DynamoDB".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from hashrange.errors import (
    ProvisionedThroughputExceededException,
    RequestLimitExceeded,
    ServiceError,
    ThrottlingException,
)
from hashrange.operations.context import Caller, table_arn

PROVISIONED: Final = "ProvisionedThroughputExceeded"
KEY_RANGE: Final = "KeyRangeThroughputExceeded"
ACCOUNT: Final = "AccountLimitExceeded"
MAX_ON_DEMAND: Final = "MaxOnDemandThroughputExceeded"

EXCEPTIONS: Final[dict[str, type[ServiceError]]] = {
    error.__name__: error
    for error in (ProvisionedThroughputExceededException, ThrottlingException, RequestLimitExceeded)
}
LIMITS: Final[dict[str, type[ServiceError]]] = {
    PROVISIONED: ProvisionedThroughputExceededException,
    # A ThrottlingException for a table on demand.
    KEY_RANGE: ProvisionedThroughputExceededException,
    # [assumed], from the description of RequestLimitExceeded.
    ACCOUNT: RequestLimitExceeded,
    MAX_ON_DEMAND: ThrottlingException,
}
"""The end of each throttling reason, and the exception that comes with it."""

TABLE_EXCEEDED: Final = (
    "The level of configured provisioned throughput for the table was exceeded. "
    "Consider increasing your provisioning level with the UpdateTable API."
)
_INDEX_EXCEEDED: Final = (
    "The level of configured provisioned throughput for one or more global secondary indexes of the table "
    "was exceeded. Consider increasing your provisioning level for the under-provisioned global secondary "
    "indexes with the UpdateTable API"
)
TABLE_SCALES: Final = (
    "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your "
    "table or index so please try again shortly. If exceptions persist, check if you have a hot key: "
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"
)
_INDEX_SCALES: Final = (
    "Throughput exceeds the current capacity for one or more global secondary indexes. DynamoDB is "
    "automatically scaling your index so please try again shortly."
)
_MAX_ON_DEMAND: Final = "Throughput exceeds the maximum OnDemandThroughput configured on table or index"
_ACCOUNT_LIMIT: Final = (
    "Throughput exceeds the current throughput limit for your account. Please contact AWS Support at "
    "https://aws.amazon.com/support request a limit increase"
)


class Reason(NamedTuple):
    """A limit that a request exceeds: that of a table, or of its index if `index_name` is not empty. `limit`
    is the end of the throttling reason."""

    table: str
    index_name: str
    writes: bool
    limit: str

    def wire(self, caller: Caller) -> dict[str, str]:
        """The ThrottlingReason, as the caller sees it."""
        of = f"{'Index' if self.index_name else 'Table'}{'Write' if self.writes else 'Read'}"
        resource = table_arn(caller, self.table) + (f"/index/{self.index_name}" if self.index_name else "")
        return {"reason": of + self.limit, "resource": resource}


def message_of(exception: type[ServiceError], limit: str, *, of_index: bool) -> str:
    """The text of a throttling error."""
    if exception is RequestLimitExceeded:
        return _ACCOUNT_LIMIT
    if exception is ProvisionedThroughputExceededException:
        return _INDEX_EXCEEDED if of_index else TABLE_EXCEEDED
    if limit == MAX_ON_DEMAND:
        return _MAX_ON_DEMAND
    return _INDEX_SCALES if of_index else TABLE_SCALES


def error_of(
    exception: type[ServiceError], message: str, reasons: Sequence[Reason], caller: Caller
) -> ServiceError:
    """The error with its throttling reasons, one for each table or index that refuses."""
    wires: list[Any] = [reason.wire(caller) for reason in reasons]
    unique = list({wire["resource"]: wire for wire in wires}.values())
    # The service's model spells this member in two ways.
    member = "throttlingReasons" if exception is ThrottlingException else "ThrottlingReasons"
    return exception(message, **{member: unique})


def cancellation_code(exception: type[ServiceError]) -> str:
    """The code of the cancellation reason of a throttled member of a transaction."""
    return "ThrottlingError" if exception is ThrottlingException else PROVISIONED
