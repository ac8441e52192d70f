"""The requests of one side: what errors mean for the pair, which requests are sent again, and how fast.

A `Side` is used by several threads at once for writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

from hashrange.cli.remote.clients import SERVICE_ERRORS, Clients, error_code, explain, is_transient
from hashrange.clock import Clock
from hashrange_sync.deciding import SideName
from hashrange_sync.errors import Denied, Missing, OutcomeUnknown, Refused, Unavailable
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
_CONDITION: Final = "ConditionalCheckFailedException"
_FIRST_PAUSE_SECONDS: Final = 0.05


class Side:
    """One side: its clients, its table, and its pace. `attempts` is how often a request that may be sent
    again is sent at most."""

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
    ) -> None:
        self.name = name
        self.table = table
        self.pace = pace
        self._clients = clients
        self.clock = clock
        self._wait = wait
        self._attempts = attempts

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
            raise Denied(
                f"{self._text(error)}. Renew the credentials, or grant what `hashrange sync policy` prints; "
                "nothing is lost meanwhile."
            ) from error
        if code in THROTTLED or is_transient(error) or code == "TransactionConflictException":
            raise Unavailable(self._text(error)) from error
        if code in ("ResourceNotFoundException", "TableNotFoundException"):
            raise Missing(f"{self._text(error)}. {GONE}") from error
        raise error

    def _text(self, error: Exception) -> str:
        return f"the {self.name}'s table {self.table}: {explain(error)}"


GONE: Final = (
    "Was a table deleted, or its stream switched off? Nothing was changed on the other side. Bring the table "
    "back, then `hashrange sync reset` begins again."
)


def _attempts_of(error: Exception) -> int:
    # (the errors of connections have a response that is None)
    answered = (getattr(error, "response", None) or {}).get("ResponseMetadata", {})
    return int(answered.get("RetryAttempts", 0))
