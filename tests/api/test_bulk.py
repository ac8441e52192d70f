"""Bulk operations through boto3: waiters, pages, and that a server goes on with them after it was killed."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from endpoints import OTHER_ENDPOINT, SOON
from hashrange.database import Database
from worlds import table_of

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

pytestmark = pytest.mark.skipif(bool(OTHER_ENDPOINT), reason="its buckets are not within reach")

_numbers = itertools.count()


@pytest.fixture
def bucket(buckets: Path) -> Path:
    """A bucket of this test's own."""
    folder = buckets / f"bulk-bucket-{next(_numbers)}"
    folder.mkdir()
    return folder


def create(client: Any, name: str) -> None:
    client.create_table(**table_of(name, "pk"))
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=SOON)


def start(client: Any, table: str, bucket: str, **read: Any) -> str:
    answer = client.start_bulk_put_items(
        TableName=table,
        InputS3Configuration={
            "S3Bucket": bucket, "S3KeyPrefix": "in/", "InputFormat": "DYNAMODB_JSON", **read
        },
        OutputS3Configuration={
            "S3Bucket": bucket,
            "S3KeyPrefix": "out",
            "OutputType": ["ERROR", "CONDITION_CHECK_FAILURE"],
        },
    )
    arn: str = answer["BulkOperationDescription"]["BulkOperationArn"]
    return arn


def write(bucket: Path, key: str, *rows: dict[str, Any]) -> None:
    path = bucket / "in" / key
    path.parent.mkdir(exist_ok=True)
    data = b"".join(orjson.dumps(row) + b"\n" for row in rows)
    path.write_bytes(gzip.compress(data, compresslevel=1) if key.endswith(".gz") else data)


def test_waiters_pages_and_cancelling(
    request: pytest.FixtureRequest, client: DynamoDBClient, transport: str, bucket: Path
) -> None:
    table = f"bulk-{next(_numbers)}-{transport}"
    create(client, table)
    new = {"ConditionExpression": "attribute_not_exists(pk)"}
    puts: list[dict[str, Any]] = [{"Item": {"pk": {"S": str(number % 3)}}, **new} for number in range(5)]
    write(bucket, "a", *puts, {"Item": {}})
    untyped: Any = client
    arn = start(client, table, bucket.name)
    if transport == "in-process":
        database: Database = request.getfixturevalue("in_process_database")
        database.settle()
    untyped.get_waiter("bulk_operation_completed").wait(
        BulkOperationArn=arn, WaiterConfig=SOON
    )
    shown = untyped.describe_bulk_operation(BulkOperationArn=arn)["BulkOperationDescription"]
    assert shown["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
    assert (shown["ProcessedItemCount"], shown["FailedItemCount"]) == (6, 1)
    assert client.scan(TableName=table)["Count"] == 3
    [data] = (bucket / "out").rglob("*.json.gz")
    lines = [orjson.loads(line) for line in gzip.decompress(data.read_bytes()).splitlines()]
    assert [line["OutputType"] for line in lines] == ["CONDITION_CHECK_FAILURE"] * 2 + ["ERROR"]
    others = [start(client, table, "no-such-bucket") for _ in range(3)]
    pages = untyped.get_paginator("list_bulk_operations").paginate(PaginationConfig={"PageSize": 2})
    listed = [one["BulkOperationArn"] for page in pages for one in page["BulkOperationsSummaryList"]]
    assert set(listed[:3]) == set(others)  # they may have begun in the same millisecond
    assert listed[3] == arn
    with pytest.raises(untyped.exceptions.ResourceNotFoundException):
        untyped.cancel_bulk_operation(BulkOperationArn=arn)
