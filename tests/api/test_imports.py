"""Imports through boto3: waiters, pages, errors, and that a server goes on with them after it was killed."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from botocore.exceptions import WaiterError

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
    folder = buckets / f"bucket-{next(_numbers)}"
    folder.mkdir()
    return folder


@pytest.fixture
def ended(request: pytest.FixtureRequest, client: DynamoDBClient, transport: str) -> Callable[[str], Any]:
    """Wait until an import has ended; returns its description."""

    def ended(arn: str) -> Any:
        if transport == "in-process":
            database: Database = request.getfixturevalue("in_process_database")
            database.settle()
        waiter = client.get_waiter("import_completed")
        try:
            waiter.wait(ImportArn=arn, WaiterConfig=SOON)
        except WaiterError:
            assert client.describe_import(ImportArn=arn)["ImportTableDescription"]["ImportStatus"] == "FAILED"
        return client.describe_import(ImportArn=arn)["ImportTableDescription"]

    return ended


def begin(client: DynamoDBClient, table: str, bucket: Path | str, **given: Any) -> str:
    options: dict[str, Any] = {
        "S3BucketSource": {"S3Bucket": bucket if isinstance(bucket, str) else bucket.name},
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": table_of(table, "pk"),
    }
    return client.import_table(**{**options, **given})["ImportTableDescription"]["ImportArn"]


def lines(count: int, text: str = "x") -> bytes:
    items = ({"pk": {"S": f"item {number}"}, "text": {"S": text}} for number in range(count))
    return b"".join(orjson.dumps({"Item": item}) + b"\n" for item in items)


def test_an_import(
    client: DynamoDBClient, name_table: Callable[..., str], bucket: Path, ended: Callable[[str], Any]
) -> None:
    name = name_table("imported")
    (bucket / "data").mkdir()
    (bucket / "data" / "a.json.gz").write_bytes(gzip.compress(lines(2_000)))
    source = {"S3Bucket": bucket.name, "S3KeyPrefix": "data/"}
    arn = begin(client, name, bucket, S3BucketSource=source, InputCompressionType="GZIP")
    shown = ended(arn)
    assert shown["ImportStatus"] == "COMPLETED"
    assert shown["ImportedItemCount"] == 2_000
    assert shown["ClientToken"]  # which the SDK makes
    assert client.describe_table(TableName=name)["Table"]["ItemCount"] == 2_000
    assert client.get_item(TableName=name, Key={"pk": {"S": "item 7"}})["Item"]["text"] == {"S": "x"}
    with pytest.raises(client.exceptions.ResourceInUseException, match=f"Table already exists: {name}"):
        begin(client, name, bucket)
    listed = client.list_imports(TableArn=shown["TableArn"])["ImportSummaryList"]
    assert [one["ImportArn"] for one in listed] == [arn]


def test_failures(
    client: DynamoDBClient, name_table: Callable[..., str], bucket: Path, ended: Callable[[str], Any]
) -> None:
    (bucket / "a.json").write_bytes(lines(3) + b'{"Item":{"other":{"S":"x"}}}\n')
    name = name_table("partly")
    shown = ended(begin(client, name, bucket))
    assert (shown["FailureCode"], shown["ImportedItemCount"]) == ("ItemValidationError", 3)
    assert client.scan(TableName=name)["Count"] == 3
    shown = ended(begin(client, name_table("nowhere"), "absent-bucket"))
    assert shown["FailureCode"] == "S3NoSuchBucket"
    with pytest.raises(client.exceptions.ImportNotFoundException):
        client.describe_import(ImportArn=shown["ImportArn"][:-8] + "00000000")
    with pytest.raises(client.exceptions.ClientError, match="Invalid Import ARN"):
        client.describe_import(ImportArn=shown["TableArn"])
