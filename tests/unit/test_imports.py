"""Imports: what they read and write, their states and counts, and what is refused."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from hashrange.database import Caller, Database
from hashrange.errors import (
    AccessDeniedException,
    ImportConflictException,
    ImportNotFoundException,
    LimitExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
    ValidationException,
)
from hashrange.interchange import compression as compressions
from hashrange.limits import IMPORTS_MAX
from hashrange.tables.inspection.check import check
from hashrange.tables.jobs.imports import import_runner
from hashrange.tables.jobs.imports.import_records import IMPORTS
from importing import BUCKET, COMPRESS, DAY, World, encoded, item_of, request

INVALID_ITEMS = (
    "Some of the items failed validation checks and were not imported. "
    "Please check CloudWatch error logs for more details."
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.database.close()


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("kind", ["CSV", "DYNAMODB_JSON", "ION"])
@pytest.mark.parametrize("compression", ["GZIP", "ZSTD", "NONE"])
def test_a_table_with_an_index_is_filled(
    tmp_path: Path, durable: bool, kind: str, compression: str
) -> None:
    world = World(tmp_path, durable=durable)
    items = [item_of(number) for number in range(700)]
    parts = [encoded(items[:300], kind), encoded(items[300:], kind)]
    for number, part in enumerate(parts):
        world.put(f"data/part-{number}", COMPRESS[compression](part))
    shown = world.done(prefix="data/", kind=kind, InputCompressionType=compression, indexed=True)
    assert shown["ImportStatus"] == "COMPLETED"
    assert (shown["ProcessedItemCount"], shown["ImportedItemCount"], shown["ErrorCount"]) == (700, 700, 0)
    assert shown["ProcessedSizeBytes"] == sum(map(len, parts))
    assert world.status() == "ACTIVE"
    found = sorted(world.scan(), key=lambda item: int(item["n"]["N"]))
    assert found == items
    indexed = world("Query", TableName="music", IndexName="by-group", KeyConditionExpression="#g = :g",
                    ExpressionAttributeNames={"#g": "group"},
                    ExpressionAttributeValues={":g": {"S": "group 3"}})["Items"]  # fmt: skip
    assert indexed == [item for item in items if item["group"]["S"] == "group 3"]
    assert list(check(world.database.engine)) == []
    world.database.close()


def test_csv_with_options(world: World) -> None:
    world.put("a.csv", b"x;1\ny;2\n")
    options = {"Csv": {"Delimiter": ";", "HeaderList": ["pk", "value"]}}
    shown = world.done(kind="CSV", InputFormatOptions=options)
    assert shown["ImportStatus"] == "COMPLETED"
    assert shown["InputFormatOptions"] == options
    assert len(world.scan()) == 2
    assert {"pk": {"S": "x"}, "value": {"S": "1"}} in world.scan()


def test_the_description_fills_in_what_the_request_leaves_out(world: World) -> None:
    """[report] ack-api-quirks DDB-IMPORT-003"""
    caller = Caller("eu-west-1", "123456789012")
    wanted = request("music", prefix="none/")
    made = world("ImportTable", caller, **wanted)["ImportTableDescription"]
    arn = made["ImportArn"]
    assert arn.startswith("arn:aws:dynamodb:eu-west-1:123456789012:table/music/import/0179")
    assert made["S3BucketSource"] == {
        "S3BucketOwner": "123456789012",
        "S3Bucket": BUCKET,
        "S3KeyPrefix": "none/",
    }
    assert made["InputCompressionType"] == "NONE"
    assert "InputFormatOptions" not in made
    assert "EndTime" not in made
    assert made["CloudWatchLogGroupArn"] == (
        "arn:aws:logs:eu-west-1:123456789012:log-group:/aws-dynamodb/imports:*"
    )
    assert made["TableCreationParameters"] == wanted["TableCreationParameters"]
    world.clock.advance(60)
    world.database.settle()
    # A prefix that matches nothing gives an empty table. [report] DDB-IMPORT-012
    shown = world("DescribeImport", caller, ImportArn=arn)["ImportTableDescription"]
    assert shown["ImportStatus"] == "COMPLETED"
    assert shown["EndTime"] - shown["StartTime"] == 60
    table = world("DescribeTable", TableName="music")["Table"]
    assert (table["TableStatus"], table["TableId"]) == ("ACTIVE", shown["TableId"])


def test_an_item_that_is_none_is_counted_and_logged_and_the_others_are_imported(world: World) -> None:
    """[report] ack-api-quirks DDB-IMPORT-013; [docs] the form of the log"""
    items: list[Any] = [item_of(number) for number in range(10)]
    items[3] = {"group": {"S": "x"}}
    items[5] = {"pk": {"N": "5"}}
    items[6] = {"pk": {"S": "x"}, "n": {"N": "one"}}
    items[7] = {"pk": {"S": "x"}, "n": {"S": "one"}}
    items[8] = {"pk": {"S": "x"}, "large": {"S": "x" * 409_600}}
    world.put("a.json", encoded(items, "DYNAMODB_JSON"))
    shown = world.done(indexed=True)
    assert (shown["ImportStatus"], shown["FailureCode"]) == ("FAILED", "ItemValidationError")
    assert shown["FailureMessage"] == INVALID_ITEMS
    assert (shown["ProcessedItemCount"], shown["ImportedItemCount"], shown["ErrorCount"]) == (10, 5, 5)
    assert world.status() == "ACTIVE"
    assert len(world.scan()) == 5
    errors = world.errors(shown["ImportArn"])
    assert [one["itemS3Pointer"]["itemIndex"] for one in errors] == [3, 5, 6, 8, 7]
    assert errors[0] == {
        "itemS3Pointer": {"bucket": BUCKET, "key": "a.json", "itemIndex": 3},
        "importArn": shown["ImportArn"],
        "errorMessages": ["One or more parameter values were invalid: Missing the key pk in the item"],
    }
    assert list(check(world.database.engine)) == []


def test_a_line_that_cannot_be_read_ends_its_object(world: World) -> None:
    """[report] ack-api-quirks DDB-IMPORT-013: ten lines, of which the sixth is none"""
    lines = [orjson.dumps({"Item": item_of(number)}) for number in range(10)]
    lines[5] = b"garbage"
    world.put("a.json", b"\n".join(lines))
    world.put("b.json", encoded([item_of(11)], "DYNAMODB_JSON"))
    shown = world.done()
    assert (shown["ProcessedItemCount"], shown["ImportedItemCount"], shown["ErrorCount"]) == (7, 6, 1)
    assert len(world.scan()) == 6


def test_an_export_is_imported_from_its_data_alone(world: World) -> None:
    """[report] ack-api-quirks DDB-IMPORT-020: the counts of each way to ask for it"""
    root = "AWSDynamoDB/01791506763707-476754e8"
    for name in ("manifest-files", "manifest-summary"):
        world.put(f"{root}/{name}.json", b'{"some": "text"}')
        world.put(f"{root}/{name}.md5", b"rL0Y20zC+Fzt72VPzMSk2A==")
    world.put(f"{root}/_started", b"")
    for number in range(3):
        data = gzip.compress(encoded([item_of(number)], "DYNAMODB_JSON"))
        world.put(f"{root}/data/{number}.json.gz", data)
    world.put(f"{root}/data/9.json.gz", gzip.compress(b""))

    def counts(table: str, prefix: str, **given: Any) -> tuple[Any, ...]:
        shown = world.done(table, prefix=prefix, **given)
        assert len(world.scan(table)) == shown["ImportedItemCount"]
        counted = [shown[f"{name}Count"] for name in ("ProcessedItem", "ImportedItem", "Error")]
        return shown["ImportStatus"], *counted

    assert counts("root", f"{root}/", InputCompressionType="GZIP") == ("FAILED", 7, 3, 4)
    assert counts("data", f"{root}/data/", InputCompressionType="GZIP") == ("COMPLETED", 3, 3, 0)
    assert counts("none", f"{root}/data/") == ("FAILED", 4, 0, 4)


def test_a_prefix_is_the_beginning_of_keys_and_no_folder(world: World) -> None:
    """[report] ack-api-quirks DDB-IMPORT-014"""
    world.put("data/1.json", encoded([item_of(1)], "DYNAMODB_JSON"))
    world.put("data2/x.json", b"garbage")
    world.put("data.bak", b"garbage")
    shown = world.done("raw", prefix="data")
    assert (shown["ProcessedItemCount"], shown["ImportedItemCount"], shown["ErrorCount"]) == (3, 1, 2)
    assert [one["itemS3Pointer"]["key"] for one in world.errors(shown["ImportArn"])] == [
        "data.bak",
        "data2/x.json",
    ]
    shown = world.done("single", prefix="data/1.json")
    assert (shown["ImportStatus"], shown["ImportedItemCount"]) == ("COMPLETED", 1)


def test_a_bucket_that_is_not_there_fails_the_import_and_makes_no_table(world: World) -> None:
    """[report] ack-api-quirks DDB-IMPORT-012"""
    shown = world.done(bucket="absent")
    assert (shown["ImportStatus"], shown["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
    assert shown["FailureMessage"].startswith("The specified bucket does not exist (Service: Amazon S3;")
    assert str(world.folder.parent / "absent") in shown["FailureMessage"]
    assert {"TableArn", "TableId"} < set(shown)
    assert world.status() is None


def test_a_database_in_memory_has_no_buckets_unless_they_are_given() -> None:
    with Database.in_memory() as database, pytest.raises(ValidationException, match="--s3-dir"):
        database.execute("ImportTable", request("music"))


def test_a_database_on_disk_has_its_buckets_in_its_directory(tmp_path: Path) -> None:
    bucket = tmp_path / "data" / "s3" / BUCKET
    with Database.open(tmp_path / "data") as database:
        bucket.mkdir(parents=True)
        (bucket / "a.json").write_bytes(encoded([item_of(1)], "DYNAMODB_JSON"))
        database.execute("ImportTable", request("music"))
        database.settle()
        assert database.execute("Scan", {"TableName": "music"})["Count"] == 1
    with Database.open(tmp_path / "data") as database:  # the folder is not in the store's way
        assert database.execute("Scan", {"TableName": "music"})["Count"] == 1


def test_the_table_is_creating_until_the_import_ends(world: World) -> None:
    """[report] ack-api-quirks DDB-IMPORT-001, 006: what is refused until then, and how"""
    world.put("a.json", encoded([item_of(number) for number in range(1_000)], "DYNAMODB_JSON"))
    arn = world.begin()
    assert world.status() is None
    world.database.sweep()
    while world.shown(arn)["ImportStatus"] == "IN_PROGRESS":
        assert world.status() == "CREATING"
        with pytest.raises(ResourceInUseException):
            world("DeleteTable", TableName="music")
        with pytest.raises(ResourceInUseException):
            world("UpdateTable", TableName="music", DeletionProtectionEnabled=True)
        with pytest.raises(ResourceNotFoundException):
            world("PutItem", TableName="music", Item=item_of(1))
        with pytest.raises(ResourceNotFoundException):
            world("Scan", TableName="music")
        world.clock.advance(DAY)
        world.database.sweep()
    assert world.status() == "ACTIVE"
    assert len(world.scan()) == 1_000
    world("DeleteTable", TableName="music")
    assert world.shown(arn)["ImportStatus"] == "COMPLETED"  # the record outlives the table


def test_a_name_that_is_taken(world: World) -> None:
    """[report] ack-api-quirks DDB-IMPORT-018, 019"""
    first, second = world.begin(), world.begin()
    world.database.settle()
    statuses = {arn: world.shown(arn)["ImportStatus"] for arn in (first, second)}
    assert sorted(statuses.values()) == ["COMPLETED", "FAILED"]
    lost = next(arn for arn, status in statuses.items() if status == "FAILED")
    assert world.shown(lost)["FailureCode"] == "TableAlreadyExists"
    with pytest.raises(ResourceInUseException, match=r"^Table already exists: music$"):
        world.begin()


def test_tokens(world: World) -> None:
    """[report] ack-api-quirks DDB-IMPORT-017"""
    arn = world.begin(ClientToken="once")
    assert world.begin(ClientToken="once") == arn
    assert world.begin(ClientToken="once", prefix="other/") == arn
    with pytest.raises(ImportConflictException, match=r"^Import conflict: Duplicate request detected with "):
        world.begin("other", ClientToken="once")
    assert world.begin("other", ClientToken="once", caller=Caller(account_id="123456789012")) != arn
    world.database.settle()
    with pytest.raises(ResourceInUseException):
        world.begin(ClientToken="once")
    world("DeleteTable", TableName="music")
    shown = world("ImportTable", **request("music", ClientToken="once"))["ImportTableDescription"]
    assert (shown["ImportArn"], shown["ImportStatus"]) == (arn, "COMPLETED")
    world.clock.advance(8 * 3600)
    assert world.begin(ClientToken="once") != arn


def test_wrong_requests(world: World) -> None:
    """[report] ack-api-quirks DDB-IMPORT-009"""
    with pytest.raises(ValidationException, match=r"^Invalid Request: Unsupported InputFormatOptions "):
        world.begin(InputFormatOptions={"Csv": {}})
    with pytest.raises(ValidationException, match=r"must both be specified when BillingMode is PROVISIONED$"):
        world.begin(parameters={"BillingMode": None})
    with pytest.raises(ValidationException) as caught:
        world.begin(InputCompressionType="BZIP2")
    assert caught.value.message == (
        "1 validation error detected: Value 'BZIP2' at 'inputCompressionType' failed to satisfy constraint: "
        "Member must satisfy enum value set: [ZSTD, NONE, GZIP]"
    )
    with pytest.raises(ValidationException, match=r"^2 validation errors detected: Value ';;' at "):
        world.begin(kind="CSV", InputFormatOptions={"Csv": {"Delimiter": ";;"}})
    assert world("ListImports")["ImportSummaryList"] == []


def test_arns_that_name_no_import(tmp_path: Path) -> None:
    """[report] ack-api-quirks DDB-IMPORT-010"""
    world = World(tmp_path, separate_accounts=True, separate_regions=True)
    arn = world.begin()
    for wrong in (arn.replace("/import/", "/export/"), arn.rpartition("/import/")[0]):
        with pytest.raises(ValidationException, match=r"^Invalid Import ARN$"):
            world.shown(wrong)
    other = arn[:-1] + ("0" if arn[-1] != "0" else "1")
    for wrong in (other, arn.replace("us-east-1", "eu-west-1"), arn.replace("/music/", "/other/")):
        with pytest.raises(ImportNotFoundException):
            world.shown(wrong)
    with pytest.raises(AccessDeniedException):
        world.shown(arn.replace("000000000000", "123456789012"))
    world.database.close()


def test_lists(world: World) -> None:
    """[report] ack-api-quirks DDB-IMPORT-008, 016: ten to a page, the newest first, and whatever state"""
    arns = []
    for number in range(12):
        world.clock.advance(1)
        arns.append(world.begin(f"table-{number}"))
    world.database.settle()
    first = world("ListImports")
    assert [one["ImportArn"] for one in first["ImportSummaryList"]] == arns[:1:-1]
    assert len(first["NextToken"]) >= 112
    rest = world("ListImports", NextToken=first["NextToken"])
    assert [one["ImportArn"] for one in rest["ImportSummaryList"]] == [arns[1], arns[0]]
    assert "NextToken" not in rest
    world("DeleteTable", TableName="table-3")
    only = world("ListImports", TableArn="arn:aws:dynamodb:us-east-1:000000000000:table/table-3")
    assert [one["ImportArn"] for one in only["ImportSummaryList"]] == [arns[3]]
    assert set(only["ImportSummaryList"][0]) == {
        "ImportArn", "ImportStatus", "TableArn", "S3BucketSource", "CloudWatchLogGroupArn", "InputFormat",
        "StartTime", "EndTime",
    }  # fmt: skip
    with pytest.raises(ValidationException, match=r"^Invalid Request: Provided nextToken is invalid: ab"):
        world("ListImports", NextToken="ab" * 56)
    world.clock.advance(91 * DAY)
    world.database.settle()
    assert world("ListImports")["ImportSummaryList"] == []
    assert world.database.engine.read(lambda reader: list(reader.scan_space(5))) == []


def test_the_service_limits_imports_at_once(world: World) -> None:
    for number in range(IMPORTS_MAX):
        world.begin(f"table-{number}")
    with pytest.raises(LimitExceededException):
        world.begin("one-too-many")
    world.database.settle()
    world.begin("one-more")


def test_errors_are_kept_up_to_a_bound(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_runner, "ERRORS_KEPT_MAX", 20)
    world.put("a.json", b'{"Item":{"x":{"S":"y"}}}\n' * 500)
    shown = world.done()
    assert shown["ErrorCount"] == 500
    errors = world.errors(shown["ImportArn"])
    assert len(errors) == 20
    assert world.errors(shown["ImportArn"], 5, 10) == errors[5:15]
    assert world.errors(shown["ImportArn"], 10**30) == []


def test_later_rows_replace_earlier_ones_with_their_key(world: World) -> None:
    lines = [{"pk": {"S": "same"}, "n": {"N": str(number)}} for number in range(300)]
    world.put("a.json", encoded(lines, "DYNAMODB_JSON"))
    shown = world.done()
    assert (shown["ImportStatus"], shown["ImportedItemCount"]) == ("COMPLETED", 300)
    assert world.scan() == [lines[-1]]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="who may do all is refused nothing")
def test_a_folder_that_may_not_be_read(world: World) -> None:
    world.folder.chmod(0)
    shown = world.done()
    world.folder.chmod(0o700)
    assert shown["FailureCode"] == "S3AccessDenied"


def test_a_job_is_stored_and_found(world: World) -> None:
    arn = world.begin(ClientToken="t")
    id_ = arn.rpartition("/")[2]
    job = world.database.engine.read(lambda reader: IMPORTS.find(reader, "", id_))
    assert job is not None
    assert orjson.loads(orjson.dumps(job.request)) == request("music")


def test_without_the_extra_an_import_of_zstd_fails_and_names_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressions, "_DAMAGED_ZSTD", ())
    world.put("a.json.zst", b'{"Item":{"pk":{"S":"a"}}}\n')
    shown = world.done(InputCompressionType="ZSTD")
    assert shown["ImportStatus"] == "FAILED"
    assert "pip install backports.zstd" in shown["FailureMessage"]
