"""aioboto3 as its README uses it, and aiobotocore beneath it: `tour.py TABLE` prints what it saw as JSON.

It runs with an interpreter of its own, and reaches Hashrange over HTTP.
"""

import asyncio
import json
import sys
from decimal import Decimal
from typing import Any

import aioboto3
from boto3.dynamodb.conditions import Attr, Key
from botocore.exceptions import ClientError


async def main(name: str) -> dict[str, Any]:
    session = aioboto3.Session()
    async with session.resource("dynamodb") as resource, session.client("dynamodb") as client:
        await resource.create_table(
            TableName=name,
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "col1", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "col1", "AttributeType": "S"},
            ],
            BillingMode="PAY_PER_REQUEST",
        )
        table = await resource.Table(name)
        await table.wait_until_exists()
        return {
            **await with_resource(table),
            **await with_client(client, name),
            **await failing(client, table),
        }


async def with_resource(table: Any) -> dict[str, Any]:
    """The README's example: put, query with conditions, the batch writer."""
    await table.put_item(Item={"pk": "test1", "col1": "some_data", "amount": Decimal("1.10")})
    got = await table.get_item(Key={"pk": "test1", "col1": "some_data"})
    queried = await table.query(
        KeyConditionExpression=Key("pk").eq("test1") & Key("col1").begins_with("some"),
        FilterExpression=Attr("amount").lt(2),
    )
    async with table.batch_writer(flush_amount=10, on_exit_loop_sleep=0) as batch:
        for number in range(40):
            await batch.put_item(Item={"pk": "batch", "col1": f"{number:02}"})
    counted = await table.query(KeyConditionExpression=Key("pk").eq("batch"), Select="COUNT")
    return {
        "item": {name: str(value) for name, value in got["Item"].items()},
        "queried": [item["col1"] for item in queried["Items"]],
        "batch_written": counted["Count"],
    }


async def with_client(client: Any, name: str) -> dict[str, Any]:
    """Many requests at a time over pooled connections, a paginator, a statement."""
    answers = await asyncio.gather(
        *(
            client.get_item(TableName=name, Key={"pk": {"S": "batch"}, "col1": {"S": f"{number:02}"}})
            for number in range(32)
        )
    )
    pages = client.get_paginator("scan").paginate(TableName=name, PaginationConfig={"PageSize": 15})
    chosen = await client.execute_statement(
        Statement=f'SELECT col1 FROM "{name}" WHERE pk = ?', Parameters=[{"S": "test1"}]
    )
    return {
        "together": [answer["Item"]["col1"]["S"] for answer in answers],
        "pages": [page["Count"] async for page in pages],
        "chosen": chosen["Items"],
    }


async def failing(client: Any, table: Any) -> dict[str, Any]:
    """Requests that are refused, and a table that is deleted."""
    seen: dict[str, Any] = {}
    try:
        await table.put_item(
            Item={"pk": "test1", "col1": "some_data"}, ConditionExpression=Attr("pk").not_exists()
        )
    except ClientError as error:
        seen["refused"] = error.response["Error"]["Code"]
    put = {"TableName": table.name, "Item": {"pk": {"S": "test1"}, "col1": {"S": "some_data"}}}
    other = {"TableName": table.name, "Item": {"pk": {"S": "other"}, "col1": {"S": "x"}}}
    try:
        await client.transact_write_items(
            TransactItems=[
                {"Put": {**put, "ConditionExpression": "attribute_not_exists(pk)"}},
                {"Put": other},
            ]
        )
    except client.exceptions.TransactionCanceledException as error:
        seen["reasons"] = [reason["Code"] for reason in error.response["CancellationReasons"]]
    await table.delete()
    await table.wait_until_not_exists()
    seen["deleted"] = True
    try:
        await client.describe_table(TableName=table.name)
    except client.exceptions.ResourceNotFoundException as error:
        seen["missing"] = error.response["Error"]["Code"]
    return seen


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1]))))
