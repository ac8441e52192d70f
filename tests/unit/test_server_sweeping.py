"""The background work of a server: a bucket that does not answer holds up neither it nor the end."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import boto3
import orjson
import pytest
from botocore.config import Config

from hashrange.cli.admin import bind_admin
from hashrange.server import running
from hashrange.tables.background import units
from importing import BUCKET, NOW, World
from importing import request as import_request
from serving import serving
from worlds import expiry_of, recovery_of, table_of

SECONDS_MAX = 60.0
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/old"
JOBS: dict[str, dict[str, Any]] = {
    "ImportTable": import_request("new"),
    "ExportTableToPointInTime": {"TableArn": ARN, "S3Bucket": BUCKET},
    "StartBulkPutItems": {
        "TableName": "old",
        "InputS3Configuration": {"S3Bucket": BUCKET, "InputFormat": "DYNAMODB_JSON"},
        "OutputS3Configuration": {"S3Bucket": BUCKET, "OutputType": ["ERROR"]},
    },
}
DESCRIBE = {
    "ImportTable": ("DescribeImport", "ImportArn", "ImportStatus"),
    "ExportTableToPointInTime": ("DescribeExport", "ExportArn", "ExportStatus"),
    "StartBulkPutItems": ("DescribeBulkOperation", "BulkOperationArn", "BulkOperationStatus"),
}


class Silent:
    """Buckets that answer no call before they are released, and then fail."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.released = threading.Event()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.reached.set()
            self.released.wait(SECONDS_MAX)
            raise ConnectionError("the bucket does not answer")

        return call


def eventually(is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + SECONDS_MAX / 2
    while not is_so():
        assert time.monotonic() < give_up


def world_with_a_table(directory: Path) -> World:
    world = World(directory, durable=True, sweep_seconds=0.01)
    world("CreateTable", **table_of("old", "pk"))
    world("UpdateContinuousBackups", **recovery_of("old"))
    world("UpdateTimeToLive", **expiry_of("old", "expires"))
    world.database.settle()
    return world


@pytest.mark.parametrize("operation", JOBS)
def test_a_silent_bucket_holds_up_neither_other_work_nor_the_end(
    operation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = world_with_a_table(tmp_path)
    silent = Silent()
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "hashrange"):
        patch.setattr("hashrange.buckets.of", lambda *given: silent)
        patch.setattr(units, "WAITING_SECONDS", 0.0)
        patch.setattr("hashrange.server.run._JOBS_END_SECONDS_MAX", 0.1)
        admin = bind_admin(0)
        with running(world.database, admin=admin):
            [begun] = world(operation, **JOBS[operation]).values()
            assert silent.reached.wait(SECONDS_MAX)
            item = {"pk": {"S": "a"}, "expires": {"N": str(int(NOW) - 100)}}
            world("PutItem", TableName="old", Item=item)
            eventually(lambda: world.scan("old") == [])
            backup = world("CreateBackup", TableName="old", BackupName="beside")["BackupDetails"]["BackupArn"]

            def is_written(arn: str = backup) -> bool:
                described = world("DescribeBackup", BackupArn=arn)["BackupDescription"]
                return bool(described["BackupDetails"]["BackupStatus"] == "AVAILABLE")

            eventually(is_written)
            with urlopen(f"{admin.url}/health") as answer:
                health = orjson.loads(answer.read())
            [waiting] = [thread for thread in threading.enumerate() if thread.name == "hashrange-jobs"]
        world.database.close()
        assert health["status"] == "degraded"
        assert health["waiting"][0]["unit"].endswith(f" {begun[DESCRIBE[operation][1]].rpartition('/')[2]}")
        assert "failing" not in health
        assert "pending background work is abandoned" in caplog.messages
        silent.released.set()
        waiting.join(SECONDS_MAX)
        assert not waiting.is_alive()
    world.open()
    world.database.settle()
    describe, name, status = DESCRIBE[operation]
    [shown] = world(describe, **{name: begun[name]}).values()
    assert shown[status] == "COMPLETED"
    world.database.close()


def test_a_signal_ends_a_server_whose_bucket_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`serving` fails if the server does not end soon after SIGTERM."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(SECONDS_MAX)
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with serving("--data-dir", str(tmp_path / "data"), "--s3-endpoint", endpoint) as server:
            client = boto3.client(
                "dynamodb", endpoint_url=server.endpoint, region_name="us-east-1", config=Config(retries={})
            )
            client.import_table(**import_request("new"))
            connection, _ = silent.accept()
            connection.recv(1)
            client.close()
        connection.close()
