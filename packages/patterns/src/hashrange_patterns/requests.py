"""Sends a request, and repeats it if that is safe; reads the errors of boto3.

It distinguishes three kinds of failures, which many programs confuse:

- *refused*: throttling, conflicts, a transaction in progress. Nothing was written; the request is repeated.
- *unknown*: a 5xx answer, a broken connection. The request may have been performed. It is repeated only if a
  repetition has no further effect: a read, a conditional write that recognises its own effect, a transaction
  with its token.
- *final*: all other errors, including a failed condition. They are raised.

Before a repetition it waits for a random time up to a limit that doubles (full jitter), so that requests that
collided do not collide again. botocore also repeats requests, whether that is safe or not;
packages/patterns/docs/README.md says how to switch this off.

Refuses to know what the requests mean.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    IncompleteReadError,
)
from botocore.exceptions import ConnectionError as BotocoreConnectionError

from hashrange_patterns.flows import Answer, Call, Flow, Pause
from hashrange_patterns.tables import Address, Item, Table

CONDITION_FAILED: Final = "ConditionalCheckFailed"

_REFUSED: Final = {
    "ThrottlingException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "TransactionConflictException",
    "TransactionInProgressException",
}
# The cancellation reasons of a member after which a repeated transaction may succeed.
_REFUSED_REASONS: Final = {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
_CANCELED: Final = "TransactionCanceledException"
_HTTP_SERVER_ERROR: Final = 500


class StillUnprocessed(Exception):
    """A batch made no progress in as many attempts as the runtime allows: the table is always throttled."""


class Unreachable(Exception):
    """The queue cannot be reached; some or all events of this call may have been put."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a flow needs from outside: clocks, random numbers, and the limits of repetition.

    `now` returns seconds since the epoch, `elapsed` seconds of a monotonic clock, `chance` a random number
    from 0 up to 1, `token` a unique identifier. A request is sent at most `attempts_max` times; the waits
    between are below `pause_seconds`, which doubles each time up to `pause_seconds_max`.
    """

    now: Callable[[], float] = time.time
    elapsed: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    token: Callable[[], str] = lambda: str(uuid4())
    attempts_max: int = 12
    pause_seconds: float = 0.025
    pause_seconds_max: float = 2.0

    def pause(self, attempt: int) -> Pause:
        """The wait after the attempt of this number, the first being 0."""
        # (the exponent is bounded, because attempts_max is not)
        limit = min(self.pause_seconds_max, self.pause_seconds * 2.0 ** min(attempt, 30))
        return Pause(self.chance() * limit)


def check_seconds(name: str, seconds: float | None, *, zero: bool = False) -> None:
    """Raise ValueError for a duration that is not a number, negative or endless; and for 0, unless `zero`."""
    if seconds is not None and (not (0 <= seconds < math.inf) or (seconds == 0 and not zero)):
        raise ValueError(f"{name} is a number of seconds{' or 0' if zero else ''}, not {seconds!r}")


def request(
    runtime: Runtime,
    operation: str,
    parameters: Mapping[str, Any],
    *,
    repeatable: bool,
    adds: bool = False,
    doubts: list[Exception] | None = None,
) -> Flow[Answer]:
    """Send one request; repeat it while it is refused and, if `repeatable`, while its outcome is unknown.

    The errors that leave the outcome unknown are added to `doubts`. `adds`: see `Call`.
    """
    attempt = 0
    while True:
        try:
            answer: Answer = yield Call(operation, parameters, adds)
            return answer
        except Exception as error:
            attempt += 1
            if doubts is not None and is_unknown(error):
                doubts.append(error)
            again = is_refused(error) or (repeatable and is_unknown(error))
            if not again or attempt >= runtime.attempts_max:
                _explain(error)
                raise
        yield runtime.pause(attempt - 1)


def get(runtime: Runtime, table: Table, address: Address, *, consistent: bool = True) -> Flow[Item | None]:
    """The item at `address`, as it is now if `consistent`; None if there is none.

    Costs half a read unit for each 4 KB, or 1 if consistent.
    """
    parameters = {**table.at(address), "ConsistentRead": consistent}
    answer = yield from request(runtime, "get_item", parameters, repeatable=True)
    item: Item | None = answer.get("Item")
    return item


def is_met(runtime: Runtime, operation: str, parameters: Mapping[str, Any]) -> Flow[bool]:
    """Perform a conditional write that recognises its own effect; returns whether its condition was met."""
    try:
        yield from request(runtime, operation, parameters, repeatable=True)
    except Exception as error:
        if is_condition_failure(error):
            return False
        raise
    return True


def _explain(error: Exception) -> None:
    """Say what to do about a table whose keys are not those that its `Table` names."""
    # (the last words are those of DynamoDB Local)
    told = any(words in str(error) for words in ("does not match the schema", "the key", "the required keys"))
    if told and error_code(error) == "ValidationException":
        error.add_note(
            "The keys of the table may have other names or types than PK and SK, which are texts: give their "
            "names by Table(name, partition_key=..., sort_key=...)"
        )


def transact(runtime: Runtime, members: Sequence[Mapping[str, Any]]) -> Flow[Answer]:
    """Send a TransactWriteItems with a token, so that it is performed once even if its answer is lost and it
    is sent again.

    Raises the client's TransactionCanceledException if a condition failed: see `failed_members`.
    """
    parameters = {"TransactItems": list(members), "ClientRequestToken": runtime.token()}
    return (yield from request(runtime, "transact_write_items", parameters, repeatable=True))


def unmet(runtime: Runtime, members: Sequence[Mapping[str, Any]]) -> Flow[list[int]]:
    """Perform a TransactWriteItems; returns the numbers of the members whose own conditions were not met.

    If there are any, nothing was written.
    """
    try:
        yield from transact(runtime, members)
    except Exception as error:
        return failed_members(error)
    return []


def error_code(error: BaseException) -> str:
    """The code of DynamoDB's answer, such as ``ThrottlingException``; "" if the error is not an answer."""
    if not isinstance(error, ClientError):
        return ""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_condition_failure(error: BaseException) -> bool:
    """Whether a single write was refused because its condition was not met."""
    return error_code(error) == "ConditionalCheckFailedException"


