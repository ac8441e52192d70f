"""Fixtures of the black-box tests: a boto3 resource by either transport, and tables made in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from endpoints import REGION

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_dynamodb.service_resource import DynamoDBServiceResource, Table


@pytest.fixture
def resource(request: pytest.FixtureRequest, transport: str) -> DynamoDBServiceResource:
    """A boto3 resource; each test that takes it runs over HTTP and in process."""
    if transport == "http":
        return request.getfixturevalue("http_resource")  # type: ignore[no-any-return]
    from hashrange.client import resource

    return resource(request.getfixturevalue("in_process_database"), region=REGION)  # type: ignore[no-any-return]


@pytest.fixture
def create(client: DynamoDBClient, name_table: Callable[..., str]) -> Callable[..., str]:
    """`create("music", pk="S", sk="N", GlobalSecondaryIndexes=[…], x="S")` makes a table and gives its name.

    The first two attributes are its key, the others those of its indexes.
    """

    def create(name: str, *, hash_only: bool = False, **given: Any) -> str:
        types = {attribute: type_ for attribute, type_ in given.items() if attribute[0].islower()}
        members = {member: value for member, value in given.items() if not member[0].islower()}
        names = list(types)[: 1 if hash_only else 2]
        unique = name_table(name)
        client.create_table(
            TableName=unique,
            AttributeDefinitions=[{"AttributeName": one, "AttributeType": types[one]} for one in types],
            KeySchema=[
                {"AttributeName": one, "KeyType": key_type}  # type: ignore[typeddict-item]
                for one, key_type in zip(names, ("HASH", "RANGE"), strict=False)
            ],
            BillingMode="PAY_PER_REQUEST",
            **members,
        )
        client.get_waiter("table_exists").wait(TableName=unique, WaiterConfig={"Delay": 1})
        return unique

    return create


@pytest.fixture
def table(resource: DynamoDBServiceResource, create: Callable[..., str]) -> Table:
    """A table with a partition key `pk` (text) and a sort key `sk` (number)."""
    return resource.Table(create("table", pk="S", sk="N"))
