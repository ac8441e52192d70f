"""aioboto3 (aiobotocore with resources): `aioboto3/tour.py` uses it, and these tests check its output."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient


def test_tour(
    run_aioboto3: Callable[..., dict[str, Any]],
    http_client: DynamoDBClient,
    name_table: Callable[..., str],
) -> None:
    printed = run_aioboto3("tour.py", name_table("tour", http_client))
    assert printed == {
        "item": {"pk": "test1", "col1": "some_data", "amount": "1.1"},
        "queried": ["some_data"],
        "batch_written": 40,
        "together": [f"{number:02}" for number in range(32)],
        "pages": [15, 15, 11],
        "refused": "ConditionalCheckFailedException",
        "reasons": ["ConditionalCheckFailed", "None"],
        "chosen": [{"col1": {"S": "some_data"}}],
        "missing": "ResourceNotFoundException",
        "deleted": True,
    }


def test_patterns(
    run_aioboto3: Callable[..., dict[str, Any]],
    http_client: DynamoDBClient,
    name_table: Callable[..., str],
) -> None:
    printed = run_aioboto3("patterns.py", name_table("patterns", http_client))
    assert printed == {
        "counted": 5,
        "value": 5,
        "sharded": 20,
        "windowed": 4,
        "seen": [True, False],
        "visits": 3,
        "home": ["hello"],
        "job": ["job", True],
        "lock": [True, True],
        "again": "done",
        "allowed": [True, False],
        "session": ["alice", True],
    }
