"""A server that is killed amid a job for a bucket or a backup goes on with the job after its next start."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import boto3
import orjson
import pytest

from api.test_backups import fill, status_of, wait_for
from api.test_bulk import create, start, write
from api.test_exports import items_in, recover
from api.test_imports import begin, lines
from endpoints import OTHER_ENDPOINT, SOON, connection
from serving import serving
from worlds import table_of

pytestmark = pytest.mark.skipif(bool(OTHER_ENDPOINT), reason="it kills servers")


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
        client.get_waiter("table_exists").wait(TableName="restored", WaiterConfig=SOON)
        table = client.describe_table(TableName="restored")["Table"]
        assert table["ItemCount"] == table["GlobalSecondaryIndexes"][0]["ItemCount"] == count
        assert "Item" in client.get_item(TableName="restored", Key={"pk": {"S": "item 0"}})
        assert client.describe_table(TableName="music")["Table"]["ItemCount"] == count - 1
        [folder] = (tmp_path / "backups").iterdir()
        assert not folder.name.startswith(".")


def test_a_killed_server_goes_on_with_an_export(tmp_path: Path) -> None:
    """SIGKILL in the middle, several times, beside writes: the export is what the table was at its moment."""
    bucket = tmp_path / "s3" / "bucket"
    bucket.mkdir(parents=True)
    count = 20_000
    rows = (orjson.dumps({"Item": {"pk": {"S": str(n)}, "n": {"N": str(n)}}}) for n in range(count))
    (bucket / "items.json").write_bytes(b"\n".join(rows))
    options = ("--data-dir", str(tmp_path / "data"), "--s3-dir", str(tmp_path / "s3"), "--admin-port", "0")
    with serving(*options) as server:
        client = boto3.client("dynamodb", **connection(server.endpoint))
        parameters: Any = table_of("table", "pk")
        imported = client.import_table(
            S3BucketSource={"S3Bucket": "bucket"},
            InputFormat="DYNAMODB_JSON",
            TableCreationParameters=parameters,
        )["ImportTableDescription"]["ImportArn"]
        client.get_waiter("import_completed").wait(ImportArn=imported, WaiterConfig=SOON)
        table_arn = recover(client, "table")
    arn, halves = "", 0
    for kill in range(4):
        with serving(*options) as server:
            client = boto3.client("dynamodb", **connection(server.endpoint))
            if not arn:
                begun = client.export_table_to_point_in_time(TableArn=table_arn, S3Bucket="bucket")
                arn = begun["ExportDescription"]["ExportArn"]
            for number in range(30 * kill):
                client.put_item(TableName="table", Item={"pk": {"S": str(number * 31)}, "later": {"S": "x"}})
            shown = client.describe_export(ExportArn=arn)["ExportDescription"]
            halves += shown["ExportStatus"] == "IN_PROGRESS"
            server.kill()
    assert halves > 0
    with serving(*options) as server:
        client = boto3.client("dynamodb", **connection(server.endpoint))
        client.get_waiter("export_completed").wait(ExportArn=arn, WaiterConfig=SOON)
        found = items_in(bucket, client.describe_export(ExportArn=arn)["ExportDescription"])
    assert sorted(int(item["n"]["N"]) for item in found) == list(range(count))
    assert all(set(item) == {"pk", "n"} for item in found)


def test_a_killed_server_goes_on_with_an_import(tmp_path: Path) -> None:
    """SIGKILL in the middle, several times: the counts are those of an import that nothing interrupted."""
    bucket = tmp_path / "s3" / "bucket"
    bucket.mkdir(parents=True)
    count = 30_000
    for number in range(3):
        part = lines(count, "x" * 200).splitlines(keepends=True)[number::3]
        (bucket / f"part-{number}.gz").write_bytes(gzip.compress(b"".join(part), compresslevel=1))
    options = ("--data-dir", str(tmp_path / "data"), "--s3-dir", str(tmp_path / "s3"), "--admin-port", "0")
    arn = ""
    seen: list[int] = []
    for kill in range(4):
        with serving(*options) as server:
            client = boto3.client("dynamodb", **connection(server.endpoint))
            arn = arn or begin(client, "imported", "bucket", InputCompressionType="GZIP")
            while True:
                shown = client.describe_import(ImportArn=arn)["ImportTableDescription"]
                if shown["ImportStatus"] != "IN_PROGRESS" or shown["ProcessedItemCount"] > kill * count // 4:
                    break
            seen.append(shown["ProcessedItemCount"])
            server.kill()
    assert seen == sorted(seen)
    assert any(0 < number < count for number in seen)
    with serving(*options) as server:
        client = boto3.client("dynamodb", **connection(server.endpoint))
        client.get_waiter("import_completed").wait(ImportArn=arn, WaiterConfig=SOON)
        shown = client.describe_import(ImportArn=arn)["ImportTableDescription"]
        assert (shown["ProcessedItemCount"], shown["ImportedItemCount"]) == (count, count)
        assert shown["ErrorCount"] == 0
        table = client.describe_table(TableName="imported")["Table"]
        assert (table["TableStatus"], table["ItemCount"]) == ("ACTIVE", count)


def test_a_killed_server_goes_on_with_a_bulk_operation(tmp_path: Path) -> None:
    """SIGKILL in the middle, several times: all is counted once, and reported once."""
    bucket = tmp_path / "s3" / "bucket"
    bucket.mkdir(parents=True)
    count = 24_000
    for part in range(3):
        puts: list[dict[str, Any]] = [
            {"Item": {"pk": {"S": f"item {number}"}, "text": {"S": "x" * 200}} if number % 10 else {}}
            for number in range(part, count, 3)
        ]
        write(bucket, f"{part}.gz", *puts)
    options = ("--data-dir", str(tmp_path / "data"), "--s3-dir", str(tmp_path / "s3"), "--admin-port", "0")
    arn = ""
    seen: list[int] = []
    for kill in range(4):
        with serving(*options) as server:
            client: Any = boto3.client("dynamodb", **connection(server.endpoint))
            if not arn:
                create(client, "filled")
                arn = start(client, "filled", "bucket", InputCompressionType="GZIP")
            while True:
                shown = client.describe_bulk_operation(BulkOperationArn=arn)["BulkOperationDescription"]
                done = shown["ProcessedItemCount"]
                if shown["BulkOperationStatus"] != "IN_PROGRESS" or done > kill * count // 4:
                    break
            seen.append(done)
            server.kill()
    assert seen == sorted(seen)
    assert any(0 < number < count for number in seen)
    with serving(*options) as server:
        client = boto3.client("dynamodb", **connection(server.endpoint))
        client.get_waiter("bulk_operation_completed").wait(BulkOperationArn=arn, WaiterConfig=SOON)
        shown = client.describe_bulk_operation(BulkOperationArn=arn)["BulkOperationDescription"]
        assert (shown["ProcessedItemCount"], shown["FailedItemCount"]) == (count, count // 10)
        assert client.describe_table(TableName="filled")["Table"]["ItemCount"] == count - count // 10
    reported = [
        orjson.loads(line)
        for path in (bucket / "out").rglob("*.json.gz")
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    places = {(line["ItemS3Pointer"]["Key"], line["ItemS3Pointer"]["ItemIndex"]) for line in reported}
    assert len(places) == len(reported) == count // 10
