"""The crash test of backups, exports, imports and bulk operations: killed at any moment, while others write.

The accounts, and the threads that move amounts between them, are those of `history_level`. Meanwhile a thread
begins a backup, an export, an import, a bulk operation and a restore, and sweeps in small bites.
After the kills each of them ends: a backup and an export have all accounts with their sum, an imported table
has all its items, a table is never ACTIVE before it is completely filled, and the report of a bulk operation
lists each of its errors once.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from threading import Thread

import orjson
import pytest

from crash.history_level import ACCOUNTS, AMOUNT, COUNT, Acknowledge, check_whole, move, prepare, scan
from hashrange.database import Database, Settings
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.tables.background import sweeps
from hashrange.tables.inspection.check import check as problems
from hashrange.tables.jobs.bulk import bulk_runner as bulk_work
from hashrange.tables.jobs.exports import export_runner as exports_work
from worlds import create, table_of

ITEMS, ERRORS = 60, 20
BITE_ITEMS = 25
BUCKET = "bucket"
BULK = "bulk"


def opened(directory: str) -> Database:
    bucket = Path(directory, "s3", BUCKET)
    settings = Settings(s3_dir=str(bucket.parent), backup_dir=str(Path(directory, "backups")))
    if not bucket.exists():
        unfinished = bucket.with_name(f".{BUCKET}")
        (unfinished / "in").mkdir(parents=True, exist_ok=True)
        rows = [{"Item": {"name": {"S": f"item {number}"}}} for number in range(ITEMS)]
        rows += [{"Item": {}} for _ in range(ERRORS)]
        (unfinished / "in" / "good").write_bytes(b"\n".join(map(orjson.dumps, rows[:ITEMS])))
        (unfinished / "in" / "worse").write_bytes(b"\n".join(map(orjson.dumps, rows[ITEMS:])))
        unfinished.rename(bucket)
    return Database(EmbeddedEngine(f"{directory}/data", write_buffer_bytes=256 * 1024), settings=settings)


def small_bites() -> None:
    """Let the background work take small bites, until the process is killed."""
    patch = pytest.MonkeyPatch()
    patch.setattr(sweeps, "BITE_ITEMS", BITE_ITEMS)
    patch.setattr(exports_work, "OBJECT_BYTES", 1)
    patch.setattr(bulk_work, "REPORT_LINES", 5)


def begin(database: Database, number: int) -> None:
    """Begin one job of each kind, named by the number."""
    execute = database.execute
    backup = execute("CreateBackup", {"TableName": ACCOUNTS, "BackupName": f"backup-{number}"})
    table = execute("DescribeTable", {"TableName": ACCOUNTS})["Table"]
    export = {"TableArn": table["TableArn"], "S3Bucket": BUCKET, "S3Prefix": "out"}
    execute("ExportTableToPointInTime", export)
    read = {"S3Bucket": BUCKET, "S3KeyPrefix": "in/good"}
    execute(
        "ImportTable",
        {
            "S3BucketSource": read,
            "InputFormat": "DYNAMODB_JSON",
            "TableCreationParameters": table_of(f"imported-{number}", "name"),
        },
    )
    execute(
        "StartBulkPutItems",
        {
            "TableName": BULK,
            "InputS3Configuration": {**read, "S3KeyPrefix": "in/", "InputFormat": "DYNAMODB_JSON"},
            "OutputS3Configuration": {"S3Bucket": BUCKET, "S3KeyPrefix": "reports", "OutputType": ["ERROR"]},
        },
    )
    arn = backup["BackupDetails"]["BackupArn"]
    while states(database)[arn] == "CREATING":
        database.sweep()
    execute("RestoreTableFromBackup", {"TargetTableName": f"restored-{number}", "BackupArn": arn})


def states(database: Database) -> dict[str, str]:
    summaries = database.execute("ListBackups", {})["BackupSummaries"]
    return {summary["BackupArn"]: summary["BackupStatus"] for summary in summaries}


def tables(database: Database) -> dict[str, str]:
    names = database.execute("ListTables", {})["TableNames"]
    return {
        name: database.execute("DescribeTable", {"TableName": name})["Table"]["TableStatus"] for name in names
    }


def run(directory: str, acknowledge: Acknowledge) -> None:
    """Write, and move tables in and out, until killed."""
    small_bites()
    database = opened(directory)
    prepare(database)
    if BULK not in tables(database):
        create(database, BULK, "name")
    number = len(states(database))

    def transfer() -> None:
        nonlocal number
        while True:
            number += 1
            begin(database, number)
            acknowledge(f"begun {number}")
            while database.sweep() <= 0:
                pass

    threads = [Thread(target=move, args=(database,)) for _ in range(2)]
    threads.append(Thread(target=transfer))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check(directory: str, acknowledged: list[str]) -> int:
    """Assert that every job that was begun ends as it should; return how many backups there are."""
    database = opened(directory)
    try:
        check_tables(database)
        database.settle()
        check_tables(database)
        assert set(tables(database).values()) <= {"ACTIVE"}
        assert set(states(database).values()) <= {"AVAILABLE"}
        found = [str(problem) for problem in problems(database.engine)]
        assert not found, found
        assert len(states(database)) >= len(acknowledged)
        check_exports(database, Path(directory, "s3", BUCKET))
        check_bulk(database, Path(directory, "s3", BUCKET))
    finally:
        database.close()
    return len(states_kept(directory))


def states_kept(directory: str) -> list[Path]:
    """The folders of complete backups."""
    folder = Path(directory, "backups")
    return [one for one in folder.iterdir() if not one.name.startswith(".")] if folder.exists() else []


def check_tables(database: Database) -> None:
    """Assert that no table is ACTIVE before it is complete."""
    for name, status in tables(database).items():
        if status != "ACTIVE":
            continue
        if name.startswith("restored-"):
            check_whole(database, name)
        elif name.startswith("imported-"):
            assert len(scan(database, name)) == ITEMS, name


def check_exports(database: Database, bucket: Path) -> None:
    for listed in database.execute("ListExports", {"MaxResults": 25})["ExportSummaries"]:
        assert listed["ExportStatus"] == "COMPLETED"
        shown = database.execute("DescribeExport", {"ExportArn": listed["ExportArn"]})["ExportDescription"]
        files = (bucket / shown["ExportManifest"]).with_name("manifest-files.json")
        accounts = [
            orjson.loads(line)["Item"]
            for entry in map(orjson.loads, files.read_bytes().splitlines())
            for line in gzip.decompress((bucket / entry["dataFileS3Key"]).read_bytes()).splitlines()
        ]
        assert len(accounts) == COUNT
        assert sum(int(item["amount"]["N"]) for item in accounts) == COUNT * AMOUNT


def check_bulk(database: Database, bucket: Path) -> None:
    for listed in database.execute("ListBulkOperations", {"MaxResults": 25})["BulkOperationsSummaryList"]:
        assert listed["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
        request = {"BulkOperationArn": listed["BulkOperationArn"]}
        shown = database.execute("DescribeBulkOperation", request)["BulkOperationDescription"]
        assert (shown["ProcessedItemCount"], shown["FailedItemCount"]) == (ITEMS + ERRORS, ERRORS)
        report = bucket / "reports" / "AWSDynamoDB" / listed["BulkOperationArn"].rpartition("/")[2]
        positions = [
            orjson.loads(line)["ItemS3Pointer"]["ItemIndex"]
            for path in (report / "data").iterdir()
            for line in gzip.decompress(path.read_bytes()).splitlines()
        ]
        assert sorted(positions) == list(range(ERRORS))
