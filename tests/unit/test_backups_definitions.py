"""The definitions of tables in backups: a restored table is as the table was, whatever it looked like."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from backing import World
from hashrange.tables.inspection.check import check
from worlds import new_index


@pytest.fixture(params=["memory", "embedded"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, durable=request.param == "embedded")
    world.create()
    yield world
    assert list(check(world.database.engine)) == []
    assert world.database.background.failing == {}
    world.database.close()


def table_with(**given: Any) -> dict[str, Any]:
    return {"LocalSecondaryIndexes": None, "GlobalSecondaryIndexes": None, **given}


PARTS = {"AttributeName": "v", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "HASH"}
UNITS = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}
INDEX: Any = {"IndexName": "several", "KeySchema": list(PARTS), "Projection": {"ProjectionType": "KEYS_ONLY"}}
CEILINGS = {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 20}


KEY_OF_OURS = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "mine"}


@pytest.mark.parametrize(
    "definition",
    [
        table_with(GlobalSecondaryIndexes=[INDEX]),
        table_with(
            BillingMode="PROVISIONED",
            ProvisionedThroughput=UNITS,
            GlobalSecondaryIndexes=[INDEX | {"ProvisionedThroughput": UNITS}],
        ),
        table_with(
            OnDemandThroughput=CEILINGS, GlobalSecondaryIndexes=[INDEX | {"OnDemandThroughput": CEILINGS}]
        ),
        table_with(GlobalSecondaryIndexes=[INDEX], SSESpecification=KEY_OF_OURS),
    ],
)
def test_definitions_come_back(world: World, definition: dict[str, Any]) -> None:
    world.create("defined", **definition)
    world.fill(5, "defined")
    world.restore(world.backup("defined"))
    world.database.settle()
    described = [world("DescribeTable", TableName=name)["Table"] for name in ("defined", "restored")]
    shown = [orjson.dumps(one).decode().replace("restored", "defined") for one in described]
    first, second = (orjson.loads(one) for one in shown)
    del first["TableId"], second["TableId"]
    assert first == second


def test_a_table_whose_indexes_have_changed(world: World) -> None:
    """An attribute that no index uses any longer does no harm."""
    world.fill(5)
    world("UpdateTable", TableName="music", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-v"}}])
    world.database.settle()
    world("UpdateTable", **new_index("music", "new", "other:B"))
    while_filling = world.begin()
    world.database.settle()
    world("UpdateTable", TableName="music", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "new"}}])
    world.database.settle()
    for number, arn in enumerate([while_filling, world.backup()]):
        world.restore(arn, f"restored-{number}")
        world.database.settle()
        assert world.rows(f"restored-{number}") == world.rows()


@pytest.mark.parametrize("durable", [False, True])
def test_a_backup_has_an_encryption_without_the_state_of_its_change(tmp_path: Path, durable: bool) -> None:
    world = World(tmp_path, durable=durable, update_seconds=20)
    world.create()
    world("UpdateTable", TableName="music", SSESpecification={"Enabled": True})
    changing = world.backup()
    described = world("DescribeBackup", BackupArn=changing)["BackupDescription"]
    assert described["SourceTableFeatureDetails"]["SSEDescription"]["Status"] == "ENABLED"
    world.restore(changing)
    world.clock.advance(20)
    world.database.settle()
    shown = [world("DescribeTable", TableName=name)["Table"] for name in ("music", "restored")]
    assert shown[0]["SSEDescription"] == shown[1]["SSEDescription"]
    world.database.close()
