"""Vector indexes and searches through boto3, over HTTP and in process.

Source: Developer Guide, "Creating and searching vector indexes".
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from endpoints import SOON
from vector_tables import condition, expected, index_of, listed

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_dynamodb.service_resource import DynamoDBServiceResource

WORDS = {"cat": (1, 0.1), "lion": (0.9, 0.3), "car": (-0.2, 1), "train": (-0.3, 0.8), "sun": (0, -1)}
SCHEMA = [{"AttributeName": "area", "SearchSchemaElementType": "HASH"}]


@pytest.fixture
def words(create: Callable[..., str], client: DynamoDBClient) -> str:
    """A table of words with their vectors."""
    name = create(
        "words",
        hash_only=True,
        pk="S",
        area="S",
        VectorIndexes=[
            index_of("near"),
            index_of(
                "scoped",
                distance="EUCLIDEAN",
                SearchSchema=SCHEMA,
                Projection={"ProjectionType": "KEYS_ONLY"},
            ),
        ],
    )
    for word, vector in WORDS.items():
        item: Any = {"pk": {"S": word}, "area": {"S": word[0]}, "v": listed(vector)}
        client.put_item(TableName=name, Item=item)
    return name


def search(client: Any, table: str, vector: Any, **given: Any) -> list[tuple[str, Any]]:
    request = {"TableName": table, "IndexName": "near", "TopK": 10, **given}
    found = client.search_vectors(SearchVector=listed(vector)["L"], **request)["SearchResults"]
    return [(result["Item"]["pk"]["S"], result["Score"]) for result in found]


def test_the_nearest_items_come_first(client: DynamoDBClient, words: str) -> None:
    assert [word for word, _ in search(client, words, (1, 0), TopK=3)] == ["cat", "lion", "sun"]
    assert search(client, words, (0, 2), TopK=1) == [("car", pytest.approx(1 - 1 / 1.04**0.5, abs=1e-6))]
    client.delete_item(TableName=words, Key={"pk": {"S": "cat"}})
    client.update_item(
        TableName=words,
        Key={"pk": {"S": "train"}},
        UpdateExpression="SET v = :v",
        ExpressionAttributeValues={":v": listed((5, 0))},
    )
    found = search(client, words, (1, 0), TopK=2)
    assert found == [("train", 0.0), ("lion", pytest.approx(0.051317, abs=1e-6))]


def test_a_search_stays_within_its_partition(client: DynamoDBClient, words: str) -> None:
    scoped: Any = {"IndexName": "scoped", **condition({"area": "c"})}
    assert [word for word, _ in search(client, words, (0, 0), **scoped)] == ["cat", "car"]
    with pytest.raises(ClientError) as refused:
        search(client, words, (0, 0), IndexName="scoped")
    assert refused.value.response["Error"]["Code"] == "ValidationException"


def test_filters_are_compared_in_many_ways(client: DynamoDBClient, create: Callable[..., str]) -> None:
    schema = [
        *SCHEMA,
        {"AttributeName": "kind", "SearchSchemaElementType": "INLINE_FILTER"},
        {"AttributeName": "size", "SearchSchemaElementType": "INLINE_FILTER"},
    ]
    name = create(
        "things", hash_only=True, pk="S", area="S", kind="S", size="N",
        VectorIndexes=[index_of(distance="EUCLIDEAN", SearchSchema=schema)],
    )  # fmt: skip
    for number in range(6):
        item: Any = {
            "pk": {"S": str(number)},
            "area": {"S": "here"},
            "size": {"N": str(number)},
            "v": listed((number, 0)),
        }
        client.put_item(TableName=name, Item=item | ({"kind": {"S": f"kind {number}"}} if number else {}))

    def words_of(text: str, **values: Any) -> str:
        given = {":area": {"S": "here"}, **{f":{name}": value for name, value in values.items()}}
        names = {"#size": "size"} if "#size" in text else {}
        request: Any = {"ExpressionAttributeNames": names} if names else {}
        condition_ = f"area = :area AND ({text})"
        request |= {"SearchConditionExpression": condition_, "ExpressionAttributeValues": given}
        return "".join(word for word, _ in search(client, name, (0, 0), **request))

    low, high = {"N": "1"}, {"N": "3"}
    assert words_of("#size BETWEEN :a AND :b", a=low, b=high) == "123"
    assert words_of("#size < :a OR #size > :b", a=low, b=high) == "045"
    assert words_of("NOT #size IN (:a, :b)", a=low, b=high) == "0245"
    assert words_of("kind <> :k AND #size <= :a", k={"S": "kind 1"}, a=high) == "023"
    assert words_of("begins_with(kind, :k) AND attribute_exists(kind)", k={"S": "kind"}) == "12345"
    assert words_of("attribute_not_exists(kind) OR contains(kind, :k)", k={"S": "4"}) == "04"
    with pytest.raises(ClientError, match=r"Type of 'size' .* \(S\) does not match type in search schema"):
        words_of("#size > :k", k={"S": "1"})
    with pytest.raises(ClientError, match="Invalid operator used in SearchConditionExpression"):
        words_of("area = :area OR kind = :area")


def test_an_index_comes_and_goes_on_a_live_table(client: DynamoDBClient, words: str) -> None:
    new: Any = index_of("late", distance="DOT_PRODUCT")
    shown = client.update_table(TableName=words, VectorIndexUpdates=[{"Create": new}])["TableDescription"]
    assert shown["TableStatus"] == "UPDATING"
    assert [i["IndexStatus"] for i in shown["VectorIndexes"]] == ["ACTIVE", "ACTIVE", "CREATING"]
    client.get_waiter("table_exists").wait(TableName=words, WaiterConfig=SOON)
    found = search(client, words, (1, 0), IndexName="late", TopK=2)
    assert found == [("cat", 1.0), ("lion", pytest.approx(0.9))]
    shown = client.describe_table(TableName=words)["Table"]
    assert [index["ItemCount"] for index in shown["VectorIndexes"]] == [5, 5, 5]
    client.update_table(TableName=words, VectorIndexUpdates=[{"Delete": {"IndexName": "late"}}])
    with pytest.raises(ClientError, match="does not have the specified index"):
        search(client, words, (1, 0), IndexName="late")


def test_numbers_of_the_resource_are_vectors(
    resource: DynamoDBServiceResource, words: str
) -> None:
    from decimal import Decimal

    table = resource.Table(words)
    table.put_item(Item={"pk": "dog", "area": "d", "v": [Decimal("1"), Decimal("0")]})
    found = resource.meta.client.search_vectors(
        TableName=words, IndexName="near", SearchVector=[Decimal(1), Decimal(0)], TopK=1
    )
    assert found["SearchResults"] == [{"Item": {"pk": "dog", "area": "d"}, "Score": 0.0}]


def test_searches_and_writes_at_the_same_time(client: DynamoDBClient, words: str) -> None:
    """What is in memory follows the writes of several threads, and every search is answered."""
    errors: list[Exception] = []

    def work(number: int) -> None:
        try:
            for step in range(12):
                key = {"pk": {"S": f"{number} {step % 4}"}}
                item: Any = {**key, "area": {"S": "x"}, "v": listed((number, step))}
                client.put_item(TableName=words, Item=item)
                assert search(client, words, (1, step))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    items = client.scan(TableName=words)["Items"]
    numbered: list[Any] = [{**item, "s": {"N": item["pk"]["S"]}} for item in items]
    truth = [score for score, _ in expected(numbered, "COSINE", (1, 2), 20)]
    assert [score for _, score in search(client, words, (1, 2), TopK=20)] == pytest.approx(truth, abs=1e-6)
