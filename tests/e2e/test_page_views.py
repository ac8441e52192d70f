"""Page views: unique views by conditional puts, counted by scanning, then by a counter.

A small active-record layer, as a program of its own would have it, over the low-level client: create table,
put, get, conditional put, scan page by page with consumed capacity, and ADD on a counter. Such programs name
their endpoint in a constant, here port 8010.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID, uuid4

import boto3
import pytest
from botocore import xform_name
from botocore.exceptions import ClientError

from endpoints import OTHER_ENDPOINT, connection
from serving import serving

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

PORT = 8010


class Record:
    """One table; its fields, each with how it is read from and written to the wire."""

    NAME: ClassVar[str]
    KEY: ClassVar[str]
    FIELDS: ClassVar[dict[str, tuple[str, Callable[[str], Any]]]]

    def __init__(self, client: DynamoDBClient, name_table: Callable[..., str]) -> None:
        self.client = client
        self.table = name_table(self.NAME, client)

    def call(self, operation: str, **parameters: Any) -> Any:
        return getattr(self.client, xform_name(operation))(TableName=self.table, **parameters)

    def create_table(self) -> None:
        self.call(
            "CreateTable",
            KeySchema=[{"AttributeName": self.KEY, "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": self.KEY, "AttributeType": "S"}],
            ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
        )
        self.client.get_waiter("table_exists").wait(TableName=self.table)

    def encode(self, **data: Any) -> dict[str, Any]:
        return {name: {self.FIELDS[name][0]: str(value)} for name, value in data.items()}

    def decode(self, item: dict[str, Any]) -> dict[str, Any]:
        return {name: self.FIELDS[name][1](value[self.FIELDS[name][0]]) for name, value in item.items()}


class Page(Record):
    NAME = "page"
    KEY = "page_id"
    FIELDS: ClassVar[Any] = {
        "page_id": ("S", UUID),
        "title": ("S", str),
        "content": ("S", str),
        "views_count": ("N", int),
    }

    def create(self, title: str, content: str) -> UUID:
        page_id = uuid4()
        self.call("PutItem", Item=self.encode(page_id=page_id, title=title, content=content))
        return page_id

    def get(self, page_id: UUID) -> dict[str, Any]:
        return self.decode(self.call("GetItem", Key=self.encode(page_id=page_id))["Item"])

    def increment_views_count(self, page_id: UUID) -> int:
        result = self.call(
            "UpdateItem",
            Key=self.encode(page_id=page_id),
            UpdateExpression="ADD views_count :n",
            ExpressionAttributeValues={":n": {"N": "1"}},
            ReturnValues="ALL_NEW",
        )
        count: int = self.decode(result["Attributes"])["views_count"]
        return count


class PageView(Record):
    NAME = "page_view"
    KEY = "page_id_user_id"
    FIELDS: ClassVar[Any] = {"page_id_user_id": ("S", str), "referrer": ("S", str)}

    def view(self, page_id: UUID, user_id: UUID, referrer: str = "-") -> bool:
        """Whether this is the user's first view of the page."""
        try:
            self.call(
                "PutItem",
                Item=self.encode(page_id_user_id=f"{page_id}_{user_id}", referrer=referrer),
                ConditionExpression="attribute_not_exists(page_id_user_id)",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                return False
            raise
        return True

    def scan_pages(self) -> Iterator[dict[str, Any]]:
        """The answers to one Scan after the other."""
        query: dict[str, Any] = {"ReturnConsumedCapacity": "TOTAL"}
        while True:
            result = self.call("Scan", **query)
            yield result
            if "LastEvaluatedKey" not in result:
                return
            query["ExclusiveStartKey"] = result["LastEvaluatedKey"]

    def page_views_count(self, page_id: UUID) -> int:
        views = (self.decode(item) for page in self.scan_pages() for item in page["Items"])
        return sum(view["page_id_user_id"].startswith(str(page_id)) for view in views)


@pytest.fixture(scope="module")
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DynamoDBClient]:
    """The endpoint of the program: port 8010, unless someone else has it."""
    if OTHER_ENDPOINT:
        client = boto3.client("dynamodb", **connection(request.getfixturevalue("endpoint")))
        yield client
    else:
        with socket.socket() as probe:
            taken = probe.connect_ex(("127.0.0.1", PORT)) == 0
        # Of the processes that run the tests at once, the first may have it.
        is_first = os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0"
        port = PORT if is_first and not taken else 0
        directory = tmp_path_factory.mktemp("page-views")
        with serving("--port", str(port), "--data-dir", str(directory)) as server:
            client = boto3.client("dynamodb", **connection(server.endpoint))
            yield client
    client.close()


@pytest.fixture
def page(client: DynamoDBClient, name_table: Callable[..., str]) -> Page:
    page = Page(client, name_table)
    page.create_table()
    return page


@pytest.fixture
def page_view(client: DynamoDBClient, name_table: Callable[..., str]) -> PageView:
    page_view = PageView(client, name_table)
    page_view.create_table()
    return page_view


def test_views_are_counted_by_a_scan(page_view: PageView) -> None:
    first, second = uuid4(), uuid4()
    for i in range(100):
        if i % 2 == 0:
            page_view.view(first, uuid4())
        if i % 3 == 0:
            page_view.view(second, uuid4())
    assert page_view.page_views_count(first) == 50
    assert page_view.page_views_count(second) == 34


def test_scan_pages_end_at_one_megabyte_and_cost_what_they_read(page_view: PageView) -> None:
    page_id, referrer = uuid4(), "r" * 20_000
    for _ in range(120):
        page_view.view(page_id, uuid4(), referrer)
    item_bytes = len("page_id_user_id") + 36 + 1 + 36 + len("referrer") + len(referrer)
    pages = list(page_view.scan_pages())

    keys = [item["page_id_user_id"]["S"] for page in pages for item in page["Items"]]
    assert len(keys) == len(set(keys)) == 120
    assert len(pages) == 3
    for number, page in enumerate(pages):
        assert page["Count"] == page["ScannedCount"] == len(page["Items"])
        read_bytes = page["Count"] * item_bytes
        # Half a unit for each 4 KB begun, over the sum of the page: Scan is eventually consistent. [docs]
        assert page["ConsumedCapacity"] == {
            "TableName": page_view.table,
            "CapacityUnits": -(-read_bytes // 4096) / 2,
        }
        # A page holds one megabyte; on the item that passes it, implementations differ by one.
        if number < len(pages) - 1:
            assert abs(read_bytes - 2**20) <= item_bytes
            assert page["LastEvaluatedKey"] == {"page_id_user_id": page["Items"][-1]["page_id_user_id"]}
    assert len(json.dumps(pages[0]["Items"])) > 2**20 * 0.9


def test_a_counter_counts_first_views_only(page: Page, page_view: PageView) -> None:
    first = page.create(title="Page 1", content="Content 1")
    second = page.create(title="Page 2", content="Content 2")
    returning_user = uuid4()
    for i in range(100):
        if i % 2 == 0 and page_view.view(first, uuid4()):
            page.increment_views_count(first)
        if i % 3 == 0 and page_view.view(second, uuid4()):
            page.increment_views_count(second)
        if page_view.view(first, returning_user):
            assert i == 0
    assert page.get(first) == {
        "page_id": first, "title": "Page 1", "content": "Content 1", "views_count": 50,
    }
    assert page.get(second)["views_count"] == 34
    assert page.increment_views_count(second) == 35
