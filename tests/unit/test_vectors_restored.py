"""Vector indexes of tables that are restored, imported or filled by a bulk operation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

import backing
import importing
from hashrange.errors import ValidationException
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.inspection.check import check
from vector_tables import SCHEMA, World, condition, index_of, listed
from worlds import recovery_of

NAMED = index_of(SearchSchema=SCHEMA)
SOME = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]}
FAR = index_of("far", distance="EUCLIDEAN", Projection=SOME)


def results(world: Any, table: str, index: str, **given: Any) -> list[tuple[str, float]]:
    request = {"TableName": table, "IndexName": index, "TopK": 5, **given}
    found = world("SearchVectors", SearchVector=listed((1, 0))["L"], **request)["SearchResults"]
    return [(next(iter(result["Item"]["s"].values())), result["Score"]) for result in found]


def shown_indexes(world: Any, table: str) -> list[dict[str, Any]]:
    return list(world("DescribeTable", TableName=table)["Table"].get("VectorIndexes", []))


@pytest.fixture
def world() -> World:
    world = World(MemoryEngine())
    world.create(NAMED, FAR, scoped=True)
    world("UpdateContinuousBackups", **recovery_of("table"))
    for number in range(6):
        world.put(number, [number, 1], area="north", kind="ab"[number % 2])
    world.clock.advance(10)
    return world


def restore(world: World, name: str = "restored", **given: Any) -> None:
    world("RestoreTableToPointInTime", SourceTableName="table", TargetTableName=name,
          UseLatestRestorableTime=True, **given)
    world.database.settle()


def test_a_restored_table_has_the_indexes_of_its_source(world: World) -> None:
    restore(world)
    here, there = shown_indexes(world, "table"), shown_indexes(world, "restored")
    for mine, theirs in zip(here, there, strict=True):
        assert {**mine, "IndexArn": ""} == {**theirs, "IndexArn": ""}
    scope = condition({"area": "north", "kind": "a"})
    assert results(world, "restored", "near", **scope) == results(world, "table", "near", **scope)
    world.put(9, [1, 0], "restored", area="north", kind="a")
    assert results(world, "restored", "near", **scope)[0] == ("9", 0.0)
    assert list(check(world.database.engine)) == []


def test_a_restore_chooses_and_renames_indexes(world: World) -> None:
    restore(world, VectorIndexOverride=[{**FAR, "IndexName": "away"}])
    assert [index["IndexName"] for index in shown_indexes(world, "restored")] == ["away"]
    assert results(world, "restored", "away") == results(world, "table", "far")
    described = world("DescribeTable", TableName="restored")["Table"]["AttributeDefinitions"]
    assert [definition["AttributeName"] for definition in described] == ["p", "s"]
    restore(world, "bare", VectorIndexOverride=[])
    assert shown_indexes(world, "bare") == []


@pytest.mark.parametrize(
    "change", [{"Dimensions": 3}, {"DistanceFunction": "COSINE"}, {"Projection": {"ProjectionType": "ALL"}}]
)
def test_a_restore_makes_no_new_indexes(world: World, change: dict[str, Any]) -> None:
    with pytest.raises(ValidationException, match="Index far does not match a secondary index"):
        restore(world, VectorIndexOverride=[{**FAR, **change}])


def test_a_restored_table_with_vector_indexes_is_on_demand(world: World) -> None:
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    with pytest.raises(ValidationException, match="only supported for PAY_PER_REQUEST"):
        restore(world, BillingModeOverride="PROVISIONED", ProvisionedThroughputOverride=units)
    restore(world, BillingModeOverride="PROVISIONED", ProvisionedThroughputOverride=units,
            VectorIndexOverride=[])


def test_a_backup_keeps_the_indexes(tmp_path: Path) -> None:
    world = backing.World(tmp_path, durable=True)
    world.create(
        "music",
        VectorIndexes=[index_of()],
        LocalSecondaryIndexes=None, GlobalSecondaryIndexes=None,
        AttributeDefinitions=backing.TABLE["AttributeDefinitions"][:2],
    )  # fmt: skip
    for number in range(9):
        item = {**backing.item_of(number), "v": listed((number, 1))}
        world("PutItem", TableName="music", Item=item)
    arn = world.backup()
    described = world("DescribeBackup", BackupArn=arn)["BackupDescription"]
    assert described["SourceTableFeatureDetails"]["VectorIndexes"] == [index_of()]
    world("DeleteTable", TableName="music")
    world.reopen()
    world.restore(arn)
    world.database.settle()
    request = {"TableName": "restored", "IndexName": "near", "SearchVector": listed((1, 0))["L"]}
    found = world("SearchVectors", **request, TopK=1)["SearchResults"]
    assert found[0]["Item"]["sk"] == backing.item_of(8)["sk"]
    assert shown_indexes(world, "restored")[0]["ItemCount"] == 9
    assert list(check(world.database.engine)) == []
    world.database.close()


def test_an_imported_table_has_its_indexes(tmp_path: Path) -> None:
    world = importing.World(tmp_path)
    rows = [{"Item": {"pk": {"S": str(n)}, "s": {"S": str(n)}, "v": listed((n, 1))}} for n in range(30)]
    rows.append({"Item": {"pk": {"S": "bad"}, "v": listed((1,))}})
    world.put("rows.json", b"\n".join(map(orjson.dumps, rows)))
    job = world.done(parameters={"VectorIndexes": [index_of()]})
    assert (job["ImportedItemCount"], job["ErrorCount"]) == (30, 1)
    assert [name for name, _ in results(world, "music", "near")][:2] == ["29", "28"]
    assert shown_indexes(world, "music")[0]["ItemCount"] == 30
    assert list(check(world.database.engine)) == []
    world.database.close()


def test_a_bulk_operation_reports_vector_bytes(tmp_path: Path) -> None:
    world = importing.World(tmp_path)
    world("CreateTable", **importing.request("music")["TableCreationParameters"], VectorIndexes=[index_of()])
    world.put("in/rows.json", orjson.dumps({"Item": {"pk": {"S": "a"}, "v": listed((1, 1))}}))
    shown = world(
        "StartBulkPutItems",
        TableName="music",
        InputS3Configuration={
            "S3Bucket": importing.BUCKET, "S3KeyPrefix": "in/", "InputFormat": "DYNAMODB_JSON"
        },
        OutputS3Configuration={
            "S3Bucket": importing.BUCKET, "S3KeyPrefix": "out", "OutputType": ["ERROR"]
        },
    )["BulkOperationDescription"]
    world.database.settle()
    shown = world("DescribeBulkOperation", BulkOperationArn=shown["BulkOperationArn"])
    (usage,) = shown["BulkOperationDescription"]["BulkOperationUsage"]
    # the key (3), and the name and two floats (9)
    assert usage["VectorIndexes"] == {"near": {"BulkPutVectorBytes": 12}}
    assert usage["BulkPutBytes"] == usage["Table"]["BulkPutBytes"]
    world.database.close()