def item_that_was_there(error: Exception) -> Item:
    """The item on which a write's condition failed, if the write asked for it; otherwise raises `error`."""
    if not is_condition_failure(error) or not isinstance(error, ClientError):
        raise error
    response: Any = error.response
    item: Item = response.get("Item", {})
    return item


def cancellation_codes(error: BaseException) -> list[str]:
    """For each member of a canceled transaction the code of its reason; empty for other errors."""
    if error_code(error) != _CANCELED or not isinstance(error, ClientError):
        return []
    return [str(reason.get("Code", "None")) for reason in error.response.get("CancellationReasons", [])]


def failed_members(error: BaseException) -> list[int]:
    """The numbers of a canceled transaction's members whose own condition failed; raises `error` if there are
    none."""
    failed = [number for number, code in enumerate(cancellation_codes(error)) if code == CONDITION_FAILED]
    if not failed:
        raise error
    return failed


def is_refused(error: BaseException) -> bool:
    """Whether the error means that nothing was written, and that a repetition may succeed."""
    if isinstance(error, EndpointConnectionError | ConnectTimeoutError):
        return True
    reasons = set(cancellation_codes(error)) - {"None"}
    if reasons:
        return reasons <= _REFUSED_REASONS
    return error_code(error) in _REFUSED


def is_passing(error: BaseException) -> bool:
    """Whether the table or queue is at fault, and not the work: it is throttled or cannot be reached for now.

    Who does work for others waits then and tries again, and counts no attempt.
    """
    return isinstance(error, StillUnprocessed | Unreachable) or is_refused(error) or is_unknown(error)


def is_unknown(error: BaseException) -> bool:
    """Whether the request may or may not have been performed after this error."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= _HTTP_SERVER_ERROR or error_code(error) in {
            "InternalServerError",
            "ServiceUnavailable",
        }
    return isinstance(error, HTTPClientError | BotocoreConnectionError | IncompleteReadError)
