"""boto3's client, as its guide uses it: waiters, paginators, typed errors, batches, transactions, PartiQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_dynamodbstreams.client import DynamoDBStreamsClient

ORDERS = 25


@pytest.fixture
def orders(http_client: DynamoDBClient, name_table: Callable[..., str]) -> str:
    """A table of orders by customer, indexed by phase, with a stream; it holds 25 orders of one customer."""
    name = name_table("orders", http_client)
    http_client.create_table(
        TableName=name,
        AttributeDefinitions=[
            {"AttributeName": "customer", "AttributeType": "S"},
            {"AttributeName": "orderNo", "AttributeType": "N"},
            {"AttributeName": "phase", "AttributeType": "S"},
        ],
        KeySchema=[
            {"AttributeName": "customer", "KeyType": "HASH"},
            {"AttributeName": "orderNo", "KeyType": "RANGE"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by-phase",
                "KeySchema": [
                    {"AttributeName": "phase", "KeyType": "HASH"},
                    {"AttributeName": "orderNo", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    http_client.get_waiter("table_exists").wait(TableName=name)
    written = http_client.batch_write_item(
        RequestItems={name: [{"PutRequest": {"Item": order(number)}} for number in range(ORDERS)]}
    )
    assert written["UnprocessedItems"] == {}
    return name


def order(number: int) -> dict[str, Any]:
    phase = "shipped" if number % 5 == 0 else "open"
    return {**key(number), "phase": {"S": phase}, "amount": {"N": str(number * 10)}}


def key(number: int) -> dict[str, Any]:
    return {"customer": {"S": "ada"}, "orderNo": {"N": str(number)}}


def test_paginators(http_client: DynamoDBClient, orders: str) -> None:
    query: Any = {
        "TableName": orders,
        "KeyConditionExpression": "customer = :ada",
        "ExpressionAttributeValues": {":ada": {"S": "ada"}},
    }
    pages = list(http_client.get_paginator("query").paginate(**query, PaginationConfig={"PageSize": 10}))
    assert [page["Count"] for page in pages] == [10, 10, 5]
    numbers = [int(item["orderNo"]["N"]) for page in pages for item in page["Items"]]
    assert numbers == list(range(ORDERS))

    first = http_client.get_paginator("query").paginate(**query, PaginationConfig={"MaxItems": 4})
    assert [item["orderNo"]["N"] for item in first.build_full_result()["Items"]] == ["0", "1", "2", "3"]
    resumed: Any = {"StartingToken": first.resume_token}
    rest = http_client.get_paginator("query").paginate(**query, PaginationConfig=resumed)
    assert len(rest.build_full_result()["Items"]) == ORDERS - 4

    scan = http_client.get_paginator("scan").paginate(
        TableName=orders, FilterExpression="attribute_exists(amount)"
    )
    assert sum(page["Count"] for page in scan) == ORDERS
    tables = http_client.get_paginator("list_tables").paginate(PaginationConfig={"PageSize": 1})
    assert orders in [name for page in tables for name in page["TableNames"]]


def test_index(http_client: DynamoDBClient, orders: str) -> None:
    shipped = http_client.query(
        TableName=orders,
        IndexName="by-phase",
        KeyConditionExpression="#phase = :shipped AND orderNo BETWEEN :low AND :high",
        ExpressionAttributeNames={"#phase": "phase"},
        ExpressionAttributeValues={":shipped": {"S": "shipped"}, ":low": {"N": "5"}, ":high": {"N": "15"}},
        ScanIndexForward=False,
    )
    assert shipped["Items"] == [order(15), order(10), order(5)]


def test_typed_errors(http_client: DynamoDBClient, orders: str) -> None:
    with pytest.raises(http_client.exceptions.ConditionalCheckFailedException) as refused:
        http_client.put_item(
            TableName=orders,
            Item=order(1),
            ConditionExpression="attribute_not_exists(customer)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    response: Any = refused.value.response
    assert response["Error"]["Message"] == "The conditional request failed"  # [docs]
    assert response["Item"] == order(1)
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 400
    with pytest.raises(http_client.exceptions.ResourceInUseException):
        http_client.create_table(
            TableName=orders,
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
    with pytest.raises(http_client.exceptions.TransactionCanceledException) as canceled:
        http_client.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": orders, "Item": order(100)}},
                {"ConditionCheck": {"TableName": orders, "Key": key(999),
                                    "ConditionExpression": "attribute_exists(customer)"}},
            ]
        )
    reasons: Any = canceled.value.response["CancellationReasons"]
    assert [reason["Code"] for reason in reasons] == ["None", "ConditionalCheckFailed"]
    assert "Item" not in http_client.get_item(TableName=orders, Key=key(100))


def test_batches_and_transactions(http_client: DynamoDBClient, orders: str) -> None:
    got = http_client.batch_get_item(
        RequestItems={orders: {"Keys": [key(1), key(2), key(999)], "ProjectionExpression": "amount"}}
    )
    assert sorted(item["amount"]["N"] for item in got["Responses"][orders]) == ["10", "20"]
    assert got["UnprocessedKeys"] == {}
    http_client.transact_write_items(
        TransactItems=[
            {"Update": {"TableName": orders, "Key": key(1), "UpdateExpression": "SET amount = amount + :one",
                        "ExpressionAttributeValues": {":one": {"N": "1"}}}},
            {"Delete": {"TableName": orders, "Key": key(2)}},
        ]
    )
    both = http_client.transact_get_items(
        TransactItems=[{"Get": {"TableName": orders, "Key": key(number)}} for number in (1, 2)]
    )
    assert [answer.get("Item", {}).get("amount") for answer in both["Responses"]] == [{"N": "11"}, None]


def test_partiql(http_client: DynamoDBClient, orders: str) -> None:
    http_client.execute_statement(
        Statement=f"""INSERT INTO "{orders}" VALUE {{'customer': ?, 'orderNo': ?, 'phase': 'open'}}""",
        Parameters=[{"S": "bob"}, {"N": "1"}],
    )
    found = http_client.execute_statement(
        Statement=f"""SELECT * FROM "{orders}" WHERE customer = 'bob' AND orderNo = 1"""
    )
    assert found["Items"] == [{"customer": {"S": "bob"}, "orderNo": {"N": "1"}, "phase": {"S": "open"}}]
    answers = http_client.batch_execute_statement(
        Statements=[
            {"Statement": f"""UPDATE "{orders}" SET phase = 'paid' WHERE customer = 'bob' AND orderNo = 1"""},
            {"Statement": f"""DELETE FROM "{orders}" WHERE customer = 'ada' AND orderNo = 3"""},
        ]
    )
    assert ["Error" in answer for answer in answers["Responses"]] == [False, False]
    paid = http_client.execute_statement(
        Statement=f"""SELECT orderNo FROM "{orders}"."by-phase" WHERE phase = 'paid'"""
    )
    assert paid["Items"] == [{"orderNo": {"N": "1"}}]


def test_time_to_live_and_tags(http_client: DynamoDBClient, orders: str) -> None:
    http_client.update_time_to_live(
        TableName=orders, TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"}
    )
    described = http_client.describe_time_to_live(TableName=orders)["TimeToLiveDescription"]
    assert described["TimeToLiveStatus"] in {"ENABLING", "ENABLED"}
    assert described["AttributeName"] == "expires"
    arn = http_client.describe_table(TableName=orders)["Table"]["TableArn"]
    http_client.tag_resource(ResourceArn=arn, Tags=[{"Key": "team", "Value": "shop"}])
    assert http_client.list_tags_of_resource(ResourceArn=arn)["Tags"] == [{"Key": "team", "Value": "shop"}]


def test_streams(
    http_client: DynamoDBClient, http_streams: DynamoDBStreamsClient, orders: str
) -> None:
    http_client.delete_item(TableName=orders, Key=key(7))
    arn = http_client.describe_table(TableName=orders)["Table"]["LatestStreamArn"]
    assert [stream["StreamArn"] for stream in http_streams.list_streams(TableName=orders)["Streams"]] == [arn]
    shards = http_streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    records: list[Any] = []
    for shard in shards:
        iterator = http_streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        # An open shard never ends: on AWS records may take some empty pages to come.
        for _ in range(5):
            page = http_streams.get_records(ShardIterator=iterator)
            records += page["Records"]
            if not (iterator := page.get("NextShardIterator", "")):
                break
    assert sum(record["eventName"] == "INSERT" for record in records) == ORDERS
    removed = [record["dynamodb"] for record in records if record["eventName"] == "REMOVE"]
    assert [(change["Keys"], change["OldImage"]) for change in removed] == [(key(7), order(7))]
