"""Fixtures of the tests of `hashrange_patterns`: clients, and a table."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from botocore.config import Config

from endpoints import OTHER_ENDPOINT, REGION
from hashrange import Database
from hashrange.client import connect
from hashrange_patterns import Table

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

ROUNDS = int(os.environ.get("HASHRANGE_PATTERN_ROUNDS", "0"))
"""How many rounds every kind of random test makes; 0 for a small dose."""


@pytest.fixture(scope="session")
def in_process_client(request: pytest.FixtureRequest) -> DynamoDBClient:
    """A client that sends each request once, as the guides advise: in process, or to a named endpoint."""
    if OTHER_ENDPOINT:
        named: DynamoDBClient = request.getfixturevalue("http_client")
        return named
    config = Config(retries={"total_max_attempts": 1})
    database: Database = request.getfixturevalue("in_process_database")
    client: DynamoDBClient = connect(database, region=REGION, config=config)
    return client


@pytest.fixture
def client(request: pytest.FixtureRequest, transport: str) -> DynamoDBClient:
    """A boto3 client; each test that takes it runs over HTTP and in process."""
    client: DynamoDBClient = request.getfixturevalue(
        "http_client" if transport == "http" else "in_process_client"
    )
    return client


@pytest.fixture
def table(client: DynamoDBClient, name_table: Callable[..., str]) -> Table:
    """A table made by the pattern's own definition, with time to live."""
    table = Table(name_table("patterns"))
    client.create_table(**table.definition())
    client.get_waiter("table_exists").wait(TableName=table.name, WaiterConfig={"Delay": 1})
    client.update_time_to_live(**table.time_to_live())
    return table
