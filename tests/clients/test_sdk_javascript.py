"""The AWS SDK for JavaScript v3, with lib-dynamodb: `node/sdk.mjs` uses it, these tests check its output."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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
