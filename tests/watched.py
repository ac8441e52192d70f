"""Helpers for the tests of faults and of costs: making clients and tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Clients = Callable[..., Any]
"""`clients()` makes a client that sends each request once, `clients(attempts=3)` a client that retries,
`clients(service="dynamodbstreams")` a client for streams."""


def create(client: Any, name: str) -> None:
    """Make a table with the key `pk` (text) and `sk` (number), a stream and an index by `date`."""
    client.create_table(
        TableName=name,
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
            {"AttributeName": "date", "AttributeType": "S"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by-date",
                "KeySchema": [{"AttributeName": "date", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )
