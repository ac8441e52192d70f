"""ElectroDB: `node/electro.mjs` uses it, and these tests check what the program prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient


def test_guide(
    run_node: Callable[..., dict[str, Any]], http_client: DynamoDBClient, name_table: Callable[..., str]
) -> None:
    assert run_node("electro.mjs", name_table("electro", http_client)) == {
        "created": {
            "task": "45-662",
            "project": "backend",
            "team": "core",
            "status": "in-progress",
            "points": 0,
            "comments": [],
        },
        "twice": [4001],
        "patched": {
            "task": "45-662",
            "project": "backend",
            "team": "core",
            "status": "open",
            "points": 5,
            "comments": [{"user": "janet", "body": "This seems half-baked."}],
        },
        "absent": None,
        "employee": {"employee": "janet", "team": "core", "salary": 111, "tags": ["a", "b"]},
        "upserted": 7,
        "unprocessed": [],
        "first": ["010", "011", "012", "013", "014"],
        "next": ["015", "016", "017", "018", "019"],
        "filtered": [29, 28, 27, 26, 25, 24, 23, 22, 21, 20],
        "open": ["000", "002", "004"],
        "effort": [34, 32, 30],
        "projects": 1,
        "collection": [["bob", "janet"], 21],
        "several": ["45-662", "003"],
        "scanned": 41,
        "moved": False,
        "canceled": [True, ["None", "ConditionalCheckFailed"], "open"],
        "read": [110, None],
        "removed": 5,
    }
