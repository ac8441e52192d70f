"""AWS Lambda Powertools: idempotency, with the persistence layer that its guide makes at import time."""

import json
from contextlib import suppress
from typing import Any

from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent,
)
from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyValidationError

import hashrange

persistence = DynamoDBPersistenceLayer(table_name="idempotency")
config = IdempotencyConfig(
    event_key_jmespath="order", payload_validation_jmespath="amount", expires_after_seconds=60
)
charged: list[str] = []


@idempotent(persistence_store=persistence, config=config)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    charged.append(event["order"])
    if event["order"] == "bad":
        raise ValueError("refused")
    return {"charged": event["amount"]}


with hashrange.local() as database:
    database.create_table("idempotency", "id", ttl="expiration")
    event = {"order": "o-1", "amount": 5}
    answers = [handler(event, None), handler(event, None)]
    try:
        handler({"order": "o-1", "amount": 6}, None)
        other = "taken"
    except IdempotencyValidationError:
        other = "refused"
    for _ in range(2):
        with suppress(ValueError):
            handler({"order": "bad", "amount": 1}, None)
    kept = database.execute("Scan", {"TableName": "idempotency"})["Items"]
    database.clock.advance("2m")
    gone = database.execute("Scan", {"TableName": "idempotency"})["Count"]

print(
    json.dumps({
        "answers": answers,
        "charged": charged,
        "other_payload": other,
        "kept": [item["status"]["S"] for item in kept],
        "after_expiry": gone,
    })
)
