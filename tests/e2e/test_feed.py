"""A feed, newest first without an index: the sort key counts down.

Each post is fed to the followers with `Long.MAX_VALUE - nanoseconds` as a number sort key, and read with the
legacy `KeyConditions`, page by page, by sort key and by ExclusiveStartKey.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

LONG_MAX = 2**63 - 1
START_NANOSECONDS = 1_400_000_000_000_000_000
PAGE = 10


@pytest.fixture
def table(http_client: DynamoDBClient, name_table: Callable[..., str]) -> str:
    name = name_table("ticks_test_table", http_client)
    http_client.create_table(
        TableName=name,
        AttributeDefinitions=[
            {"AttributeName": "partition_key", "AttributeType": "S"},
            {"AttributeName": "range_key", "AttributeType": "N"},
        ],
        KeySchema=[
            {"AttributeName": "partition_key", "KeyType": "HASH"},
            {"AttributeName": "range_key", "KeyType": "RANGE"},
        ],
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
    )
    http_client.get_waiter("table_exists").wait(TableName=name)
    return name


def feed_to(client: DynamoDBClient, table: str, user_id: str, nanoseconds: int, content: str) -> None:
    client.put_item(
        TableName=table,
        Item={
            "partition_key": {"S": user_id},
            "range_key": {"N": str(LONG_MAX - nanoseconds)},
            "content": {"S": content},
        },
    )


def create_posts(client: DynamoDBClient, table: str) -> list[str]:
    """35 posts one nanosecond apart: neighbours differ in the nineteenth digit only."""
    contents = [f"post {number}" for number in range(35)]
    for number, content in enumerate(contents):
        for reader in ("editor", "follower1", "follower2"):
            feed_to(client, table, reader, START_NANOSECONDS + number, content)
    return contents


def get_feeds(
    client: DynamoDBClient, table: str, user_id: str, operator: Literal["LE", "LT", "GT"], range_key: int
) -> Any:
    return client.query(
        TableName=table,
        KeyConditions={
            "partition_key": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": user_id}]},
            "range_key": {"ComparisonOperator": operator, "AttributeValueList": [{"N": str(range_key)}]},
        },
        Limit=PAGE,
    )


def contents(items: list[dict[str, Any]]) -> list[str]:
    return [item["content"]["S"] for item in items]


def pages_by_sort_key(client: DynamoDBClient, table: str, user_id: str) -> Iterator[list[dict[str, Any]]]:
    """The program's own paging: the largest sort key of a page is where the next one begins."""
    last = 0
    while items := get_feeds(client, table, user_id, "GT", last)["Items"]:
        yield items
        last = int(items[-1]["range_key"]["N"])


def test_the_newest_come_first(http_client: DynamoDBClient, table: str) -> None:
    posts = create_posts(http_client, table)
    first = get_feeds(http_client, table, "follower1", "LE", LONG_MAX)
    assert contents(first["Items"]) == posts[:-11:-1]
    assert first["LastEvaluatedKey"] == {
        "partition_key": {"S": "follower1"},
        "range_key": {"N": str(LONG_MAX - START_NANOSECONDS - 25)},
    }


def test_paging_by_sort_key_reads_everything_once(http_client: DynamoDBClient, table: str) -> None:
    posts = create_posts(http_client, table)
    pages = list(pages_by_sort_key(http_client, table, "follower2"))
    assert [len(page) for page in pages] == [10, 10, 10, 5]
    assert [content for page in pages for content in contents(page)] == posts[::-1]


def test_a_legacy_condition_bounds_the_range(http_client: DynamoDBClient, table: str) -> None:
    posts = create_posts(http_client, table)
    # No later than the fifth post from the end: LE takes the key itself, LT does not.
    key_of_post_4 = LONG_MAX - START_NANOSECONDS - 4
    upper = http_client.query(
        TableName=table,
        KeyConditions={
            "partition_key": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "editor"}]},
            "range_key": {
                "ComparisonOperator": "BETWEEN",
                "AttributeValueList": [{"N": str(key_of_post_4)}, {"N": str(LONG_MAX)}],
            },
        },
        ScanIndexForward=False,
    )
    assert contents(upper["Items"]) == posts[:5]
    below = get_feeds(http_client, table, "editor", "LT", key_of_post_4)
    assert contents(below["Items"]) == posts[:-11:-1]


def test_paging_by_start_key_reads_everything_once(http_client: DynamoDBClient, table: str) -> None:
    posts = create_posts(http_client, table)
    pages = http_client.get_paginator("query").paginate(
        TableName=table,
        KeyConditions={
            "partition_key": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "editor"}]}
        },
        PaginationConfig={"PageSize": PAGE},
    )
    assert [content for page in pages for content in contents(page["Items"])] == posts[::-1]
