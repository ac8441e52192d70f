"""A shop: the head office in the cloud, a branch at the edge, the line between them, and the sync."""

from __future__ import annotations

import os
import random
import secrets
import threading
from contextlib import ExitStack
from typing import Any

import boto3
from line import Line
from running import ONE_ATTEMPT

from hashrange.database import Database
from hashrange.server import running
from hashrange_sync import Clients, Pair, Settings, Sync

TABLE = "shop"
PRODUCTS = {"tea": "3.20", "bread": "4.50", "honey": "7.00"}
STOCK = 200
DEFINITION: Any = {
    "TableName": TABLE,
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}


class SoldOut(Exception):
    """Nothing is left of a product."""


def clients(url: str) -> Clients:
    """Clients of a server of Hashrange."""
    options: Any = {"endpoint_url": url, "region_name": "eu-central-1", "config": ONE_ATTEMPT}
    options |= {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
    return Clients(boto3.client("dynamodb", **options), boto3.client("dynamodbstreams", **options))


class Office:
    """An office, with its own server. It sells whether or not the line holds."""

    def __init__(self, name: str, stack: ExitStack) -> None:
        folder = os.environ.get("DATA_DIR")
        opened = Database.open(f"{folder}/{name}") if folder else Database.in_memory()
        self.database = stack.enter_context(opened)
        self.name = name
        self.url = stack.enter_context(running(self.database))
        self.clients = clients(self.url)
        self._client: Any = self.clients.dynamodb

    def begin(self) -> None:
        """Make the table, with the products, if it is not there."""
        try:
            self._client.create_table(**DEFINITION)
        except self._client.exceptions.ResourceInUseException:
            return
        for name, price in PRODUCTS.items():
            item = {"id": {"S": f"PRODUCT#{name}"}, "price": {"N": price}, "stock": {"N": str(STOCK)}}
            self._client.put_item(TableName=TABLE, Item=item)

    def sell(self, product: str) -> str:
        """Sell one piece: an order, and a piece less in stock. Returns the order's id. Raises SoldOut."""
        order = {"id": {"S": f"ORDER#{self.name}#{secrets.token_hex(6)}"}, "product": {"S": product}}
        taking = {
            "TableName": TABLE,
            "Key": {"id": {"S": f"PRODUCT#{product}"}},
            "UpdateExpression": "ADD stock :less",
            "ConditionExpression": "stock > :none",
            "ExpressionAttributeValues": {":less": {"N": "-1"}, ":none": {"N": "0"}},
        }
        try:
            self._client.transact_write_items(
                TransactItems=[{"Update": taking}, {"Put": {"TableName": TABLE, "Item": order}}]
            )
        except self._client.exceptions.TransactionCanceledException:
            raise SoldOut(f"there is no {product} left") from None
        return order["id"]["S"]

    def rush(self, sales: int) -> list[str]:
        """Sell so many pieces of anything."""
        return [self.sell(random.choice(list(PRODUCTS))) for _ in range(sales)]

    def set_price(self, product: str, price: str) -> None:
        """Change a price."""
        self._client.update_item(
            TableName=TABLE,
            Key={"id": {"S": f"PRODUCT#{product}"}},
            UpdateExpression="SET price = :price",
            ExpressionAttributeValues={":price": {"N": price}},
        )

    def state(self) -> dict[str, Any]:
        """Stock, price and orders of each product."""
        pages = self._client.get_paginator("scan").paginate(TableName=TABLE, ConsistentRead=True)
        items = [item for page in pages for item in page["Items"]]
        sold = [item["product"]["S"] for item in items if "product" in item]
        return {
            item["id"]["S"].removeprefix("PRODUCT#"): {
                "price": item["price"]["N"],
                "stock": int(item["stock"]["N"]),
                "sold": sold.count(item["id"]["S"].removeprefix("PRODUCT#")),
            }
            for item in sorted(items, key=lambda item: str(item["id"]["S"]))
            if "stock" in item
        }


class Shop:
    """Both offices, and the sync at the branch, which reaches the head office by the line."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.offices = {name: Office(name, self._stack) for name in ("head", "branch")}
        head, branch = self.offices.values()
        head.begin()
        self.line = Line(head.url)
        settings = Settings(pairs=[Pair(table=TABLE, conflicts="add: stock")])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=lambda: self.sync.run())
        self.sync = Sync(
            settings,
            cloud=clients(self.line.url),
            edge=branch.clients,
            wait=lambda seconds: self._stopping.wait(min(seconds, 1)),  # tries the line each second
        )
        self.pair = self.sync.pairs[0]
        self.pair.align()
        self.sync.once()

    def start(self) -> None:
        """Keep both offices in step from now on."""
        self._thread.start()

    def __enter__(self) -> Shop:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.sync.stop()
        if self._thread.is_alive():
            self._thread.join()
        self.sync.close()
        self.line.cut()
        self.line.shutdown()
        self.line.server_close()
        self._stack.close()

    def state(self) -> dict[str, Any]:
        """What the page shows."""
        status = self.pair.current()
        return {
            "offices": {name: office.state() for name, office in self.offices.items()},
            "start": STOCK,
            "cut": self.line.is_cut,
            "sync": status.state,
            "conflicts": [
                {
                    "product": one.key["id"]["S"].removeprefix("PRODUCT#"),
                    "head": _price(one.cloud),
                    "branch": _price(one.edge),
                }
                for one in (self.pair.log.find(entry.id) for entry in self.pair.log.entries())
            ],
        }


def _price(product: Any) -> str:
    return str((product or {}).get("price", {}).get("N", ""))
