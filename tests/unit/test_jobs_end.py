"""Every job ends: whatever a row holds is an error of that row, and an error that cannot pass is given up."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backing import World as Backups
from doses import examples
from hashrange.buckets import Object
from hashrange.buckets.folders import Folders
from hashrange.database import Database
from hashrange.errors import BackupNotFoundException, ResourceInUseException
from hashrange.interchange import csv_files, dynamodb_json, ion
from hashrange.interchange.csv_files import Columns
from hashrange.interchange.rows import Bad
from hashrange.limits import IMPORTS_MAX
from hashrange.storage.failures import CommitFailed
from hashrange.tables.background.units import TRIES_MAX
from hashrange.tables.definitions.table import Table
from hashrange.tables.jobs.backups import backup_reader, backup_writer
from hashrange.tables.jobs.bulk import bulk_runner
from hashrange.tables.jobs.exports import export_runner
from hashrange.tables.jobs.imports import import_runner
from importing import BUCKET, World, encoded, item_of, request
from worlds import recovery_of

DIGITS = "9" * 5_000
PIECES = [
    *("{", "}", "[", "]", ":", ",", '"', "'", "'''", "\\", "\\u", "\\x4", "//", "/*", "*/", " ", "\r"),
    *("Item", "pk", "S", "N", "L", "M", "NS", "BOOL", "NULL", "null", "true", "nan", "null.int", "x"),
    *("$ion_1_0", "$dynamodb_NS", "$dynamodb_SS", "::", "{{", "}}", "aGk=", "2020-01-01T", "é", "\ud83d"),
    *("0", "1.", "-12", "1e", "2d3", "-0", ".5", "1_0", "0x", "0b1", "0xFF", "1e999999999999", "NaN"),
    *(DIGITS, f"-0x{DIGITS}", f"{DIGITS}.", f"1d{DIGITS}", f"0b{'1' * 5_000}", "[" * 500, "'''a''' " * 300),
    *("ConditionExpression", "ExpressionAttributeValues", "ExpressionAttributeNames", "attribute_exists(a)"),
]
VALUES = st.recursive(
    st.sampled_from(["1.", "1", '"x"', "null", "true", "{{aGk=}}", "n::1.", DIGITS, f"0x{DIGITS}", "sym"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda members: "[" + ",".join(members) + "]"),
        st.lists(inner, max_size=3).map(lambda members: "$dynamodb_NS::[" + ",".join(members) + "]"),
        st.dictionaries(st.sampled_from(["pk", "N", "S", "a"]), inner, max_size=3).map(
            lambda members: "{" + ",".join(f'"{name}":{value}' for name, value in members.items()) + "}"
        ),
    ),
    max_leaves=8,
)
MEMBERS = ["ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues", "Other"]
LINES = st.one_of(
    st.binary(max_size=40),
    st.lists(st.sampled_from(PIECES), max_size=12).map(
        lambda pieces: "".join(pieces).encode(errors="replace")
    ),
    VALUES.map(lambda value: f'{{"Item":{{"pk":{value}}}}}'.encode()),
    st.tuples(st.sampled_from(MEMBERS), VALUES, VALUES).map(
        lambda row: f'{{"Item":{{"pk":"x","a":{row[1]}}},"{row[0]}":{row[2]}}}'.encode()
    ),
)
COLUMNS = Columns(",", None, {"pk": "N"}, frozenset())




@given(LINES)
@example(f'{{Item:{{pk:"x",a:0x{"f" * 3_600}}}}}'.encode())
@example(f'{{"Item":{{"pk":{{"S":"x"}},"a":{{"N":{DIGITS}}}}}}}'.encode())
def test_readers_raise_nothing(line: bytes) -> None:
    """Of themselves, without `Rows`, which would turn an error into one of the row."""
    for read in (ion.read, ion.read_row, dynamodb_json.read, dynamodb_json.read_row):
        assert isinstance(read(line), dict | Bad)
    assert isinstance(csv_files.header_of(line, ","), tuple)
    assert isinstance(csv_files.read(line, ("pk", "a"), COLUMNS), dict | Bad)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("world"))
    world.database.execute("CreateTable", request("old")["TableCreationParameters"])
    yield world
    world.database.close()


SOUND = {
    "ION": b'{Item:{pk:"sound"}}\n',
    "DYNAMODB_JSON": b'{"Item":{"pk":{"S":"sound"}}}\n',
    "CSV": b"pk,a\nx,1\n",
}
UNFORESEEN = re.compile(r"(The row cannot be read: )?[A-Za-z]*(Error|Exception|Exit|Violation): ")


@given(LINES, st.sampled_from(list(SOUND)), st.sampled_from(["S", "N"]))
@example(f'{{Item:{{pk:"x",a:0x{"f" * 3_600}}}}}'.encode(), "ION", "S")
@example(b'{"Item":{"pk":{"N":"%b"}}}' % DIGITS.encode(), "DYNAMODB_JSON", "N")
@example(DIGITS.encode() + b",1", "CSV", "N")
def test_an_import_of_any_bytes_ends(world: World, line: bytes, kind: str, type_: str) -> None:
    """With errors that are foreseen."""
    world.put("a", SOUND[kind] + line)
    types = [{"AttributeName": "pk", "AttributeType": type_}]
    shown = world.done(kind=kind, parameters={"AttributeDefinitions": types})
    assert shown["ImportStatus"] in ("COMPLETED", "FAILED")
    assert shown.get("FailureCode", "ItemValidationError") == "ItemValidationError"
    messages = [message for error in world.errors(shown["ImportArn"]) for message in error["errorMessages"]]
    assert [message for message in messages if UNFORESEEN.match(message)] == []
    assert world.database.background.failing == {}
    world("DeleteTable", TableName="music")


@settings(max_examples=examples(40))  # each writes four files
@given(LINES, st.sampled_from(["ION", "DYNAMODB_JSON"]))
def test_a_bulk_operation_on_any_bytes_ends(world: World, line: bytes, kind: str) -> None:
    """With errors that are foreseen."""
    world.put("a", SOUND[kind] + line)
    shown = world(
        "StartBulkPutItems",
        TableName="old",
        InputS3Configuration={"S3Bucket": BUCKET, "S3KeyPrefix": "a", "InputFormat": kind},
        OutputS3Configuration={"S3Bucket": BUCKET, "S3KeyPrefix": "reports", "OutputType": ["ERROR"]},
    )["BulkOperationDescription"]
    world.database.settle()
    [shown] = world("DescribeBulkOperation", BulkOperationArn=shown["BulkOperationArn"]).values()
    assert shown["BulkOperationStatus"] in ("COMPLETED", "COMPLETED_WITH_ERRORS")
    lines = [
        told
        for file in world.folder.rglob("*.json.gz")
        for told in map(orjson.loads, gzip.decompress(file.read_bytes()).splitlines())
    ]
    assert [one for told in lines for one in told["ErrorMessages"] if UNFORESEEN.match(one)] == []
    shutil.rmtree(world.folder / "reports")
    assert world.database.background.failing == {}


def test_what_a_row_makes_its_reader_raise_is_an_error_of_that_row(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = dynamodb_json.read

    def at_fault(line: bytes) -> Any:
        if b"fault" in line:
            raise RecursionError("too deep")
        return read(line)

    put = import_runner._put

    def dividing(table: Table, item: dict[str, Any]) -> Any:
        return 1 / 0 if "zero" in item else put(table, item)

    monkeypatch.setattr("hashrange.interchange.object_rows.dynamodb_json.read", at_fault)
    monkeypatch.setattr(import_runner, "_put", dividing)
    items = [item_of(1), {"pk": {"S": "fault"}}, {"pk": {"S": "x"}, "zero": {"N": "0"}}, item_of(2)]
    world.put("a", encoded(items, "DYNAMODB_JSON"))
    shown = world.done()
    assert (shown["ImportedItemCount"], shown["ErrorCount"]) == (2, 2)
    assert [error["errorMessages"] for error in world.errors(shown["ImportArn"])] == [
        ["The row cannot be read: RecursionError: too deep"],
        ["ZeroDivisionError: division by zero"],
    ]
    world("DeleteTable", TableName="music")


class Steps:
    """A database whose background work is tried at once, as if time had passed between the tries."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.steady = 0.0
        database.background.steady = lambda: self.steady

    def sweep(self, times: int) -> None:
        for _ in range(times):
            self.database.sweep()
            self.steady += 1_000


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*given: Any, **more: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("kind", ["import", "export", "bulk"])
def test_a_job_is_given_up_after_some_tries_unless_its_error_may_pass(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    world("CreateTable", **request("old")["TableCreationParameters"])
    world("UpdateContinuousBackups", **recovery_of("old"))
    world.put("a", encoded([item_of(1)], "DYNAMODB_JSON"))
    operation, given_, describe, arn, prefix = JOBS[kind]
    [begun] = world(operation, **given_).values()

    def shown() -> tuple[str, str | None, str | None]:
        [found] = world(describe, **{arn: begun[arn]}).values()
        return found[f"{prefix}Status"], found.get("FailureCode"), found.get("FailureMessage")

    steps = Steps(world.database)
    with monkeypatch.context() as patch:
        for error in (ConnectionResetError("gone"), CommitFailed("the disk is full")):
            patch.setattr(RUNNERS[kind], "_progress", raising(error))
            steps.sweep(3 * TRIES_MAX)
            assert shown()[0] == "IN_PROGRESS"
    steps.sweep(1)  # a try that succeeds: the tries are counted again
    if shown()[0] != "IN_PROGRESS":
        return
    monkeypatch.setattr(RUNNERS[kind], "_progress", raising(ValueError("digits")))
    assert TRIES_MAX == 5  # (the tries are one, two, four and eight seconds apart: 15 in all)
    steps.sweep(TRIES_MAX - 1)
    assert shown()[0] == "IN_PROGRESS"
    steps.sweep(1)
    assert shown() == ("FAILED", "InternalServerError", "ValueError: digits")
    assert world.database.background.failing == {}
    world("DeleteTable", TableName="old" if kind != "import" else "music")
    world.database.close()


JOBS: dict[str, tuple[str, dict[str, Any], str, str, str]] = {
    "import": ("ImportTable", request("music"), "DescribeImport", "ImportArn", "Import"),
    "export": (
        "ExportTableToPointInTime",
        {"TableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/old", "S3Bucket": BUCKET},
        "DescribeExport",
        "ExportArn",
        "Export",
    ),
    "bulk": (
        "StartBulkPutItems",
        {
            "TableName": "old",
            "InputS3Configuration": {"S3Bucket": BUCKET, "InputFormat": "DYNAMODB_JSON"},
            "OutputS3Configuration": {"S3Bucket": BUCKET, "OutputType": ["ERROR"]},
        },
        "DescribeBulkOperation",
        "BulkOperationArn",
        "BulkOperation",
    ),
}
RUNNERS: dict[str, Any] = {
    "import": import_runner.Runner,
    "export": export_runner.Runner,
    "bulk": bulk_runner.Runner,
}


def test_imports_that_were_given_up_make_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    world.put("a", encoded([item_of(1)], "DYNAMODB_JSON"))
    begun = [world.begin(f"table-{number}") for number in range(IMPORTS_MAX)]
    with monkeypatch.context() as patch:
        patch.setattr(import_runner.Runner, "_progress", raising(ValueError("digits")))
        Steps(world.database).sweep(TRIES_MAX)
    assert {world.shown(arn)["ImportStatus"] for arn in begun} == {"FAILED"}
    assert world.done("another")["ImportStatus"] == "COMPLETED"
    world.database.close()


def test_a_table_whose_import_is_stalled_can_be_deleted(tmp_path: Path) -> None:
    """Others cannot, as on AWS."""
    world = World(tmp_path)
    buckets = Failing(world.folder.parent)
    world.database.jobs.imports.runner.buckets = buckets
    world.put("a", encoded([item_of(number) for number in range(1_000)], "DYNAMODB_JSON"))
    arn = world.begin()
    steps = Steps(world.database)
    steps.sweep(2)
    world.database.jobs.imports.forget()
    with pytest.raises(ResourceInUseException, match="Table is being created"):
        world("DeleteTable", TableName="music")
    buckets.error = ConnectionResetError("the network is gone")
    steps.sweep(TRIES_MAX)
    assert (world.shown(arn)["ImportStatus"], world.status()) == ("IN_PROGRESS", "CREATING")
    buckets.error = None
    steps.sweep(1)
    with pytest.raises(ResourceInUseException):  # it goes on
        world("DeleteTable", TableName="music")
    world.database.jobs.imports.forget()
    buckets.error = TimeoutError("the network is gone again")
    steps.sweep(TRIES_MAX)
    world("DeleteTable", TableName="music")
    steps.sweep(1)
    assert (world.shown(arn)["ImportStatus"], world.status()) == ("CANCELLED", None)
    world.database.close()


class Failing(Folders):
    """Buckets that cannot be reached on demand."""

    error: Exception | None = None

    def open(self, bucket: str, item_object: Object, offset: int = 0) -> Any:
        if self.error is not None:
            raise self.error
        return super().open(bucket, item_object, offset)


def test_a_backup_that_cannot_be_written_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = Backups(tmp_path)
    world.create()
    world.put(1)
    arn = world("CreateBackup", TableName="music", BackupName="one")["BackupDetails"]["BackupArn"]
    steps = Steps(world.database)
    with monkeypatch.context() as patch:
        patch.setattr(backup_writer.Writing, "add", raising(OSError(28, "No space left on device")))
        steps.sweep(3 * TRIES_MAX)
        details = world("DescribeBackup", BackupArn=arn)["BackupDescription"]["BackupDetails"]
        assert details["BackupStatus"] == "CREATING"
        patch.setattr(backup_writer.Writing, "add", raising(ValueError("digits")))
        steps.sweep(TRIES_MAX)
        with pytest.raises(BackupNotFoundException):
            world("DescribeBackup", BackupArn=arn)
    steps.sweep(1)
    assert world.database.background.failing == {}
    assert list(world.backups.glob("*")) == []
    world.database.close()


def test_a_restore_that_cannot_be_read_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = Backups(tmp_path)
    world.create()
    world.put(1)
    arn = world("CreateBackup", TableName="music", BackupName="one")["BackupDetails"]["BackupArn"]
    world.database.settle()
    world("RestoreTableFromBackup", TargetTableName="restored", BackupArn=arn)
    steps = Steps(world.database)
    monkeypatch.setattr(backup_reader.Reading, "take", raising(ValueError("digits")))
    steps.sweep(TRIES_MAX)
    assert world("ListTables")["TableNames"] == ["music"]
    [backup] = world.database.jobs.backups.runner.overview()
    assert backup["problem"] == "ValueError: digits"
    world.database.close()
