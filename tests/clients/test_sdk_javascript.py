"""The AWS SDK for JavaScript v3, with lib-dynamodb: `node/sdk.mjs` uses it, these tests check its output."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hashrange.clock import VirtualClock
from hashrange.database import Database, Settings
from hashrange.server.run import running

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient


def test_guide(
    run_node: Callable[..., dict[str, Any]], http_client: DynamoDBClient, name_table: Callable[..., str]
) -> None:
    assert run_node("sdk.mjs", name_table("sdk", http_client)) == {
        "createdIsDate": True,
        "waited": "SUCCESS",
        "listed": True,
        "timeToLive": "expires",
        "put": [200, 52, 1],
        "bytes": [0, 255],
        "refused": [True, "The conditional request failed", "Blob"],  # [docs]
        "missing": [True, "client"],
        "invalid": ["ValidationException", "The provided key element does not match the schema"],  # [docs]
        "document": {
            "artist": "Nina",
            "song": "Sinnerman",
            "genre": "jazz",
            "plays": 7,
            "label": "Philips",
            "live": True,
            "none": None,
            "nested": {"list": [1, "two", {"three": 3}], "empty": {}},
            "tags": ["a", "b"],
        },
        "updated": {"plays": 8, "tags": 3},
        "batch": ["BWV 03", "Sinnerman"],
        "first": [[19, 18, 17, 16], {"artist": "Bach", "song": "BWV 16"}],
        "pages": [4, 4, 2],
        "index": [
            {"artist": "Bach", "song": "BWV 18", "genre": "baroque", "plays": 18},
            {"artist": "Bach", "song": "BWV 19", "genre": "baroque", "plays": 19},
        ],
        "scanned": 5,
        "counted": 22,
        "removed": 8,
        "big": "12345678901234567890123456789012345678",
        "nothing": {},
        "canceled": [
            True,
            "Transaction cancelled, please refer cancellation reasons for specific reasons"
            " [ConditionalCheckFailed, None]",  # [docs]
            ["ConditionalCheckFailed", "None"],
        ],
        "statement": [{"song": "BWV 00"}, {"song": "BWV 01"}],
        "events": [
            ["INSERT", "Blob", True],
            ["INSERT", "Sinnerman", True],
            ["MODIFY", "Sinnerman", True],
            ["REMOVE", "Sinnerman", True],
        ],
        "gone": "SUCCESS",
    }


def test_a_throttled_put_is_tried_again(
    run_node: Callable[..., dict[str, Any]],
    client_environment: dict[str, str],
) -> None:
    clock = VirtualClock(1_767_225_600, frozen=True)
    database = Database.in_memory(settings=Settings(throttle=True), clock=clock)
    with database, running(database) as endpoint:
        client_environment["AWS_ENDPOINT_URL_DYNAMODB"] = endpoint
        answer = run_node("throttled.mjs", "orders")
    (reason,) = answer.pop("reasons")
    assert answer == {
        "attempts": [1, 1],
        "name": "ProvisionedThroughputExceededException",
        "failed": 3,
        "retryable": None,
    }
    assert reason["reason"] == "TableWriteProvisionedThroughputExceeded"
    assert reason["resource"].endswith(":table/orders")
