"""Backups through boto3: pages, errors, and that a server goes on with them after it was killed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from endpoints import OTHER_ENDPOINT, SOON
from hashrange.database import Database
from worlds import index_on, schema_of

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

pytestmark = pytest.mark.skipif(bool(OTHER_ENDPOINT), reason="it watches how far backups are")

KEY: Any = schema_of("pk")
INDEXED: Any = {
    **KEY,
    "AttributeDefinitions": [*KEY["AttributeDefinitions"], {"AttributeName": "n", "AttributeType": "N"}],
    "GlobalSecondaryIndexes": [index_on("by-n", "n | KEYS_ONLY")],
}


def status_of(client: DynamoDBClient, arn: str) -> str:
    return client.describe_backup(BackupArn=arn)["BackupDescription"]["BackupDetails"]["BackupStatus"]


def wait_for(client: DynamoDBClient, arn: str) -> None:
    while status_of(client, arn) == "CREATING":
        pass


@pytest.fixture
def settle(request: pytest.FixtureRequest, transport: str) -> Callable[[], None]:
    """Do the background work, where no server does it."""

    def settle() -> None:
        if transport == "in-process":
            database: Database = request.getfixturevalue("in_process_database")
            database.settle()

    return settle


def test_a_backup_from_its_creation_to_its_deletion(
    client: DynamoDBClient, name_table: Callable[[str], str], settle: Callable[[], None]
) -> None:
    name, restored = name_table("music"), name_table("restored")
    client.create_table(TableName=name, **INDEXED)
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "n": {"N": "1"}})
    arns = [
        client.create_backup(TableName=name, BackupName=f"backup-{number}")["BackupDetails"]["BackupArn"]
        for number in range(5)
    ]
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "n": {"N": "2"}})
    settle()
    for arn in arns:
        wait_for(client, arn)
    pages = client.get_paginator("list_backups").paginate(TableName=name, PaginationConfig={"PageSize": 2})
    found = [[one["BackupArn"] for one in page["BackupSummaries"]] for page in pages]
    assert [len(page) for page in found] == [2, 2, 1]
    assert sorted(arn for page in found for arn in page) == sorted(arns)
    client.restore_table_from_backup(TargetTableName=restored, BackupArn=arns[0])
    settle()
    client.get_waiter("table_exists").wait(TableName=restored, WaiterConfig=SOON)
    assert client.scan(TableName=restored)["Items"] == [{"pk": {"S": "a"}, "n": {"N": "1"}}]
    for arn in arns:
        deleted = client.delete_backup(BackupArn=arn)["BackupDescription"]["BackupDetails"]
        assert deleted["BackupStatus"] == "DELETED"
        with pytest.raises(client.exceptions.BackupNotFoundException):
            client.describe_backup(BackupArn=arn)
    with pytest.raises(client.exceptions.TableNotFoundException):
        client.create_backup(TableName=name_table("absent"), BackupName="nightly")


def fill(client: DynamoDBClient, count: int) -> None:
    client.create_table(TableName="music", **INDEXED)
    for start in range(0, count, 25):
        puts: Any = [
            {
                "PutRequest": {
                    "Item": {"pk": {"S": f"item {n}"}, "n": {"N": str(n % 7)}, "x": {"S": "x" * 300}}
                }
            }
            for n in range(start, start + 25)
        ]
        client.batch_write_item(RequestItems={"music": puts})
