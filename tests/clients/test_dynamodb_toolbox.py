"""DynamoDB-Toolbox: `node/toolbox.mjs` uses it, and these tests check what the program prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient


def test_guide(
    run_node: Callable[..., dict[str, Any]], http_client: DynamoDBClient, name_table: Callable[..., str]
) -> None:
    assert run_node("toolbox.mjs", name_table("toolbox", http_client)) == {
        "put": 200,
        "refused": "ConditionalCheckFailedException",
        "updated": {
            "trainer": "ash",
            "name": "pikachu",
            "kind": "electric",
            "code": "025",
            "level": 5,
            "types": ["cute", "mouse"],
            "moves": [{"name": "thunder", "power": 110}],
        },
        "got": {"level": 5, "moves": [{"name": "thunder", "power": 110}]},
        "unprocessed": 0,
        "batch": ["starmie00", None],
        "first": [["starmie02", "starmie03"], {"pk": "TRAINER#misty", "sk": "POKEMON#starmie03"}],
        "all": 11,
        "index": ["102", "103", "104"],
        "levels": ["starmie03"],
        "scanned": 12,
        "written": 200,
        "transacted": [50, 1],
        "canceled": ["TransactionCanceledException", ["None", "ConditionalCheckFailed"]],
        "removed": "pikachu",
        "left": ["eevee"],
    }
