"""Exports: the exact cut of a table at a moment and between two, whatever happens meanwhile."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doses import examples
from hashrange.database import Caller
from hashrange.errors import (
    AccessDeniedException,
    ExportConflictException,
    ExportNotFoundException,
    InvalidExportTimeException,
    PointInTimeRecoveryUnavailableException,
    TableNotFoundException,
    ValidationException,
)
from hashrange.interchange import ion
from hashrange.interchange.rows import Bad
from hashrange.operations.targets import targets
from hashrange.tables.definitions import catalog
from hashrange.tables.jobs.exports import export_runner
from hashrange.values import admit_item
from importing import BUCKET, DAY, NOW, World, item_of
from worlds import table_of

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/music"
MINUTE = 60.0
HOUR = 3600.0

Items = dict[str, dict[str, Any]]


class Exports(World):
    """A world with a table whose recovery is on."""

    def __init__(self, directory: Path, **given: Any) -> None:
        super().__init__(directory, **given)
        self("CreateTable", **table_of("music", "pk"))
        self.recover()

    def recover(self, *, enabled: bool = True) -> None:
        specification = {"PointInTimeRecoveryEnabled": enabled}
        self("UpdateContinuousBackups", TableName="music", PointInTimeRecoverySpecification=specification)

    def put_item(self, item: dict[str, Any]) -> None:
        self("PutItem", TableName="music", Item=item)

    def present(self) -> Items:
        return {item["pk"]["S"]: item for item in self.scan()}

    def export(self, **given: Any) -> str:
        """Begin an export; returns its ARN."""
        shown = self("ExportTableToPointInTime", **{"TableArn": ARN, "S3Bucket": BUCKET, **given})
        assert shown["ExportDescription"]["ExportStatus"] == "IN_PROGRESS"
        arn: str = shown["ExportDescription"]["ExportArn"]
        return arn

    def described(self, arn: str) -> dict[str, Any]:
        found: dict[str, Any] = self("DescribeExport", ExportArn=arn)["ExportDescription"]
        return found

    def exported(self, **given: Any) -> dict[str, Any]:
        """An export that has ended."""
        arn = self.export(**given)
        self.database.settle()
        return self.described(arn)

    def lines(self, shown: dict[str, Any]) -> list[Any]:
        """The lines of an export that was completed, in any format, as its manifest leads to them."""
        assert shown["ExportStatus"] == "COMPLETED", shown
        summary = orjson.loads((self.folder / shown["ExportManifest"]).read_bytes())
        manifest = (self.folder / summary["manifestFilesS3Key"]).read_bytes()
        found: list[Any] = []
        for entry in map(orjson.loads, manifest.splitlines()):
            lines = gzip.decompress((self.folder / entry["dataFileS3Key"]).read_bytes()).splitlines()
            assert len(lines) == entry["itemCount"]
            found += map(_read, lines)
        assert len(found) == summary["itemCount"] == shown["ItemCount"]
        return found

    def items(self, shown: dict[str, Any]) -> Items:
        """The items of a full export."""
        lines = self.lines(shown)
        found = {item["pk"]["S"]: item for item in (line["Item"] for line in lines)}
        assert len(found) == len(lines)
        return found

    def holds(self) -> list[str]:
        table = self.database.engine.read(lambda reader: catalog.find_full(reader, "music"))
        return [] if table is None or table.history is None else [one.name for one in table.history.holds]


def _read(line: bytes) -> Any:
    if not line.startswith(b"$ion"):
        return orjson.loads(line)
    item = ion.read(line)
    assert not isinstance(item, Bad)
    admit_item(item)
    return {"Item": item}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Exports]:
    world = Exports(tmp_path)
    yield world
    world.database.close()


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("format_", ["DYNAMODB_JSON", "ION"])
def test_a_full_export_has_the_items_of_its_moment(tmp_path: Path, durable: bool, format_: str) -> None:
    world = Exports(tmp_path, durable=durable)
    for number in range(300):
        world.put_item(item_of(number))
    before = world.present()
    world.clock.advance(10)
    moment = world.clock.now() - 5
    for number in range(0, 300, 3):
        world("DeleteItem", TableName="music", Key={"pk": {"S": f"item {number}"}})
        world.put_item({**item_of(number + 1), "changed": {"BOOL": True}})
        world.put_item(item_of(1_000 + number))
    given = {"ExportFormat": format_, "S3Prefix": "here"}
    shown = world.exported(ExportTime=moment, **given)
    assert world.items(shown) == before
    assert shown["ExportTime"] == moment
    assert world.items(world.exported(**given)) == world.present()
    assert world.holds() == ["pitr"]
    imported = world.done("again", kind=format_, prefix=_data(shown), InputCompressionType="GZIP")
    assert (imported["ImportStatus"], imported["ImportedItemCount"]) == ("COMPLETED", 300)
    world.database.close()


def _data(shown: dict[str, Any]) -> str:
    manifest: str = shown["ExportManifest"]
    return manifest.rpartition("/")[0] + "/data/"


def test_the_description_is_that_of_the_service(world: Exports) -> None:
    """[report] ack-api-quirks DDB-EXPORT-008, 016, 017: the members of each state"""
    arn = world.export(ClientToken="t")
    begun = world.described(arn)
    assert set(begun) == {
        "ClientToken", "ExportArn", "ExportFormat", "ExportStatus", "ExportTime", "S3Bucket",
        "S3SseAlgorithm", "StartTime", "TableArn", "TableId", "DestinationType",
    }  # fmt: skip
    assert begun["ExportTime"] == begun["StartTime"] == NOW
    world.clock.advance(60)
    world.database.settle()
    ended = world.described(arn)
    assert {**begun, "ExportStatus": "COMPLETED"} == {name: ended[name] for name in begun}
    assert set(ended) - set(begun) == {"BilledSizeBytes", "EndTime", "ExportManifest", "ItemCount"}
    id_ = arn.rpartition("/")[2]
    assert ended["ExportManifest"] == f"AWSDynamoDB/{id_}/manifest-summary.json"
    assert (ended["ItemCount"], ended["BilledSizeBytes"]) == (0, 0)
    assert world.lines(ended) == []
    summary = orjson.loads((world.folder / ended["ExportManifest"]).read_bytes())
    assert summary["exportArn"] == arn
    assert summary["tableArn"] == ARN
    assert (summary["exportTime"], summary["endTime"]) == (
        "2026-09-21T14:13:20.000Z",
        "2026-09-21T14:14:20.000Z",
    )


WRITES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 5), st.integers(0, 3)),
        st.tuples(st.just("delete"), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.sampled_from([0.5, 60.0, 1_000.0])),
        st.just(("transact",)),
    ),
    max_size=25,
)


def perform(world: Exports, write: tuple[Any, ...]) -> None:
    if write[0] == "put":
        world.put_item({"pk": {"S": str(write[1])}, "n": {"N": str(write[2])}})
    elif write[0] == "delete":
        world("DeleteItem", TableName="music", Key={"pk": {"S": str(write[1])}})
    elif write[0] == "transact":
        actions = [
            {"Put": {"TableName": "music", "Item": {"pk": {"S": "0"}, "both": {"S": "x"}}}},
            {"Delete": {"TableName": "music", "Key": {"pk": {"S": "1"}}}},
        ]
        world("TransactWriteItems", TransactItems=actions)
    else:
        world.clock.advance(write[1])


def fold(state: Items, lines: list[Any], *, with_old: bool) -> Items:
    """The state that the lines of an incremental export lead to."""
    state = dict(state)
    for line in lines:
        (name,) = line["Keys"]["pk"].values()
        if with_old:
            assert line.get("OldImage") == state.get(name)
        else:
            assert "OldImage" not in line
        if "NewImage" in line:
            state[name] = line["NewImage"]
        else:
            state.pop(name, None)
    return state


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WRITES, WRITES, WRITES, st.booleans(), st.booleans())
def test_an_incremental_export_turns_one_state_into_the_other(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[Any],
    second: list[Any],
    third: list[Any],
    durable: bool,
    with_old: bool,
) -> None:
    world = Exports(tmp_path_factory.mktemp("world"), durable=durable)
    for write in first:
        perform(world, write)
    before = world.present()
    world.clock.advance(1)
    begin = world.clock.now()
    for write in second:
        perform(world, write)
    after = world.present()
    world.clock.set(max(world.clock.now() + 1, begin + 15 * MINUTE))
    end = world.clock.now()
    for write in third:
        perform(world, write)
    view = {} if with_old else {"ExportViewType": "NEW_IMAGE"}
    specification = {"ExportFromTime": begin, "ExportToTime": end, **view}
    if end - begin <= DAY:
        shown = world.exported(
            ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification=specification
        )
        lines = world.lines(shown)
        assert fold(before, lines, with_old=with_old) == after
        assert len({orjson.dumps(line["Keys"]) for line in lines}) == len(lines)
        for line in lines:
            assert begin <= int(line["Metadata"]["WriteTimestampMicros"]["N"]) / 1e6 < end
        assert shown["IncrementalExportSpecification"]["ExportViewType"] == (
            "NEW_AND_OLD_IMAGES" if with_old else "NEW_IMAGE"
        )
    assert world.items(world.exported(ExportTime=begin - 0.5)) == before
    assert world.items(world.exported(ExportTime=end - 0.5)) == after
    world.database.close()


@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 5), max_size=6))
def test_an_export_goes_on_after_a_restart_and_beside_writes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int]
) -> None:
    world = Exports(tmp_path_factory.mktemp("world"), durable=True)
    for start in range(0, 1_200, 25):
        puts = [{"PutRequest": {"Item": item_of(number)}} for number in range(start, start + 25)]
        world("BatchWriteItem", RequestItems={"music": puts})
    before = world.present()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export_runner, "OBJECT_BYTES", 1)  # an object for each bite
        arn = world.export()
        for number, count in enumerate(steps):
            for _ in range(count):
                world.database.sweep()
            world.put_item({**item_of(number * 7), "changed": {"S": "meanwhile"}})
            world("DeleteItem", TableName="music", Key={"pk": {"S": f"item {number * 11 + 1}"}})
            world.reopen()
        world.database.settle()
    shown = world.described(arn)
    assert world.items(shown) == before
    assert list((world.folder / ".hashrange").iterdir()) == []
    world.database.close()


def test_a_table_that_is_deleted_meanwhile_is_exported(world: Exports) -> None:
    for number in range(600):
        world.put_item(item_of(number))
    before = world.present()
    arn = world.export()
    for _ in range(3):
        world.database.sweep()
    world("DeleteTable", TableName="music")
    world.database.settle()
    assert world.items(world.described(arn)) == before
    # ListExports shows those of the table that has the name. [report] DDB-EXPORT-020
    assert world("ListExports", TableArn=ARN)["ExportSummaries"] == []
    assert [one["ExportArn"] for one in world("ListExports")["ExportSummaries"]] == [arn]
    with pytest.raises(TableNotFoundException):
        world.export()


def test_a_bucket_that_is_not_there(world: Exports) -> None:
    """[report] ack-api-quirks DDB-EXPORT-010"""
    arn = world.export(S3Bucket="absent", ClientToken="t")
    world.database.settle()
    shown = world.described(arn)
    assert (shown["ExportStatus"], shown["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
    assert shown["FailureMessage"].startswith("The specified bucket does not exist (Service: Amazon S3;")
    assert world.holds() == ["pitr"]
    again = world("ExportTableToPointInTime", TableArn=ARN, S3Bucket="absent", ClientToken="t")
    assert again["ExportDescription"]["ExportArn"] == arn


def test_an_export_goes_on_when_recovery_is_switched_off(world: Exports) -> None:
    for number in range(300):
        world.put_item(item_of(number))
    before = world.present()
    arn = world.export()
    world.database.sweep()
    world.recover(enabled=False)
    world.put_item(item_of(5_000))
    world.database.settle()
    assert world.items(world.described(arn)) == before
    assert world.holds() == []


def test_tokens(world: Exports) -> None:
    """[report] ack-api-quirks DDB-EXPORT-009"""
    arn = world.export(ClientToken="t")
    assert world.export(ClientToken="t") == arn
    changes: list[dict[str, Any]] = [{"S3Prefix": "x"}, {"ExportFormat": "ION"}, {"S3Bucket": "other-bucket"}]
    for change in changes:
        with pytest.raises(ExportConflictException, match=r"^Export conflict: Duplicate request "):
            world.export(ClientToken="t", **change)
    assert world.export() != world.export()
    world.database.settle()
    again = world("ExportTableToPointInTime", TableArn=ARN, S3Bucket=BUCKET, ClientToken="t")
    assert again["ExportDescription"]["ExportArn"] == arn
    world.clock.advance(8 * HOUR)
    assert world.export(ClientToken="t") != arn


def test_what_is_refused(world: Exports) -> None:
    """[report] ack-api-quirks DDB-EXPORT-001 to 005, 008"""
    incremental = {"ExportType": "INCREMENTAL_EXPORT"}

    def spec(**given: Any) -> dict[str, Any]:
        return {**incremental, "IncrementalExportSpecification": given}

    cases: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (ValidationException, "One or more parameter values were invalid: tableArn is not a valid ARN",
         {"TableArn": "music"}),
        (ValidationException, "Invalid Request: Table ARN is invalid.", {"TableArn": f"{ARN}/index/x"}),
        (TableNotFoundException, f"Table not found: {ARN}s", {"TableArn": f"{ARN}s"}),
        (ValidationException, "Invalid Request: KMS Key Id is not supported for this encryption type",
         {"S3SseKmsKeyId": "x", "S3SseAlgorithm": "AES256"}),
        (ValidationException, "Invalid Request: Incremental Export Specification expected when export "
         "type is set as Incremental Export", incremental),
        (ValidationException, "Invalid Request: ExportFromTime must be provided in "
         "IncrementalExportSpecification", spec()),
        (ValidationException, "Invalid Request: Export Type expected to be Incremental Export when "
         "incremental export specification is provided", {"IncrementalExportSpecification": {}}),
        (ValidationException, "Invalid Request: When Export Type is Full Export , Incremental Export "
         "Specification should not be provided",
         {"ExportType": "FULL_EXPORT", "IncrementalExportSpecification": {}}),
        (InvalidExportTimeException, "Export Time is invalid", {"ExportTime": NOW + HOUR}),
        (InvalidExportTimeException, "Export Time is invalid", {"ExportTime": NOW - HOUR}),
        (InvalidExportTimeException, "Incremental export period from time cannot be less than the table "
         "creation time : 2026-09-21T13:13:20Z", spec(ExportFromTime=NOW - HOUR)),
        (InvalidExportTimeException, "Incremental export period to time cannot be greater than the "
         "current time : 2026-09-21T15:13:20Z", spec(ExportFromTime=NOW, ExportToTime=NOW + HOUR)),
        (InvalidExportTimeException, "Difference between export period from time and export period to "
         "time is less than 15 minutes", spec(ExportFromTime=NOW)),
        (ValidationException, "Invalid Request: Invalid FilterSpecification: The specification can not be "
         "empty", {"FilterSpecification": {}}),
    ]  # fmt: skip
    for kind, message, given_ in cases:
        with pytest.raises(kind) as caught:
            world.export(**given_)
        assert str(caught.value) == message
    world.clock.advance(2 * DAY)
    with pytest.raises(InvalidExportTimeException, match=r"is greater than 24 hours$"):
        world.export(**spec(ExportFromTime=NOW))
    world.recover(enabled=False)
    with pytest.raises(PointInTimeRecoveryUnavailableException) as caught_:
        world.export(S3Bucket="absent")
    assert str(caught_.value) == "Point in time recovery is not enabled for table 'music'"
    assert world("ListExports")["ExportSummaries"] == []


def test_arns_that_name_no_export(tmp_path: Path) -> None:
    """[report] ack-api-quirks DDB-EXPORT-006"""
    world = Exports(tmp_path, separate_accounts=True, separate_regions=True)
    arn = world.export()
    for wrong in (ARN, arn.replace("/export/", "/import/"), "x" * 40):
        with pytest.raises(ValidationException, match=r"^Invalid Export ARN$"):
            world.described(wrong)
    other = arn[:-1] + ("0" if arn[-1] != "0" else "1")
    with pytest.raises(ExportNotFoundException) as caught:
        world.described(other)
    assert str(caught.value) == f"Export not found: Export not found: {other}"
    with pytest.raises(ExportNotFoundException, match=r"^Export not found: Invalid export arn$"):
        world.described(arn.replace("us-east-1", "eu-west-1"))
    elsewhere = arn.rpartition("/export/")[0].replace("us-east-1", "eu-west-1")
    with pytest.raises(TableNotFoundException) as caught_:
        world.export(TableArn=elsewhere)
    assert str(caught_.value) == f"Table not found: {elsewhere}"
    for call in (world.described, lambda one: world.export(TableArn=one.rpartition("/export/")[0])):
        with pytest.raises(AccessDeniedException, match=r"^Access is denied$"):
            call(arn.replace("000000000000", "123456789012"))
    world.database.close()


def test_lists(world: Exports) -> None:
    arns = []
    for _ in range(12):
        world.clock.advance(1)
        arns.append(world.export())
    world.database.settle()
    first = world("ListExports", TableArn=ARN)
    assert [one["ExportArn"] for one in first["ExportSummaries"]] == arns[:1:-1]
    assert first["ExportSummaries"][0] == {
        "ExportArn": arns[-1],
        "ExportStatus": "COMPLETED",
        "ExportType": "FULL_EXPORT",
    }
    rest = world("ListExports", TableArn=ARN, NextToken=first["NextToken"])
    assert [one["ExportArn"] for one in rest["ExportSummaries"]] == [arns[1], arns[0]]
    with pytest.raises(ValidationException, match=r"^Invalid Request: Provided nextToken is invalid: abc$"):
        world("ListExports", NextToken="abc")
    world.clock.advance(91 * DAY)
    world.database.settle()
    assert world("ListExports")["ExportSummaries"] == []
    assert world.database.engine.read(lambda reader: list(reader.scan_space(6))) == []


def test_a_filter_and_a_projection(world: Exports) -> None:
    for number in range(50):
        world.put_item(item_of(number))
    specification = {
        "FilterExpression": "#g = :g AND n > :n",
        "ProjectionExpression": "pk, n",
        "ExpressionAttributeNames": {"#g": "group"},
        "ExpressionAttributeValues": {":g": {"S": "group 3"}, ":n": {"N": "20"}},
    }
    shown = world.exported(FilterSpecification=specification)
    assert shown["FilterSpecification"] == specification
    wanted = [number for number in range(21, 50) if number % 7 == 3]
    assert world.items(shown) == {
        f"item {number}": {"pk": {"S": f"item {number}"}, "n": {"N": str(number)}} for number in wanted
    }
    one = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "item 7"}}}
    assert list(world.items(world.exported(FilterSpecification=one))) == ["item 7"]
    with pytest.raises(ValidationException, match=r"^Invalid FilterExpression: "):
        world.export(FilterSpecification={"FilterExpression": "a b"})


def test_items_are_split_into_objects_of_bounded_size(
    world: Exports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_runner, "OBJECT_BYTES", 1)
    for number in range(900):
        world.put_item(item_of(number))
    shown = world.exported()
    assert world.items(shown) == world.present()
    assert len(list((world.folder / _data(shown)).iterdir())) > 3


def test_a_caller_of_another_region_sees_arns_of_its_own(world: Exports) -> None:
    arn = world.export()
    caller = Caller("eu-west-1", "123456789012")
    shown = world("DescribeExport", caller, ExportArn=arn)["ExportDescription"]
    assert shown["ExportArn"].startswith("arn:aws:dynamodb:eu-west-1:123456789012:table/music/export/")


def test_fault_rules_find_the_table_of_each_request() -> None:
    request = {"TableCreationParameters": {"TableName": "music"}}
    assert [one.table for one in targets("ImportTable", request)] == ["music"]
    for name, arn in (("TableArn", ARN), ("ExportArn", f"{ARN}/export/x"), ("ImportArn", f"{ARN}/import/x")):
        assert [one.table for one in targets("DescribeExport", {name: arn})] == ["music"]
