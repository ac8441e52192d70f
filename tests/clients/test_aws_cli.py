"""The AWS CLI, with the commands of the DynamoDB guide: shorthand, `file://`, `--query`, paging, waiters."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

Aws = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def aws(client_environment: dict[str, str]) -> Aws:
    """Run `aws ARGUMENTS` and return how it ended; it has to succeed unless it is expected to fail."""
    command = shutil.which("aws", path=str(Path(sys.executable).parent)) or shutil.which("aws")
    if command is None:
        pytest.skip("the AWS CLI is not installed")

    def aws(*arguments: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run(
            [command, *arguments], env=client_environment, capture_output=True, text=True, check=False
        )
        assert (ended.returncode != 0) == fails, ended.stderr
        return ended

    return aws


def test_getting_started(
    aws: Aws, http_client: DynamoDBClient, name_table: Callable[..., str], tmp_path: Path
) -> None:
    """The guide's table of music, from its creation to its deletion."""
    music = name_table("Music", http_client)
    created = aws(
        "dynamodb", "create-table", "--table-name", music,
        "--attribute-definitions", "AttributeName=Artist,AttributeType=S",
        "AttributeName=SongTitle,AttributeType=S",
        "--key-schema", "AttributeName=Artist,KeyType=HASH", "AttributeName=SongTitle,KeyType=RANGE",
        "--billing-mode", "PAY_PER_REQUEST", "--table-class", "STANDARD",
        "--query", "TableDescription.TableName", "--output", "text",
    )  # fmt: skip
    assert created.stdout.strip() == music
    aws("dynamodb", "wait", "table-exists", "--table-name", music)

    item = '{"Artist": {"S": "No One You Know"}, "SongTitle": {"S": "Call Me Today"}, "Awards": {"N": "1"}}'
    consumed = aws(
        "dynamodb", "put-item", "--table-name", music, "--item", item, "--return-consumed-capacity", "TOTAL"
    )
    assert json.loads(consumed.stdout) == {"ConsumedCapacity": {"TableName": music, "CapacityUnits": 1.0}}
    request = tmp_path / "batch.json"
    puts: list[Any] = [
        {"PutRequest": {"Item": {"Artist": {"S": "Acme Band"}, "SongTitle": {"S": f"Song {number}"}}}}
        for number in range(7)
    ]
    request.write_text(json.dumps({music: puts}), encoding="utf-8")
    aws("dynamodb", "batch-write-item", "--request-items", f"file://{request}")

    updated = aws(
        "dynamodb", "update-item", "--table-name", music,
        "--key", '{"Artist": {"S": "No One You Know"}, "SongTitle": {"S": "Call Me Today"}}',
        "--update-expression", "SET Awards = Awards + :one",
        "--expression-attribute-values", '{":one": {"N": "1"}}', "--return-values", "ALL_NEW",
        "--query", "Attributes.Awards.N", "--output", "text",
    )  # fmt: skip
    assert updated.stdout.strip() == "2"
    found = aws(
        "dynamodb", "query", "--table-name", music, "--key-condition-expression", "Artist = :band",
        "--expression-attribute-values", '{":band":{"S":"Acme Band"}}',
        "--page-size", "3", "--max-items", "5",
    )  # fmt: skip
    page = json.loads(found.stdout)
    assert [song["SongTitle"]["S"] for song in page["Items"]] == [f"Song {number}" for number in range(5)]
    rest = aws(
        "dynamodb", "query", "--table-name", music, "--key-condition-expression", "Artist = :band",
        "--expression-attribute-values", '{":band":{"S":"Acme Band"}}', "--starting-token", page["NextToken"],
    )  # fmt: skip
    assert [song["SongTitle"]["S"] for song in json.loads(rest.stdout)["Items"]] == ["Song 5", "Song 6"]
    chosen = aws(
        "dynamodb", "execute-statement",
        "--statement",
        f"SELECT Awards FROM \"{music}\" WHERE Artist='No One You Know' AND SongTitle='Call Me Today'",
        "--query", "Items[0].Awards.N", "--output", "text",
    )  # fmt: skip
    assert chosen.stdout.strip() == "2"

    refused = aws(
        "dynamodb", "put-item", "--table-name", music, "--item", item,
        "--condition-expression", "attribute_not_exists(Artist)", fails=True,
    )  # fmt: skip
    # [docs]
    assert "ConditionalCheckFailedException" in refused.stderr
    assert "The conditional request failed" in refused.stderr
    aws("dynamodb", "delete-table", "--table-name", music)
    aws("dynamodb", "wait", "table-not-exists", "--table-name", music)


