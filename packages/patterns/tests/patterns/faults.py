"""A client that fails as DynamoDB and the network between fail, by a seed; and one that notes what was asked.

Both stand before a boto3 client, so a pattern meets the faults exactly where it would meet real ones.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, cast

from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError, ReadTimeoutError

from hashrange_patterns.flows import Client

_ENDPOINT = "https://dynamodb.invalid"
_WRITES = {"put_item", "update_item", "delete_item"}


def answer_of(code: str, status: int = 400, reasons: list[str] | None = None) -> ClientError:
    """The error that botocore raises for an answer with `code`."""
    response: Any = {
        "Error": {"Code": code, "Message": f"{code} by a fault"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    if reasons is not None:
        response["CancellationReasons"] = [{"Code": reason} for reason in reasons]
    return ClientError(response, "Operation")


class Intercepted:
    """A client whose every request goes through `perform`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getattr__(self, operation: str) -> Callable[..., Mapping[str, Any]]:
        def send(**parameters: Any) -> Mapping[str, Any]:
            return self.perform(operation, parameters)

        return send

    def perform(self, operation: str, parameters: dict[str, Any]) -> Mapping[str, Any]:
        """What the client answers."""
        answer: Mapping[str, Any] = getattr(self._client, operation)(**parameters)
        return answer


class Noting(Intercepted):
    """Counts the requests by operation, and the capacity that they consume; not those of `unnoted`."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.unnoted = client
        self.requests: Counter[str] = Counter()
        self.units = 0.0

    def perform(self, operation: str, parameters: dict[str, Any]) -> Mapping[str, Any]:
        self.requests[operation] += 1
        answer = super().perform(operation, {**parameters, "ReturnConsumedCapacity": "TOTAL"})
        consumed = answer["ConsumedCapacity"]
        tables = consumed if isinstance(consumed, list) else [consumed]
        self.units += sum(table["CapacityUnits"] for table in tables)
        return answer


class Faulty(Intercepted):
    """Fails a share of the requests: before they are performed, instead of it, or after.

    `unknown` counts the failures that leave open whether the request was performed.
    """

    def __init__(self, client: Client, chance: random.Random, rate: float) -> None:
        super().__init__(client)
        self._chance = chance
        self.rate = rate
        self.unknown = 0

    def perform(self, operation: str, parameters: dict[str, Any]) -> Mapping[str, Any]:
        if self._chance.random() >= self.rate:
            return super().perform(operation, parameters)
        fault = self._chance.choice(
            [
                self._refuse,
                self._refuse,
                self._fail_before,
                self._lose_answer,
                self._lose_answer,
                self._answer_part,
            ]
        )
        return fault(operation, parameters)

    def _refuse(self, operation: str, parameters: dict[str, Any]) -> Mapping[str, Any]:
        """Nothing was performed, and the answer says so."""
        errors: list[Exception] = [
            answer_of("ThrottlingException"),
            answer_of("ProvisionedThroughputExceededException"),
            EndpointConnectionError(endpoint_url=_ENDPOINT),
        ]
        if operation in _WRITES:
            errors.append(answer_of("TransactionConflictException"))
        if operation == "transact_write_items":
            errors.append(answer_of("TransactionInProgressException"))
        if operation.startswith("transact"):
            for reason in ("TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"):
                reasons = ["None"] * len(parameters["TransactItems"])
                reasons[self._chance.randrange(len(reasons))] = reason
                errors.append(answer_of("TransactionCanceledException", reasons=reasons))
        raise self._chance.choice(errors)

    def _fail_before(self, operation: str, parameters: dict[str, Any]) -> Mapping[str, Any]:
        """Nothing was performed, and the answer does not say so."""
        self.unknown += 1
        raise answer_of("InternalServerError", status=500)

    def _lose_answer(self, operation: str, parameters: dict[str, Any]) -> Mapping[str, Any]:
        """The request was performed, and its sender learns nothing."""
        super().perform(operation, parameters)
        self.unknown += 1
        raise self._chance.choice(
            [
                ReadTimeoutError(endpoint_url=_ENDPOINT),
                ConnectionClosedError(endpoint_url=_ENDPOINT),
                answer_of("InternalServerError", status=500),
                answer_of("ServiceUnavailable", status=503),
            ]
        )

    def _answer_part(self, operation: str, parameters: dict[str, Any]) -> Mapping[str, Any]:
        """A batch is performed in part, a Query ends early; other requests are performed."""
        if operation == "query":
            limit = self._chance.randrange(1, 4)
            limit = min(limit, parameters.get("Limit", limit))
            return super().perform(operation, {**parameters, "Limit": limit})
        if operation not in {"batch_get_item", "batch_write_item"}:
            return super().perform(operation, parameters)
        [(table, asked)] = parameters["RequestItems"].items()
        reads = operation == "batch_get_item"
        members = list(asked["Keys"] if reads else asked)
        cut = self._chance.randrange(len(members))
        done, left = members[:cut], members[cut:]
        answer: dict[str, Any] = {"Responses": {}}
        if done:
            taken = {**asked, "Keys": done} if reads else done
            answer = dict(super().perform(operation, {"RequestItems": {table: taken}}))
        rest = {**asked, "Keys": left} if reads else left
        return {**answer, ("UnprocessedKeys" if reads else "UnprocessedItems"): {table: rest}}


def faulty(client: Any, chance: random.Random, rate: float) -> tuple[Client, Faulty]:
    """The faulty client twice: as the patterns take it, and as the test looks at it."""
    made = Faulty(client, chance, rate)
    return cast(Client, made), made


def noting(client: Any) -> tuple[Client, Noting]:
    """The noting client twice: as the patterns take it, and as the test looks at it."""
    made = Noting(client)
    return cast(Client, made), made
