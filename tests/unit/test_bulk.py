"""Bulk operations: the items of the objects of a bucket go into a table that exists."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from hashrange.database import Caller, Settings
from hashrange.errors import (
    AccessDeniedException,
    IdempotentParameterMismatchException,
    ResourceInUseException,
    ResourceNotFoundException,
    ValidationException,
)
from hashrange.interchange import ion
from hashrange.operations.targets import targets
from hashrange.tables import bites
from hashrange.tables.inspection.check import check
from hashrange.tables.jobs.bulk import bulk_runner
from importing import BUCKET, COMPRESS, DAY, World, encoded, item_of
from worlds import new_index, table_of

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/music"
BOTH = ["ERROR", "CONDITION_CHECK_FAILURE"]
NEW_ONLY = {"ConditionExpression": "attribute_not_exists(pk)"}


class Bulk(World):
    """A database with the table `music`, a bucket to read, and one for reports."""

    def __init__(self, directory: Path, **given: Any) -> None:
        super().__init__(directory, **given)
        self.reports = directory / "s3" / "reports"
        self.reports.mkdir()
        indexes = {"by-group": "group | KEYS_ONLY"}
        self("CreateTable", **table_of("music", "pk", indexes=indexes, stream="KEYS_ONLY"))
        self.database.settle()

    def start(self, kind: str = "DYNAMODB_JSON", **given: Any) -> str:
        """Start an operation; returns its ARN."""
        caller = given.pop("caller", Caller())
        shown = self("StartBulkPutItems", caller, **wanted(kind, **given))["BulkOperationDescription"]
        arn: str = shown["BulkOperationArn"]
        return arn

    def shown(self, arn: str) -> dict[str, Any]:
        found: dict[str, Any] = self("DescribeBulkOperation", BulkOperationArn=arn)
        return dict(found["BulkOperationDescription"])

    def done(self, kind: str = "DYNAMODB_JSON", **given: Any) -> dict[str, Any]:  # type: ignore[override]
        arn = self.start(kind, **given)
        self.database.settle()
        return self.shown(arn)

    def report(self) -> list[dict[str, Any]]:
        """The lines of the report, in the order of its manifest."""
        [manifest] = self.reports.rglob("manifest-files.json")
        lines: list[dict[str, Any]] = []
        for entry in map(orjson.loads, manifest.read_bytes().splitlines()):
            data = gzip.decompress((self.reports / entry["dataFileS3Key"]).read_bytes())
            found = [orjson.loads(line) for line in data.splitlines()]
            assert len(found) == entry["itemCount"]
            lines += found
        return lines

    def summary(self) -> dict[str, Any]:
        [manifest] = self.reports.rglob("manifest-summary.json")
        found: dict[str, Any] = orjson.loads(manifest.read_bytes())
        return found


def wanted(kind: str = "DYNAMODB_JSON", **given: Any) -> dict[str, Any]:
    read = {"S3Bucket": BUCKET, "InputFormat": kind, **given.pop("read", {})}
    written = {"S3Bucket": "reports", "OutputType": BOTH, **given.pop("written", {})}
    return {
        "TableName": "music",
        "InputS3Configuration": read,
        "OutputS3Configuration": written,
        **given,
    }


def rows(*members: dict[str, Any]) -> bytes:
    return b"".join(orjson.dumps(row) + b"\n" for row in members)


@pytest.fixture(params=["memory", "durable"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bulk]:
    world = Bulk(tmp_path, durable=request.param == "durable")
    yield world
    world.database.close()


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("kind", ["DYNAMODB_JSON", "ION"])
def test_items_are_put_beside_those_that_are_there(world: Bulk, kind: str, compression: str) -> None:
    world("PutItem", TableName="music", Item={"pk": {"S": "before"}})
    world("PutItem", TableName="music", Item={"pk": {"S": "item 3"}, "group": {"S": "replaced"}})
    items = [item_of(number) for number in range(300)]
    for part in range(3):
        world.put(f"in/{part}", COMPRESS[compression](encoded(items[part * 100 : part * 100 + 100], kind)))
    world.put("other", b"not in the prefix")
    arn = world.start(kind, read={"S3KeyPrefix": "in/", "InputCompressionType": compression})
    assert world.shown(arn)["BulkOperationStatus"] == "IN_PROGRESS"
    assert "TotalInputBytes" not in world.shown(arn)
    world.clock.advance(60)
    world.database.settle()
    shown = world.shown(arn)
    size = sum(path.stat().st_size for path in (world.folder / "in").iterdir())
    assert shown["BulkOperationStatus"] == "COMPLETED"
    assert (shown["ProcessedItemCount"], shown["FailedItemCount"]) == (300, 0)
    assert (shown["TotalInputBytes"], shown["ProcessedInputBytes"]) == (size, size)
    assert shown["EndTime"] - shown["StartTime"] == 60
    found = sorted(world.scan(), key=lambda item: item["pk"]["S"])
    assert found == sorted([*items, {"pk": {"S": "before"}}], key=lambda item: item["pk"]["S"])
    [usage] = shown["BulkOperationUsage"]
    table = world("DescribeTable", TableName="music")["Table"]
    assert usage["TableName"] == table["TableArn"]
    assert usage["Table"]["BulkPutBytes"] == table["TableSizeBytes"] - len("pk" + "before")
    [index] = table["GlobalSecondaryIndexes"]
    entries = usage["GlobalSecondaryIndexes"]["by-group"]["BulkPutBytes"]
    assert entries == index["IndexSizeBytes"]
    assert usage["BulkPutBytes"] == usage["Table"]["BulkPutBytes"] + entries
    assert list(check(world.database.engine)) == []
    assert world.report() == []
    assert world.summary()["bulkOperationStatus"] == "COMPLETED"


def test_the_stream_tells_what_was_put(world: Bulk) -> None:
    world.put("a", rows({"Item": {"pk": {"S": "x"}}}, {"Item": {"pk": {"S": "x"}, "n": {"N": "1"}}}))
    world.done()
    stream = world("DescribeTable", TableName="music")["Table"]["LatestStreamArn"]
    [shard] = world("DescribeStream", StreamArn=stream)["StreamDescription"]["Shards"]
    iterator = world(
        "GetShardIterator", StreamArn=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    records = world("GetRecords", ShardIterator=iterator)["Records"]
    assert [record["eventName"] for record in records] == ["INSERT", "MODIFY"]


@pytest.mark.parametrize("kind", ["DYNAMODB_JSON", "ION"])
def test_a_condition_that_is_not_met_is_no_error(world: Bulk, kind: str) -> None:
    there = {"pk": {"S": "there"}, "n": {"N": "1"}}
    world("PutItem", TableName="music", Item=there)
    older = {
        "ConditionExpression": "attribute_not_exists(pk) OR #n < :n",
        "ExpressionAttributeNames": {"#n": "n"},
        "ExpressionAttributeValues": {":n": {"N": "1"}},
    }
    new, refused = {"pk": {"S": "new"}}, {"pk": {"S": "there"}, "n": {"N": "7"}}
    if kind == "ION":
        text = 'ConditionExpression:"attribute_not_exists(pk) OR #n < :n"'
        text += ',ExpressionAttributeNames:{\'#n\':"n"},ExpressionAttributeValues:{\':n\':1.}'
        data = b"".join(f"$ion_1_0 {{Item:{ion.struct(one)},{text}}}\n".encode() for one in (new, refused))
    else:
        data = rows({"Item": new, **older}, {"Item": refused, **older})
    world.put("a", data)
    shown = world.done(kind)
    assert shown["BulkOperationStatus"] == "COMPLETED"
    assert (shown["ProcessedItemCount"], shown["FailedItemCount"]) == (2, 0)
    assert sorted(world.scan(), key=str) == sorted([there, new], key=str)
    assert world.report() == [
        {
            "OutputType": "CONDITION_CHECK_FAILURE",
            "ItemS3Pointer": {"Bucket": BUCKET, "Key": "a", "ItemIndex": 1},
            "Item": refused,
            "ExistingItem": there,
        }
    ]
    assert world.summary()["conditionCheckFailureCount"] == 1


BAD: dict[str, dict[str, Any]] = {
    "no key": {"Item": {"n": {"N": "1"}}},
    "a key of another type": {"Item": {"pk": {"N": "1"}}},
    "a key of an index of another type": {"Item": {"pk": {"S": "x"}, "group": {"N": "1"}}},
    "no value": {"Item": {"pk": {"S": "x"}, "n": {"N": "one"}}},
    "a type that is none": {"Item": {"pk": {"S": 1}}},
    "too large": {"Item": {"pk": {"S": "x"}, "text": {"S": "x" * 410_000}}},
    "no item": {"Put": {}},
    "a condition that is none": {"Item": {"pk": {"S": "x"}}, "ConditionExpression": "pk pk"},
    "a condition that is not a string": {"Item": {"pk": {"S": "x"}}, "ConditionExpression": 1},
    "a value without a condition": {
        "Item": {"pk": {"S": "x"}},
        "ExpressionAttributeValues": {":v": {"S": "x"}},
    },
}


@pytest.mark.parametrize("bad", BAD)
def test_a_row_that_is_no_item_is_an_error(world: Bulk, bad: str) -> None:
    world.put("a", rows({"Item": {"pk": {"S": "first"}}}, BAD[bad], {"Item": {"pk": {"S": "last"}}}))
    shown = world.done()
    assert shown["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
    assert (shown["ProcessedItemCount"], shown["FailedItemCount"]) == (3, 1)
    assert "FailureCode" not in shown
    assert {item["pk"]["S"] for item in world.scan()} == {"first", "last"}
    [line] = world.report()
    [message] = line.pop("ErrorMessages")
    assert message
    pointer = {"Bucket": BUCKET, "Key": "a", "ItemIndex": 1}
    assert line == {"OutputType": "ERROR", "ItemS3Pointer": pointer}


def test_what_cannot_be_parsed_ends_its_object(world: Bulk) -> None:
    """[docs] that some errors do; [assumed] that they are those of imports"""
    good = rows({"Item": {"pk": {"S": "one"}}})
    world.put("a", good + b"{\n" + rows({"Item": {"pk": {"S": "left out"}}}))
    world.put("b", rows({"Item": {"pk": {"S": "two"}}}))
    shown = world.done()
    assert shown["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
    assert {item["pk"]["S"] for item in world.scan()} == {"one", "two"}


@pytest.mark.parametrize("kinds", [["ERROR"], ["CONDITION_CHECK_FAILURE"], BOTH])
def test_the_report_tells_what_was_asked_for(world: Bulk, kinds: list[str]) -> None:
    world("PutItem", TableName="music", Item={"pk": {"S": "there"}})
    world.put("a", rows({"Item": {"pk": {"S": "there"}}, **NEW_ONLY}, {"Item": {}}))
    shown = world.done(written={"OutputType": kinds, "S3KeyPrefix": "some/where"})
    assert shown["OutputS3Configuration"]["OutputType"] == kinds
    assert {line["OutputType"] for line in world.report()} == set(kinds)
    [summary] = world.reports.rglob("manifest-summary.json")
    assert summary.is_relative_to(world.reports / "some" / "where" / "AWSDynamoDB")


def test_a_report_may_lie_beside_what_is_read(world: Bulk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_runner, "REPORT_LINES", 1)
    world.put("0", rows({"Item": {}}))
    world.put("z", rows({"Item": {"pk": {"S": "x"}}}))
    shown = world.done(written={"S3Bucket": BUCKET})
    assert (shown["ProcessedItemCount"], shown["FailedItemCount"]) == (2, 1)


def test_it_goes_on_after_restarts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restart after each bite: all is counted once, and the report tells each row once."""
    monkeypatch.setattr(bulk_runner, "REPORT_LINES", 7)
    monkeypatch.setattr("hashrange.tables.background.sweeps.BITE_ITEMS", 10)
    world = Bulk(tmp_path, durable=True)
    members: list[dict[str, Any]] = [
        {"Item": item_of(number)} if number % 3 else {"Item": {}} for number in range(90)
    ]
    world.put("a.gz", gzip.compress(rows(*members[:50])))
    world.put("b.gz", gzip.compress(rows(*members[50:])))
    arn = world.start(read={"InputCompressionType": "GZIP"})
    seen: set[int] = set()
    while world.shown(arn)["BulkOperationStatus"] == "IN_PROGRESS":
        world.database.sweep()
        seen.add(world.shown(arn)["ProcessedItemCount"])
        world.reopen()
    shown = world.shown(arn)
    assert len(seen) > 5
    assert shown["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
    assert (shown["ProcessedItemCount"], shown["FailedItemCount"]) == (90, 30)
    places = [(line["ItemS3Pointer"]["Key"], line["ItemS3Pointer"]["ItemIndex"]) for line in world.report()]
    assert places == [("a.gz", n) if n < 50 else ("b.gz", n - 50) for n in range(0, 90, 3)]
    assert len(world.scan()) == 60
    assert list(check(world.database.engine)) == []
    world.database.close()


def test_a_cancelled_operation_keeps_what_it_wrote(world: Bulk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hashrange.tables.background.sweeps.BITE_ITEMS", 10)
    world.put("a", rows({"Item": {}}, *({"Item": item_of(number)} for number in range(100))))
    arn = world.start()
    while world.shown(arn)["ProcessedItemCount"] == 0:
        world.database.sweep()
    written = len(world.scan())
    for _ in range(2):  # asking again changes nothing
        answer = world("CancelBulkOperation", BulkOperationArn=arn)
        assert answer == {"BulkOperationArn": arn, "BulkOperationStatus": "CANCELLING"}
    assert world.shown(arn)["BulkOperationStatus"] == "CANCELLING"
    world.database.settle()
    shown = world.shown(arn)
    assert shown["BulkOperationStatus"] == "CANCELLED"
    assert shown["FailureCode"]
    assert shown["FailureMessage"]
    assert 0 < written == len(world.scan()) < 100
    assert len(world.report()) == 1
    with pytest.raises(ResourceNotFoundException):
        world("CancelBulkOperation", BulkOperationArn=arn)


@pytest.mark.parametrize("side", ["read", "written"])
def test_a_bucket_that_is_missing_fails_it(world: Bulk, side: str) -> None:
    world.put("a", rows({"Item": {"pk": {"S": "x"}}}))
    given: dict[str, Any] = {side: {"S3Bucket": "missing"}}
    shown = world.done(**given)
    assert (shown["BulkOperationStatus"], shown["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
    assert shown["FailureMessage"]
    assert world.scan() == []


def test_a_table_that_is_deleted_fails_it(world: Bulk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hashrange.tables.background.sweeps.BITE_ITEMS", 10)
    world.put("a", rows({"Item": {}}, *({"Item": item_of(number)} for number in range(100))))
    arn = world.start()
    while world.shown(arn)["ProcessedItemCount"] == 0:
        world.database.sweep()
    world("DeleteTable", TableName="music")
    world.database.settle()
    shown = world.shown(arn)
    assert (shown["BulkOperationStatus"], shown["FailureCode"]) == ("FAILED", "TableNotFound")
    assert list(check(world.database.engine)) == []


def test_a_token_starts_one_operation(world: Bulk) -> None:
    arn = world.start(ClientToken="once")
    assert world.start(ClientToken="once") == arn
    with pytest.raises(IdempotentParameterMismatchException):
        world.start(ClientToken="once", PerformanceTier="ACCELERATED")
    world.clock.advance(8 * 3600 - 1)
    world.database.settle()
    assert world.start(ClientToken="once") == arn
    assert world.shown(arn)["ClientToken"] == "once"
    world.clock.advance(1)
    assert world.start(ClientToken="once") != arn


def test_the_description_says_what_was_asked_for(world: Bulk) -> None:
    caller = Caller("eu-west-1", "123456789012")
    arn = world.start(caller=caller, MaxWriteRequestUnits=2048, PerformanceTier="ACCELERATED")
    assert arn.startswith("arn:aws:dynamodb:eu-west-1:123456789012:table/music/bulk-operation/")
    shown = world.shown(arn)
    assert (shown["MaxWriteRequestUnits"], shown["PerformanceTier"]) == (2048, "ACCELERATED")
    [details] = shown["TableDetails"]
    table = world("DescribeTable", TableName="music")["Table"]
    assert details == {"TableName": table["TableArn"], "TableId": table["TableId"]}
    assert shown["InputS3Configuration"] == {
        "S3Bucket": BUCKET,
        "S3BucketOwner": "123456789012",
        "InputFormat": "DYNAMODB_JSON",
        "InputCompressionType": "NONE",
    }
    plain = world.shown(world.start())
    assert plain["PerformanceTier"] == "STANDARD"
    assert "MaxWriteRequestUnits" not in plain


def test_the_table_has_to_be_ready(world: Bulk) -> None:
    """[docs] Bulk put items considerations"""
    with pytest.raises(ResourceNotFoundException):
        world.start(TableName="missing")
    world("CreateTable", **table_of("global", "pk", stream="NEW_AND_OLD_IMAGES"))
    world.database.settle()
    replicas = [{"Create": {"RegionName": "eu-west-1"}}]
    world.start(TableName="global")
    with pytest.raises(ResourceInUseException, match="bulk operation"):
        world("UpdateTable", TableName="global", ReplicaUpdates=replicas)
    world.database.settle()
    world("UpdateTable", TableName="global", ReplicaUpdates=replicas)
    world.database.settle()
    with pytest.raises(ValidationException, match="global tables"):
        world.start(TableName="global")
    # More items than an index is filled with at once.
    world.put("a", rows(*({"Item": item_of(number)} for number in range(bites.AT_ONCE.items + 1))))
    world.done()
    world("UpdateTable", **new_index("music", "by-n", "n:N"))
    with pytest.raises(ResourceInUseException):
        world.start()
    world.database.settle()
    world.start()


def test_requests_that_are_refused(world: Bulk) -> None:
    with pytest.raises(ValidationException, match="S3Bucket"):
        world("StartBulkPutItems", **{**wanted(), "OutputS3Configuration": {"OutputType": BOTH}})
    with pytest.raises(ValidationException, match="KMS"):
        world.start(written={"S3SseKmsKeyId": "key"})
    with pytest.raises(ValidationException, match="1024"):
        world.start(MaxWriteRequestUnits=1023)
    with pytest.raises(ValidationException, match="Invalid Bulk Operation ARN"):
        world.shown(f"{ARN}/import/01790000000000-00000000")
    for operation in ("DescribeBulkOperation", "CancelBulkOperation"):
        with pytest.raises(ResourceNotFoundException):
            world(operation, BulkOperationArn=f"{ARN}/bulk-operation/01790000000000-00000000")


def test_a_database_without_buckets_says_what_to_do(tmp_path: Path) -> None:
    world = Bulk(tmp_path)
    world.database.settings = Settings()
    with pytest.raises(ValidationException, match="--s3-dir"):
        world.start()
    world.database.close()


def test_operations_are_listed_for_90_days(world: Bulk) -> None:
    arns = []
    for _ in range(12):
        world.clock.advance(1)
        arns.append(world.start())
    first = world("ListBulkOperations")
    assert [one["BulkOperationArn"] for one in first["BulkOperationsSummaryList"]] == arns[:1:-1]
    assert {one["BulkOperationStatus"] for one in first["BulkOperationsSummaryList"]} == {"IN_PROGRESS"}
    rest = world("ListBulkOperations", NextToken=first["NextToken"], MaxResults=25)
    assert [one["BulkOperationArn"] for one in rest["BulkOperationsSummaryList"]] == arns[1::-1]
    assert "NextToken" not in rest
    with pytest.raises(ValidationException, match="nextToken"):
        world("ListBulkOperations", NextToken="ab" * 24)
    world.database.settle()
    world.clock.advance(90 * DAY + 1)
    world.database.settle()
    assert world("ListBulkOperations") == {"BulkOperationsSummaryList": []}


def test_other_accounts_have_other_operations(tmp_path: Path) -> None:
    world = Bulk(tmp_path, separate_accounts=True)
    arn = world.start()
    other = Caller(account_id="111111111111")
    assert world("ListBulkOperations", other)["BulkOperationsSummaryList"] == []
    with pytest.raises(AccessDeniedException):
        world("DescribeBulkOperation", other, BulkOperationArn=arn)
    with pytest.raises(ResourceNotFoundException):
        world("StartBulkPutItems", other, **wanted())
    world.database.close()


def test_fault_rules_find_the_table_of_each_request() -> None:
    assert [one.table for one in targets("StartBulkPutItems", wanted())] == ["music"]
    request = {"BulkOperationArn": f"{ARN}/bulk-operation/01790000000000-00000000"}
    assert [one.table for one in targets("CancelBulkOperation", request)] == ["music"]