def test_streams_and_time_to_live(
    aws: Aws, http_client: DynamoDBClient, name_table: Callable[..., str]
) -> None:
    music = name_table("Music", http_client)
    created = aws(
        "dynamodb", "create-table", "--table-name", music,
        "--attribute-definitions", "AttributeName=Artist,AttributeType=S",
        "--key-schema", "AttributeName=Artist,KeyType=HASH",
        "--provisioned-throughput", "ReadCapacityUnits=5,WriteCapacityUnits=5",
        "--stream-specification", "StreamEnabled=true,StreamViewType=NEW_IMAGE",
    )  # fmt: skip
    arn = json.loads(created.stdout)["TableDescription"]["LatestStreamArn"]
    aws("dynamodb", "wait", "table-exists", "--table-name", music)
    aws(
        "dynamodb", "update-time-to-live", "--table-name", music,
        "--time-to-live-specification", "Enabled=true,AttributeName=ttl",
    )  # fmt: skip
    aws("dynamodb", "put-item", "--table-name", music, "--item", '{"Artist": {"S": "Acme Band"}}')
    described = aws("dynamodbstreams", "describe-stream", "--stream-arn", arn)
    shard = json.loads(described.stdout)["StreamDescription"]["Shards"][0]["ShardId"]
    iterator = aws(
        "dynamodbstreams", "get-shard-iterator", "--stream-arn", arn, "--shard-id", shard,
        "--shard-iterator-type", "TRIM_HORIZON", "--output", "text",
    )  # fmt: skip
    records = aws("dynamodbstreams", "get-records", "--shard-iterator", iterator.stdout.strip())
    assert [record["dynamodb"]["NewImage"] for record in json.loads(records.stdout)["Records"]] == [
        {"Artist": {"S": "Acme Band"}}
    ]


