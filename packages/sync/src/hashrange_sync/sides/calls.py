"""The requests of one side: what errors mean for the pair, which requests are sent again, and how fast.

A `Side` is used by several threads at once for writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NoReturn

from botocore.exceptions import ClientError

from hashrange.cli.remote.clients import SERVICE_ERRORS, Clients, error_code, explain, is_transient
from hashrange.clock import Clock
from hashrange_sync.deciding import SideName
from hashrange_sync.errors import Denied, Missing, OutcomeUnknown, Refused, SyncError, Unavailable
from hashrange_sync.sides.pace import Pace

_DENIED: Final = {
    *("AccessDeniedException", "ExpiredTokenException", "IncompleteSignatureException"),
    *("InvalidSignatureException", "MissingAuthenticationTokenException", "UnrecognizedClientException"),
    *("NotAuthorized", "ExpiredToken", "InvalidClientTokenId", "InvalidSignatureException"),
}
THROTTLED: Final = {
    *("LimitExceededException", "ProvisionedThroughputExceededException", "RequestLimitExceeded"),
    *("Throttling", "ThrottlingException", "TransactionInProgressException"),
}
_WITHOUT_CREDENTIALS: Final = {
    *("NoCredentialsError", "PartialCredentialsError", "TokenRetrievalError", "UnauthorizedSSOTokenError"),
    *("CredentialRetrievalError", "SSOTokenLoadError"),
}
_BUSY: Final = {"ProvisionedThroughputExceeded", "RequestLimitExceeded", "ThrottlingError"}
_UNMET: Final = {"ConditionalCheckFailed", "DuplicateItem", "TransactionConflict"}
"""Codes of writes in a batch; those of `_UNMET` are looked at once more."""
_CONDITION: Final = "ConditionalCheckFailedException"
_FIRST_PAUSE_SECONDS: Final = 0.05


class Side:
    """One side: its clients, its table, and its pace. `attempts` is how often a request that may be sent
    again is sent at most; `batches`: whether it takes `write_batch`."""

    def __init__(
        self,
        name: SideName,
        clients: Clients,
        table: str,
        *,
        pace: Pace,
        clock: Clock,
        wait: Callable[[float], object],
        attempts: int = 4,
        batches: bool = True,
    ) -> None:
        self.name = name
        self.table = table
        self.pace = pace
        self._clients = clients
        self.clock = clock
        self._wait = wait
        self._attempts = attempts
        self.batches = batches

    @property
    def region(self) -> str:
        """The region of the clients."""
        return str(self._clients.dynamodb.meta.region_name)

    def call(self, operation: str, **request: Any) -> Any:
        """The answer to a request that may be sent more than once. Raises `Refused`, the service's
        ClientError for what only the caller understands, and other errors of `errors`."""
        return self._sent(self._clients.dynamodb, operation, request)

    def items(self, table: str, operation: str, **request: Any) -> Iterator[dict[str, Any]]:
        """The items of all pages of a query or scan, read consistently. Raises as `call` does."""
        while True:
            page = self.call(operation, TableName=table, ConsistentRead=True, **request)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def stream(self, operation: str, **request: Any) -> Any:
        """Like `call`, of the streams."""
        return self._sent(self._clients.streams, operation, request)

    def _sent(self, client: Any, operation: str, request: dict[str, Any]) -> Any:
        send = getattr(client, operation)
        for attempt in range(self._attempts):
            self.give_way()
            try:
                return self._counted(send(**request))
            except SERVICE_ERRORS as error:
                last = attempt + 1 == self._attempts
                if last or not self._may_pass(error):
                    self._explained(error)
            self._wait(_FIRST_PAUSE_SECONDS * 2**attempt)
        raise AssertionError  # (the last attempt has returned or raised)

    def write_once(self, operation: str, **request: Any) -> Any:
        """The answer to a write that must not be made twice. Raises `Refused` if it was not made because its
        condition does not hold, and `OutcomeUnknown` if it may have been made."""
        send = getattr(self._clients.dynamodb, operation)
        for attempt in range(self._attempts):
            self.give_way()
            try:
                return self._counted(send(**request))
            except SERVICE_ERRORS as error:
                repeated = _attempts_of(error) > 0  # (by botocore: an earlier one may have been made)
                if error_code(error) == _CONDITION and not repeated:
                    raise Refused from None
                throttled = error_code(error) in THROTTLED and not repeated
                if throttled:
                    self.pace.refused()
                if not throttled or attempt + 1 == self._attempts:
                    if is_transient(error) or repeated:
                        raise OutcomeUnknown(self._text(error)) from error
                    self._explained(error)
            self._wait(_FIRST_PAUSE_SECONDS * 2**attempt)
        raise AssertionError

    def write_batch(self, statements: Sequence[Any]) -> list[bool]:
        """Make writes that must not be made twice, each by itself, in one request. Returns which were made;
        of the others the conditions do not hold. Raises `OutcomeUnknown` if some may have been made."""
        made = [False] * len(statements)
        left = list(range(len(statements)))
        for attempt in range(self._attempts):
            asked = [statements[number] for number in left]
            try:
                answer = self.write_once(
                    "batch_execute_statement", Statements=asked, ReturnConsumedCapacity="TOTAL"
                )
            except ClientError as error:
                if error_code(error) != "UnknownOperationException":
                    raise
                raise SyncError(f"{self._text(error)}. {self._alone}.") from error
            repeated = answer["ResponseMetadata"].get("RetryAttempts", 0) > 0
            late = []
            for number, one in zip(left, answer["Responses"], strict=True):
                code = one.get("Error", {}).get("Code", "")
                if code in _BUSY and not repeated:
                    late.append(number)
                elif code in _UNMET and not repeated:
                    continue
                elif code:
                    self._unmade(code, str(one["Error"].get("Message", "")))
                else:
                    made[number] = True
            left = late
            if not left:
                return made
            self.pace.refused()
            self._wait(_FIRST_PAUSE_SECONDS * 2**attempt)
        raise Unavailable(f"the {self.name}'s table {self.table} stays too busy.")

    @property
    def _alone(self) -> str:
        return f"Set `batches = false` in [{self.name}]"

    def _unmade(self, code: str, message: str) -> NoReturn:
        """Raise what the error of a write in a batch means."""
        text = f"the {self.name}'s table {self.table}: {code}: {message}"
        if code == "AccessDenied":
            raise Denied(f"{text}. {_RENEW}")
        if code == "ValidationError":
            raise SyncError(f"{text}. {self._alone} if the server's PartiQL is not DynamoDB's.")
        if code == "ItemCollectionSizeLimitExceeded":
            raise SyncError(text)
        if code == "ResourceNotFound":
            raise Missing(f"{text}. {GONE}")
        raise OutcomeUnknown(text)

    def give_way(self) -> None:
        """Wait until the pace allows another request."""
        seconds = self.pace.wait_seconds()
        if seconds > 0:
            self._wait(seconds)

    def _counted(self, answer: Any) -> Any:
        consumed = answer.get("ConsumedCapacity", ())
        for one in [consumed] if isinstance(consumed, dict) else consumed:
            self.pace.spent(float(one.get("CapacityUnits", 0.0)))
        return answer

    def _may_pass(self, error: Exception) -> bool:
        code = error_code(error)
        if code in THROTTLED:
            self.pace.refused()
            return True
        return code == "TransactionConflictException" or is_transient(error)

    def _explained(self, error: Exception) -> NoReturn:
        """Raise what an error means for the pair."""
        code = error_code(error)
        if code == _CONDITION:
            raise Refused from None
        if code in _DENIED or type(error).__name__ in _WITHOUT_CREDENTIALS:
            raise Denied(f"{self._text(error)}. {_RENEW}") from error
        if code in THROTTLED or is_transient(error) or code == "TransactionConflictException":
            raise Unavailable(self._text(error)) from error
        if code in ("ResourceNotFoundException", "TableNotFoundException"):
            raise Missing(f"{self._text(error)}. {GONE}") from error
        raise error

    def _text(self, error: Exception) -> str:
        return f"the {self.name}'s table {self.table}: {explain(error)}"


_RENEW: Final = (
    "Renew the credentials, or grant what `hashrange sync policy` prints; nothing is lost meanwhile."
)
GONE: Final = (
    "Was a table deleted, or its stream switched off? Nothing was changed on the other side. Bring the table "
    "back, then `hashrange sync reset` begins again."
)


def _attempts_of(error: Exception) -> int:
    # (the errors of connections have a response that is None)
    answered = (getattr(error, "response", None) or {}).get("ResponseMetadata", {})
    return int(answered.get("RetryAttempts", 0))
