"""aioboto3 and aiobotocore in process, where answers are awaited, with the oldest botocore supported."""

import asyncio
import json

import aioboto3
import boto3
import botocore
from aiobotocore.session import get_session
from boto3.dynamodb.conditions import Key
from botocore.exceptions import ClientError

import hashrange

early = aioboto3.Session()


async def with_resource(name: str) -> list[str]:
    async with early.resource("dynamodb", endpoint_url="http://early.test") as resource:
        table = await resource.Table(name)
        async with table.batch_writer() as batch:
            for number in range(30):
                await batch.put_item(Item={"pk": "a", "sk": number})
        found = await table.query(KeyConditionExpression=Key("pk").eq("a"), Limit=2)
        return [str(item["sk"]) for item in found["Items"]]


async def with_client(name: str) -> dict[str, object]:
    async with get_session().create_client("dynamodb") as client:
        keys = [{"pk": {"S": "a"}, "sk": {"N": str(number)}} for number in range(20)]
        answers = await asyncio.gather(*(client.get_item(TableName=name, Key=key) for key in keys))
        try:
            await client.put_item(
                TableName=name, Item=keys[0], ConditionExpression="attribute_not_exists(pk)"
            )
            refused = ""
        except ClientError as error:
            refused = error.response["Error"]["Code"]
        pages = client.get_paginator("scan").paginate(
            TableName=name, PaginationConfig={"PageSize": 12}
        )
        return {
            "together": sum("Item" in answer for answer in answers),
            "refused": refused,
            "pages": [page["Count"] async for page in pages],
        }


async def main() -> dict[str, object]:
    async with early.client("dynamodb") as before:
        async with hashrange.local() as database:
            database.create_table("things", "pk, sk:N")
            seen: dict[str, object] = {"queried": await with_resource("things")}
            seen |= await with_client("things")
            seen["before"] = (await before.list_tables())["TableNames"]
            seen["threads"] = await asyncio.to_thread(
                lambda: boto3.client("dynamodb").scan(TableName="things", Select="COUNT")["Count"]
            )
        try:
            await before.list_tables()
            seen["after"] = "answered"
        except Exception as error:
            seen["after"] = type(error).__name__
    seen["supported"] = botocore.__version__.startswith("1.40.")
    return seen


print(json.dumps(asyncio.run(main())))
