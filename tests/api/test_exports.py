"""Exports through boto3: waiters, errors, an import of what was exported, and servers that are killed."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from endpoints import OTHER_ENDPOINT, SOON
from hashrange.database import Database
from worlds import recovery_of, table_of

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

pytestmark = pytest.mark.skipif(bool(OTHER_ENDPOINT), reason="its buckets are not within reach")

_numbers = itertools.count()


@pytest.fixture
def bucket(buckets: Path) -> Path:
    """A bucket of this test's own."""
    folder = buckets / f"export-bucket-{next(_numbers)}"
    folder.mkdir()
    return folder


def recover(client: DynamoDBClient, table: str) -> str:
    """Switch recovery on; returns the table's ARN."""
    client.update_continuous_backups(**recovery_of(table))
    return client.describe_table(TableName=table)["Table"]["TableArn"]


def items_in(folder: Path, shown: Any) -> list[Any]:
    """The items of an export that was completed, by its manifests."""
    summary = orjson.loads((folder / shown["ExportManifest"]).read_bytes())
    manifest = (folder / summary["manifestFilesS3Key"]).read_bytes()
    found: list[Any] = []
    for line in map(orjson.loads, manifest.splitlines()):
        content = gzip.decompress((folder / line["dataFileS3Key"]).read_bytes())
        found += [orjson.loads(one)["Item"] for one in content.splitlines()]
    assert len(found) == summary["itemCount"] == shown["ItemCount"]
    return found


def test_an_export_and_its_import(
    request: pytest.FixtureRequest,
    client: DynamoDBClient,
    transport: str,
    create: Callable[..., str],
    name_table: Callable[..., str],
    bucket: Path,
) -> None:
    name = create("exported", pk="S", hash_only=True)
    for number in range(40):
        client.put_item(TableName=name, Item={"pk": {"S": str(number)}, "b": {"B": b"\x00\x01"}})
    table_arn = client.describe_table(TableName=name)["Table"]["TableArn"]
    with pytest.raises(client.exceptions.PointInTimeRecoveryUnavailableException):
        client.export_table_to_point_in_time(TableArn=table_arn, S3Bucket=bucket.name)
    recover(client, name)
    begun = client.export_table_to_point_in_time(TableArn=table_arn, S3Bucket=bucket.name, S3Prefix="here")
    arn = begun["ExportDescription"]["ExportArn"]

    def settle() -> None:
        if transport == "in-process":
            database: Database = request.getfixturevalue("in_process_database")
            database.settle()

    settle()
    client.get_waiter("export_completed").wait(ExportArn=arn, WaiterConfig=SOON)
    shown = client.describe_export(ExportArn=arn)["ExportDescription"]
    assert len(items_in(bucket, shown)) == 40
    listed = client.list_exports(TableArn=table_arn)["ExportSummaries"]
    assert [one["ExportArn"] for one in listed] == [arn]
    with pytest.raises(client.exceptions.ExportNotFoundException):
        client.describe_export(ExportArn=arn[:-8] + "00000000")

    again = name_table("imported")
    parameters: Any = table_of(again, "pk")
    imported = client.import_table(
        S3BucketSource={"S3Bucket": bucket.name, "S3KeyPrefix": f"here/AWSDynamoDB/{arn[-23:]}/data/"},
        InputFormat="DYNAMODB_JSON",
        InputCompressionType="GZIP",
        TableCreationParameters=parameters,
    )["ImportTableDescription"]["ImportArn"]
    settle()
    client.get_waiter("import_completed").wait(ImportArn=imported, WaiterConfig=SOON)
    both = [sorted(client.scan(TableName=one)["Items"], key=str) for one in (name, again)]
    assert both[0] == both[1]