def test_an_import(
    aws: Aws, http_client: DynamoDBClient, name_table: Callable[..., str], buckets: Path
) -> None:
    """The guide's commands: `import-table`, `describe-import`, `list-imports`, with its shorthand."""
    music = name_table("Imported", http_client)
    bucket = buckets / "cli-bucket"
    bucket.mkdir()
    (bucket / "import-test.csv").write_text("pk,title,year\nALB25,The Dark Side of the Moon,1973\n")
    parameters = {
        "TableName": music,
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    arn = aws(
        "dynamodb", "import-table", "--s3-bucket-source", "S3Bucket=cli-bucket,S3KeyPrefix=import-test.csv",
        "--input-format", "CSV", "--table-creation-parameters", json.dumps(parameters),
        "--query", "ImportTableDescription.ImportArn", "--output", "text",
    ).stdout.strip()  # fmt: skip
    # (the command would look again after 20 seconds only)
    http_client.get_waiter("import_completed").wait(ImportArn=arn, WaiterConfig={"Delay": 1})
    aws("dynamodb", "wait", "table-exists", "--table-name", music)
    shown = json.loads(aws("dynamodb", "describe-import", "--import-arn", arn).stdout)
    assert shown["ImportTableDescription"]["ImportStatus"] == "COMPLETED"
    item = aws("dynamodb", "scan", "--table-name", music, "--query", "Items[0].title.S", "--output", "text")
    assert item.stdout.strip() == "The Dark Side of the Moon"
    table_arn = shown["ImportTableDescription"]["TableArn"]
    listed = json.loads(aws("dynamodb", "list-imports", "--table-arn", table_arn).stdout)
    assert [one["ImportArn"] for one in listed["ImportSummaryList"]] == [arn]


def test_an_export(
    aws: Aws, http_client: DynamoDBClient, name_table: Callable[..., str], buckets: Path
) -> None:
    """The guide's commands: `export-table-to-point-in-time`, its waiter, `list-exports`."""
    music = name_table("Exported", http_client)
    (buckets / "cli-exports").mkdir()
    aws(
        "dynamodb", "create-table", "--table-name", music, "--billing-mode", "PAY_PER_REQUEST",
        "--attribute-definitions", "AttributeName=pk,AttributeType=S",
        "--key-schema", "AttributeName=pk,KeyType=HASH",
    )  # fmt: skip
    aws("dynamodb", "put-item", "--table-name", music, "--item", '{"pk": {"S": "ALB25"}}')
    aws(
        "dynamodb", "update-continuous-backups", "--table-name", music,
        "--point-in-time-recovery-specification", "PointInTimeRecoveryEnabled=True",
    )  # fmt: skip
    table_arn = http_client.describe_table(TableName=music)["Table"]["TableArn"]
    arn = aws(
        "dynamodb", "export-table-to-point-in-time", "--table-arn", table_arn, "--s3-bucket", "cli-exports",
        "--s3-prefix", "2020-Nov", "--query", "ExportDescription.ExportArn", "--output", "text",
    ).stdout.strip()  # fmt: skip
    http_client.get_waiter("export_completed").wait(ExportArn=arn, WaiterConfig={"Delay": 1})
    shown = json.loads(aws("dynamodb", "describe-export", "--export-arn", arn).stdout)["ExportDescription"]
    assert (shown["ExportStatus"], shown["ItemCount"]) == ("COMPLETED", 1)
    assert (buckets / "cli-exports" / shown["ExportManifest"]).exists()
    listed = json.loads(aws("dynamodb", "list-exports", "--table-arn", table_arn).stdout)
    assert [one["ExportArn"] for one in listed["ExportSummaries"]] == [arn]


def test_a_backup(aws: Aws, http_client: DynamoDBClient, name_table: Callable[..., str]) -> None:
    """The guide's commands: `create-backup`, `list-backups`, `restore-table-from-backup`, `delete-backup`."""
    music, restored = name_table("Music", http_client), name_table("Restored", http_client)
    aws(
        "dynamodb", "create-table", "--table-name", music,
        "--attribute-definitions", "AttributeName=Artist,AttributeType=S",
        "--key-schema", "AttributeName=Artist,KeyType=HASH", "--billing-mode", "PAY_PER_REQUEST",
    )  # fmt: skip
    aws("dynamodb", "put-item", "--table-name", music, "--item", '{"Artist": {"S": "Acme Band"}}')
    created = aws("dynamodb", "create-backup", "--table-name", music, "--backup-name", "MusicBackup")
    arn = json.loads(created.stdout)["BackupDetails"]["BackupArn"]
    while True:
        listed = aws("dynamodb", "list-backups", "--table-name", music, "--max-items", "1")
        [summary] = json.loads(listed.stdout)["BackupSummaries"]
        assert summary["BackupArn"] == arn
        if summary["BackupStatus"] == "AVAILABLE":
            break
    aws("dynamodb", "restore-table-from-backup", "--target-table-name", restored, "--backup-arn", arn)
    http_client.get_waiter("table_exists").wait(TableName=restored, WaiterConfig={"Delay": 1})
    aws("dynamodb", "wait", "table-exists", "--table-name", restored)
    found = json.loads(aws("dynamodb", "scan", "--table-name", restored).stdout)
    assert found["Items"] == [{"Artist": {"S": "Acme Band"}}]
    shown = aws("dynamodb", "describe-backup", "--backup-arn", arn)
    described = json.loads(shown.stdout)["BackupDescription"]
    assert described["SourceTableDetails"]["ItemCount"] == 1
    aws("dynamodb", "delete-backup", "--backup-arn", arn)
    refused = aws("dynamodb", "describe-backup", "--backup-arn", arn, fails=True)
    assert "BackupNotFoundException" in refused.stderr
