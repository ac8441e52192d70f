"""A client that sends one request at a time, and never repeats a request by itself.

An SDK's client repeats a request that got no answer, which hides that the first attempt may have been carried
out. Here such a request ends as `OutcomeUnknown`.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from random import Random
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from consistency.history import History, NoAnswer, Operation, OutcomeUnknown, Refused

ANSWER_SECONDS: Final = 20.0
"""After this time a server that is alive gives up."""
TIMEOUT_SECONDS: Final = 30.0
"""Longer than any server takes that is alive."""
REPEATED_SECONDS: Final = 120.0
"""How long a request is repeated: longer than a group of PostgreSQL servers takes to have a primary."""
AWAY_SECONDS: Final = 0.02
"""How long a client waits after it could not connect."""

_EXPECTED: Final = {
    "ConditionalCheckFailedException",
    "TransactionCanceledException",
    "TransactionConflictException",
    "TransactionInProgressException",
    "ThrottlingException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
}
_EXPECTED_REASONS: Final = {
    "None",
    "ConditionalCheckFailed",
    "TransactionConflict",
    "ThrottlingError",
    "ProvisionedThroughputExceeded",
}
_OF_STREAMS: Final = {"DescribeStream", "GetShardIterator", "GetRecords"}
_HEADERS: Final = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": (
        "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=" + "0123456789abcdef" * 4
    ),
}


class NotReached(Refused):
    """Nobody listened, so the request was not sent."""


class Client:
    """A client of all `endpoints`, which are one database: each request goes to any of them.

    `number` names it in the history, `steps` counts those of workloads that it made. Only one thread may use
    it at a time.
    """

    def __init__(self, number: int, endpoints: Sequence[str], random: Random, history: History) -> None:
        self.number = number
        self.random = random
        self.steps = 0
        self._history = history
        self._endpoints = endpoints
        self._connections: dict[str, http.client.HTTPConnection] = {}

    def recorded(
        self, workload: str, action: str, **arguments: Any
    ) -> AbstractContextManager[Operation]:
        """Record an operation of this client: see `History.recorded`."""
        return self._history.recorded(self.number, workload, action, **arguments)

    def saw(
        self, workload: str, action: str, result: Any, invoked: float, ended: float, **arguments: Any
    ) -> None:
        """Record an operation that has ended well."""
        operation = Operation(self.number, workload, action, arguments, invoked, "ok", ended, result)
        self._history.operations.append(operation)

    def settled(self, moment: float) -> float:
        """When the last operation of a workload had ended that began before `moment`; at least `moment`."""
        ends = [
            min(operation.ended, operation.invoked + ANSWER_SECONDS)
            for operation in self._history.operations
            if operation.client >= 0 and operation.invoked < moment
        ]
        return max(moment, *ends)

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        """Send a request to one of the endpoints, and return its answer.

        Raises Refused where it certainly has no effect, OutcomeUnknown where it may have one, NoAnswer where
        the server keeps the connection and says nothing, and AssertionError for an error that no workload
        provokes: the workload or the server has a bug.
        """
        endpoint = self.random.choice(self._endpoints)
        connection = self._connect(endpoint)
        service = "DynamoDBStreams_20120810" if operation in _OF_STREAMS else "DynamoDB_20120810"
        headers = _HEADERS | {"X-Amz-Target": f"{service}.{operation}"}
        try:
            connection.request("POST", "/", orjson.dumps(request), headers)
            response = connection.getresponse()
            status, body = response.status, response.read()
        except TimeoutError:
            self._drop(endpoint)
            raise NoAnswer(f"{operation} at {endpoint}: no answer in {TIMEOUT_SECONDS} s") from None
        except (OSError, http.client.HTTPException) as error:
            self._drop(endpoint)
            raise OutcomeUnknown(f"{type(error).__name__}: {error}") from error
        if status >= 500:
            raise OutcomeUnknown(f"status {status}: {body[:200].decode(errors='replace')}")
        answer: dict[str, Any] = orjson.loads(body)
        if status == 200:
            return answer
        code = str(answer.get("__type", "")).rpartition("#")[2]
        reasons = {str(reason.get("Code")) for reason in answer.get("CancellationReasons", ())}
        assert code in _EXPECTED, f"{operation} {request}: {answer}"
        assert reasons <= _EXPECTED_REASONS, f"{operation} {request}: {answer}"
        raise Refused(code, answer)

    def call_until_answered(self, operation: str, **request: Any) -> dict[str, Any]:
        """Repeat a request that may be repeated, until it succeeds."""
        until = time.monotonic() + REPEATED_SECONDS
        while True:
            try:
                return self.call(operation, **request)
            except (Refused, OutcomeUnknown):
                if time.monotonic() > until:
                    raise
                time.sleep(AWAY_SECONDS)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _connect(self, endpoint: str) -> http.client.HTTPConnection:
        if endpoint not in self._connections:
            place = urlsplit(endpoint)
            assert place.hostname is not None, f"no endpoint: {endpoint}"
            kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
            connection = kind(place.hostname, place.port, timeout=TIMEOUT_SECONDS)
            try:
                connection.connect()
            except OSError as error:
                time.sleep(AWAY_SECONDS)
                raise NotReached(f"{type(error).__name__}: {error}") from error
            self._connections[endpoint] = connection
        return self._connections[endpoint]

    def _drop(self, endpoint: str) -> None:
        self._connections.pop(endpoint).close()
