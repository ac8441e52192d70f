"""The function of test_kills.py: keeps totals of page views, each view counted once.

A trigger delivers at least once, so the view's own id says whether it was counted: it is put in the same
transaction that adds to the total, and only if it is not there.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import hashrange_triggers as triggers

VIEWS, TOTALS = "views", "totals"


@cache
def _client() -> Any:
    return triggers.connect(os.environ["VIEW_TOTALS_ENDPOINT"]).dynamodb


def count(event: triggers.Event) -> None:
    """Count the views of an event, and say so with a line for each record."""
    for record in event["Records"]:
        if record["eventName"] != "REMOVE":
            add(_client(), record["dynamodb"]["NewImage"])
        print(record["eventID"], flush=True)


def add(client: Any, view: dict[str, Any]) -> None:
    """Count one view, unless it was counted before."""
    seen = {"name": {"S": f"event {view['event']['S']}"}}
    try:
        client.transact_write_items(
            TransactItems=[
                {
                    "Put": {
                        "TableName": TOTALS,
                        "Item": seen,
                        "ConditionExpression": "attribute_not_exists(#name)",
                        "ExpressionAttributeNames": {"#name": "name"},
                    }
                },
                {
                    "Update": {
                        "TableName": TOTALS,
                        "Key": {"name": {"S": f"page {view['page']['S']}"}},
                        "UpdateExpression": "ADD #total :one",
                        "ExpressionAttributeNames": {"#total": "total"},
                        "ExpressionAttributeValues": {":one": {"N": "1"}},
                    }
                },
            ]
        )
    except client.exceptions.TransactionCanceledException as error:
        # Only what was counted before may fail; anything else is the trigger's to try again.
        if error.response["CancellationReasons"][0]["Code"] != "ConditionalCheckFailed":
            raise
