"""Reading many items: paginators, parallel scans, secondary indexes, batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

GROUPS = 3
ITEMS = 60


def global_index(name: str, *keys: str, projection: str = "ALL") -> dict[str, Any]:
    return {
        "IndexName": name,
        "KeySchema": [
            {"AttributeName": key, "KeyType": kind}
            for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
        ],
        "Projection": {"ProjectionType": projection},
    }


@pytest.fixture
def songs(client: DynamoDBClient, create: Callable[..., str]) -> str:
    """60 items in 3 partitions; two thirds are in the index by year, where many share their key."""
    name = create(
        "songs",
        artist="S",
        title="S",
        year="N",
        length="N",
        GlobalSecondaryIndexes=[global_index("by-year", "year", projection="KEYS_ONLY")],
        LocalSecondaryIndexes=[global_index("by-length", "artist", "length")],
    )
    for start in range(0, ITEMS, 20):
        client.batch_write_item(
            RequestItems={
                name: [{"PutRequest": {"Item": song(number)}} for number in range(start, start + 20)]
            }
        )
    return name


def song(number: int) -> dict[str, Any]:
    item: dict[str, Any] = {
        "artist": {"S": f"artist {number % GROUPS}"},
        "title": {"S": f"title {number:03}"},
        "length": {"N": str(100 - number)},
        "text": {"S": "x" * 100},
    }
    if number % 3:
        item["year"] = {"N": str(2000 + number % 2)}
    return item


def titles(pages: Any) -> list[str]:
    return [item["title"]["S"] for page in pages for item in page["Items"]]


def test_a_query_by_pages_gives_every_item_once_in_order(client: DynamoDBClient, songs: str) -> None:
    pages = client.get_paginator("query").paginate(
        TableName=songs,
        KeyConditionExpression="artist = :a",
        ExpressionAttributeValues={":a": {"S": "artist 1"}},
        ConsistentRead=True,
        PaginationConfig={"PageSize": 7},
    )
    assert titles(pages) == [f"title {number:03}" for number in range(1, ITEMS, GROUPS)]


def test_a_query_backwards_by_pages(client: DynamoDBClient, songs: str) -> None:
    pages = client.get_paginator("query").paginate(
        TableName=songs,
        IndexName="by-length",
        KeyConditionExpression="artist = :a AND #l < :l",
        ExpressionAttributeNames={"#l": "length"},
        ExpressionAttributeValues={":a": {"S": "artist 0"}, ":l": {"N": "70"}},
        ScanIndexForward=False,
        PaginationConfig={"PageSize": 2},
    )
    assert titles(pages) == [f"title {number:03}" for number in range(33, ITEMS, GROUPS)]


@pytest.mark.parametrize("page", [1, 3, 1000])
def test_pages_of_an_index_survive_ties(client: DynamoDBClient, songs: str, page: int) -> None:
    found = titles(
        client.get_paginator("query").paginate(
            TableName=songs,
            IndexName="by-year",
            KeyConditionExpression="#y = :y",
            ExpressionAttributeNames={"#y": "year"},
            ExpressionAttributeValues={":y": {"N": "2001"}},
            PaginationConfig={"PageSize": page},
        )
    )
    assert sorted(found) == [f"title {n:03}" for n in range(ITEMS) if n % 3 and n % 2]


def test_an_index_is_sparse_and_shows_its_projection(client: DynamoDBClient, songs: str) -> None:
    items = client.scan(TableName=songs, IndexName="by-year")["Items"]
    assert len(items) == ITEMS * 2 // 3
    assert {frozenset(item) for item in items} == {frozenset({"artist", "title", "year"})}


@pytest.mark.parametrize("segments", [1, 2, 7])
def test_segments_of_a_scan_share_the_items(client: DynamoDBClient, songs: str, segments: int) -> None:
    found: Counter[str] = Counter()
    for segment in range(segments):
        pages = client.get_paginator("scan").paginate(
            TableName=songs,
            Segment=segment,
            TotalSegments=segments,
            ConsistentRead=True,
            PaginationConfig={"PageSize": 4},
        )
        found.update(titles(pages))
    assert found == Counter(f"title {number:03}" for number in range(ITEMS))


def test_counting(client: DynamoDBClient, songs: str) -> None:
    answer = client.scan(
        TableName=songs,
        Select="COUNT",
        FilterExpression="attribute_exists(#y)",
        ExpressionAttributeNames={"#y": "year"},
        ConsistentRead=True,
        ReturnConsumedCapacity="TOTAL",
    )
    assert (answer["Count"], answer["ScannedCount"]) == (40, 60)
    assert "Items" not in dict(answer)
    # 60 items of some 150 bytes, read consistently, by 4 KB.
    assert 2 <= answer["ConsumedCapacity"]["CapacityUnits"] <= 4


def test_a_page_ends_at_a_megabyte(client: DynamoDBClient, create: Callable[..., str]) -> None:
    name = create("large", pk="S", sk="N")
    for number in range(5):
        client.put_item(
            TableName=name,
            Item={"pk": {"S": "p"}, "sk": {"N": str(number)}, "x": {"S": "x" * 300_000}},
        )
    pages = list(
        client.get_paginator("query").paginate(
            TableName=name,
            KeyConditionExpression="pk = :p",
            ExpressionAttributeValues={":p": {"S": "p"}},
        )
    )
    assert [page["Count"] for page in pages] == [4, 1]


def test_a_batch_gets_from_several_tables(
    client: DynamoDBClient, songs: str, create: Callable[..., str]
) -> None:
    other = create("other", id="S", hash_only=True)
    client.put_item(TableName=other, Item={"id": {"S": "x"}})
    answer = client.batch_get_item(
        RequestItems={
            songs: {
                "Keys": [
                    {"artist": song(number)["artist"], "title": song(number)["title"]} for number in (1, 2)
                ]
                + [{"artist": {"S": "none"}, "title": {"S": "none"}}],
                "ProjectionExpression": "title",
            },
            other: {"Keys": [{"id": {"S": "x"}}], "ConsistentRead": True},
        }
    )
    assert sorted(item["title"]["S"] for item in answer["Responses"][songs]) == ["title 001", "title 002"]
    assert answer["Responses"][other] == [{"id": {"S": "x"}}]
    assert answer["UnprocessedKeys"] == {}
