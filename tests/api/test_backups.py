"""Backups through boto3: pages, errors, and that a server goes on with them after it was killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from endpoints import OTHER_ENDPOINT, connection
from hashrange.database import Database
from serving import serving

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

pytestmark = pytest.mark.skipif(bool(OTHER_ENDPOINT), reason="it watches how far backups are")

KEY: Any = {
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}
INDEXED: Any = {
    **KEY,
    "AttributeDefinitions": [*KEY["AttributeDefinitions"], {"AttributeName": "n", "AttributeType": "N"}],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-n",
            "KeySchema": [{"AttributeName": "n", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
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
    client.get_waiter("table_exists").wait(TableName=restored, WaiterConfig={"Delay": 1})
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


def test_a_killed_server_goes_on_with_a_backup_and_a_restore(tmp_path: Path) -> None:
    """SIGKILL in the middle, several times. The backup is that of its moment; the restored table is CREATING
    until it is whole."""
    count = 10_000
    options = ["--data-dir", str(tmp_path / "data"), "--backup-dir", str(tmp_path / "backups")]
    options += ["--admin-port", "0"]
    arn, kills, halves = "", 0, 0
    for kill in range(3):
        with serving(*options) as server:
            client = boto3.client("dynamodb", **connection(server.endpoint))
            if kill == 0:
                fill(client, count)
                arn = client.create_backup(TableName="music", BackupName="cut")["BackupDetails"]["BackupArn"]
                client.delete_item(TableName="music", Key={"pk": {"S": "item 0"}})
            kills += status_of(client, arn) == "CREATING"
            if kill == 1:
                # Wait until something is written, and end it in the middle.
                while status_of(client, arn) == "CREATING" and not any((tmp_path / "backups").glob(".*/*/*")):
                    pass
            server.kill()
    assert kills > 0
    for kill in range(4):
        with serving(*options) as server:
            client = boto3.client("dynamodb", **connection(server.endpoint))
            wait_for(client, arn)
            if kill == 0:
                client.restore_table_from_backup(TargetTableName="restored", BackupArn=arn)
            while True:
                table = client.describe_table(TableName="restored")["Table"]
                assert (table["TableStatus"] == "ACTIVE") == (table["ItemCount"] == count)
                if table["TableStatus"] == "ACTIVE" or table["ItemCount"] > kill * count // 4:
                    break
            halves += table["TableStatus"] == "CREATING"
            server.kill()
    assert halves > 0
    with serving(*options) as server:
        client = boto3.client("dynamodb", **connection(server.endpoint))
        client.get_waiter("table_exists").wait(TableName="restored", WaiterConfig={"Delay": 1})
        table = client.describe_table(TableName="restored")["Table"]
        assert table["ItemCount"] == table["GlobalSecondaryIndexes"][0]["ItemCount"] == count
        assert "Item" in client.get_item(TableName="restored", Key={"pk": {"S": "item 0"}})
        assert client.describe_table(TableName="music")["Table"]["ItemCount"] == count - 1
        [folder] = (tmp_path / "backups").iterdir()
        assert not folder.name.startswith(".")
