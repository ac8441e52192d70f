"""Clients that are not made from botocore reach the database of a block with an endpoint, and so do programs
that this one starts: capo-dynamodb, pydynox (a core of Rust), aiodynamo (by httpx), and a process."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

import httpx
import yarl
from aiodynamo.client import Client
from aiodynamo.credentials import Credentials
from aiodynamo.http.httpx import HTTPX
from capo_dynamodb import AsyncDynamoDBClient, DynamoDBClient
from pydynox import DynamoDBClient as Pydynox
from pydynox import Model, ModelConfig
from pydynox.attributes import NumberAttribute, StringAttribute

import hashrange

PROGRAM = """
import boto3
table = boto3.resource("dynamodb").Table("orders")
table.put_item(Item={"pk": "process"})
print(sorted(item["pk"] for item in table.scan()["Items"]))
"""


async def of_pydynox() -> list[Any]:
    class Order(Model):
        model_config = ModelConfig(table="orders", client=Pydynox())
        pk = StringAttribute(partition_key=True)
        n = NumberAttribute(default=0)

    order = Order(pk="pydynox", n=1)
    await order.save()
    await order.update(n=2)
    found = await Order.get(pk="pydynox")
    return [found.pk, int(found.n)] if found is not None else []


async def of_capo() -> list[Any]:
    async with AsyncDynamoDBClient() as client:
        await client.put_item(table_name="orders", item={"pk": {"S": "capo"}})
    with DynamoDBClient() as client:
        return list(client.list_tables()["table_names"])


async def of_aiodynamo() -> Any:
    endpoint = yarl.URL(os.environ["AWS_ENDPOINT_URL_DYNAMODB"])
    async with httpx.AsyncClient() as http:
        client = Client(HTTPX(http), Credentials.auto(), os.environ["AWS_REGION"], endpoint=endpoint)
        table = client.table("orders")
        await table.put_item({"pk": "aiodynamo"})
        return await table.get_item({"pk": "aiodynamo"})


def seen() -> dict[str, Any]:
    """What each client says, and what the database of the block has after that."""
    with hashrange.local(endpoint=True) as database:
        database.create_table("orders", "pk")
        before = database.snapshot()
        with database.costs() as costs:
            found = {
                "pydynox": asyncio.run(of_pydynox()),
                "capo": asyncio.run(of_capo()),
                "aiodynamo": asyncio.run(of_aiodynamo()),
            }
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
        found["process"] = done.stdout.strip()
        found["writes"] = sum(record.operation in ("PutItem", "UpdateItem") for record in costs)
        database.restore(before)
        found["restored"] = database.execute("Scan", {"TableName": "orders"})["Count"]
        return found


if __name__ == "__main__":
    outside = os.environ.get("AWS_ENDPOINT_URL_DYNAMODB")
    shown = seen()
    shown["left"] = os.environ.get("AWS_ENDPOINT_URL_DYNAMODB") == outside
    print(json.dumps(shown))
