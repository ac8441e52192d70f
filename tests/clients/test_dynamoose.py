"""Dynamoose: `node/moose.mjs` uses it, and these tests check what the program prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient


def test_guide(
    run_node: Callable[..., dict[str, Any]], http_client: DynamoDBClient, name_table: Callable[..., str]
) -> None:
    assert run_node("moose.mjs", name_table("moose", http_client)) == {
        "created": "Earthsea",
        "twice": "ConditionalCheckFailedException",
        "got": ["1968-01-01T00:00:00.000Z", ["wizards"], [{"by": "ada", "stars": 5}], [0, 255], True],
        "updated": [200, "poetry", None],
        "refused": "ConditionalCheckFailedException",
        "saved": 201,
        "absent": None,
        "unprocessed": [],
        "several": ["Earthsea", "volume 03"],
        "first": [[19, 18, 17, 16], "volume 16"],
        "rest": [15, 14, 13, 12, 11, 10],
        "index": ["Earthsea", "volume 00", "volume 01"],
        "filtered": [1, 5],
        "counted": 20,
        "scanned": [5, 6, 7, 8, 9, 201],
        "parallel": 21,
        "transacted": [500, 0],
        "canceled": ["TransactionCanceledException", ["ConditionalCheckFailed", "None"]],
        "deleted": None,
        "timeToLive": "expires",
        "indexes": [["by-genre", "ALL"], ["by-pages", "KEYS_ONLY"]],
        "tags": [{"Key": "team", "Value": "library"}],
    }
