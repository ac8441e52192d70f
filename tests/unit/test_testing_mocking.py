"""`mock_aws`, as moto's users use it: decorator, context manager, fixture, class, start and stop."""

from __future__ import annotations

import unittest
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

import hashrange
from hashrange.testing import mock_aws, scopes
from worlds import schema_of, table_of


class Model:
    """Code under test: it makes its resource itself, when it is called."""

    def __init__(self, name: str) -> None:
        self.name = name

    def save(self) -> None:
        boto3.resource("dynamodb", region_name="us-east-1").Table("users").put_item(Item={"name": self.name})


def create() -> Any:
    return boto3.resource("dynamodb", region_name="us-east-1").create_table(**table_of("users", "name"))


def saved() -> list[str]:
    items = boto3.resource("dynamodb", region_name="us-east-1").Table("users").scan()["Items"]
    return [str(item["name"]) for item in items]


@mock_aws
def test_decorated_without_parentheses() -> None:
    assert create().table_arn == "arn:aws:dynamodb:us-east-1:123456789012:table/users"
    Model("steve").save()
    assert saved() == ["steve"]


@mock_aws(config={"core": {"mock_credentials": False}})
def test_decorated_with_a_config() -> None:
    create()
    assert saved() == []


def test_as_a_context_manager() -> None:
    with mock_aws():
        create()
        Model("steve").save()
        assert saved() == ["steve"]


@pytest.mark.parametrize("block", [mock_aws, hashrange.local])
def test_replicas_need_shared_regions_and_the_refusal_says_how(block: Any) -> None:
    update: Any = {"ReplicaUpdates": [{"Create": {"RegionName": "eu-west-1"}}]}
    abroad = boto3.client("dynamodb", region_name="eu-west-1")
    with block():
        create()
        with pytest.raises(ClientError, match=rf"{block.__name__}\(shared_regions=True\)"):
            boto3.client("dynamodb", region_name="us-east-1").update_table(TableName="users", **update)
    with block(shared_regions=True):
        create()
        boto3.client("dynamodb", region_name="us-east-1").update_table(TableName="users", **update)
        Model("steve").save()
        assert abroad.scan(TableName="users")["Count"] == 1
        replicas = abroad.describe_table(TableName="users")["Table"]["Replicas"]
        assert [one["RegionName"] for one in replicas] == ["us-east-1"]


def test_started_and_stopped() -> None:
    mock = mock_aws()
    mock.start()
    create()
    mock.stop()
    assert scopes.innermost() is None


@pytest.fixture
def users() -> Iterator[Any]:
    with mock_aws():
        yield create()


def test_with_a_fixture(users: Any) -> None:
    Model("steve").save()
    assert users.scan()["Count"] == 1


@mock_aws
class TestOfAClass(unittest.TestCase):
    def setUp(self) -> None:
        create()

    def test_one(self) -> None:
        Model("one").save()
        assert saved() == ["one"]

    def test_two(self) -> None:
        assert saved() == []


@mock_aws
async def coroutine() -> list[str]:
    create()
    return saved()


def test_decorated_coroutines() -> None:
    import asyncio

    assert asyncio.run(coroutine()) == []


KEY: dict[str, Any] = schema_of("pk", indexes={"by-group": "group"})
DEEP: dict[str, Any] = {"S": "deep"}
for _ in range(40):
    DEEP = {"L": [DEEP]}
VALUE = {":v": {"S": "a"}}
LET_PASS: list[tuple[str, dict[str, Any], str]] = [
    (
        "scan",
        {"FilterExpression": "attribute_exists(n)", "ExpressionAttributeValues": VALUE},
        "Value provided in ExpressionAttributeValues unused in expressions",
    ),
    (
        "put_item",
        {"Item": {"pk": {"S": "a"}, "n": {"N": "1" * 39}}},
        "Attempting to store more than 38 significant digits in a Number",
    ),
    ("put_item", {"Item": {"pk": {"S": "a"}, "s": {"SS": ["x", "x"]}}}, "contains duplicates"),
    (
        "scan",
        {"FilterExpression": "begins_with(n, :v)", "ExpressionAttributeValues": {":v": {"N": "1"}}},
        "Incorrect operand type for operator or function",
    ),
    ("put_item", {"Item": {"pk": {"S": "a"}, "group": {"N": "1"}}}, "Type mismatch for Index Key"),
    (
        "query",
        {
            "KeyConditionExpression": "pk = :v",
            "FilterExpression": "pk = :v",
            "ExpressionAttributeValues": VALUE,
        },
        "Filter Expression can only contain non-primary key attributes",
    ),
    (
        "put_item",
        {"Item": {"pk": {"S": "a"}, "d": DEEP}},
        "Nesting Levels have exceeded supported limits",
    ),
]


@mock_aws
@pytest.mark.parametrize(("operation", "parameters", "message"), LET_PASS, ids=lambda value: str(value)[:20])
def test_what_moto_lets_pass_is_refused(operation: str, parameters: dict[str, Any], message: str) -> None:
    client = boto3.client("dynamodb", region_name="us-east-1")
    client.create_table(TableName="things", **KEY)
    with pytest.raises(ClientError, match=message):
        getattr(client, operation)(TableName="things", **parameters)


@mock_aws
def test_a_batch_of_26_is_refused() -> None:
    client = boto3.client("dynamodb", region_name="us-east-1")
    puts: Any = [{"PutRequest": {"Item": {"pk": {"S": str(number)}}}} for number in range(26)]
    with pytest.raises(ClientError, match="Member must have length less than or equal to 25"):
        client.batch_write_item(RequestItems={"things": puts})
