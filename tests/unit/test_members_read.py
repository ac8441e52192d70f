"""No member of a request is accepted and then ignored.

The requests of the golden scripts and of the hostile seeds run once more, with requests that note which of
their members the operation asks for. A member of a shape (`test_shapes_model` compares shapes with the API's
model) that no operation ever asks for has no effect: it belongs to WITHOUT_EFFECT, with the reason, or is a
defect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from golden_scripts import SCRIPTS, Session, steps
from hashrange.clock import ManualClock
from hashrange.database import Database, Settings
from hashrange.errors import ServiceError
from hashrange.operations import REGISTRY, load
from hashrange.shapes import OPERATIONS
from hashrange.shapes.vocabulary import List, Map, Shape, String, Structure
from hashrange.storage.memory import MemoryEngine
from hostile import seeds
from vector_tables import index_of
from worlds import index_on, recovery_of, table_of

_NOTE: set[str] = set()
LITTER = "what the service does not know"

# Patterns of paths, and why these members have no effect.
WITHOUT_EFFECT = {
    r"(Create|Update)GlobalTable\..*": "the service refuses every such request before it looks at them",
    r"UpdateGlobalTableSettings\..*": "no global table of version 2017.11.29 exists, so none has settings",
    r"ListGlobalTables\.(Limit|ExclusiveStartGlobalTableName)": "the same: the list is always empty",
    r"UpdateTable\..*\.DisassociationMode": "it has one value, and shapes check that it is there",
    r"DisableKinesis\w+\.\w+\.ApproximateCreationDateTimePrecision": "refused, whatever it is",
}


UNITS = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
CEILINGS = {"MaxReadRequestUnits": 50, "MaxWriteRequestUnits": 50}
WARM = {"ReadUnitsPerSecond": 13_000, "WriteUnitsPerSecond": 5_000}
KEY_OF_OURS = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "mine"}
LOCAL: dict[str, Any] = index_on("local", "pk, g | x")
INDEX: dict[str, Any] = index_on("by-g", "g") | {"OnDemandThroughput": CEILINGS, "WarmThroughput": WARM}
NEAR = index_of(
    SearchSchema=[{"AttributeName": "g", "SearchSchemaElementType": "HASH"}],
    Projection={"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]},
)
TABLE: dict[str, Any] = {
    **table_of("music", "pk, sk", indexes={"by-g": "g"}, stream="NEW_AND_OLD_IMAGES"),
    "LocalSecondaryIndexes": [LOCAL],
    "GlobalSecondaryIndexes": [INDEX],
    "VectorIndexes": [NEAR],
}
RECOVERY = recovery_of("music")
OVERRIDES: dict[str, Any] = {
    "OnDemandThroughputOverride": CEILINGS,
    "SSESpecificationOverride": KEY_OF_OURS,
    "LocalSecondaryIndexOverride": [LOCAL],
    "GlobalSecondaryIndexOverride": [INDEX],
    "VectorIndexOverride": [NEAR],
}
OF_INDEX = {"IndexName": "by-g", "ProvisionedThroughputOverride": {"ReadCapacityUnits": 5}}
IMPORT: dict[str, Any] = {"S3BucketSource": {"S3Bucket": "a-bucket"}, "InputFormat": "ION"}
# What neither the scripts nor the seeds ask, and what must succeed.
REST: list[tuple[str, dict[str, Any]]] = [
    ("RestoreTableToPointInTime", {"SourceTableName": "music", "TargetTableName": "past",
                                   "UseLatestRestorableTime": True, **OVERRIDES}),
    ("UpdateTable", {"TableName": "past", "AttributeDefinitions": TABLE["AttributeDefinitions"],
                     "GlobalSecondaryIndexUpdates": [{"Create": {**INDEX, "IndexName": "again"}}]}),
    ("UpdateTable", {"TableName": "past", "AttributeDefinitions": TABLE["AttributeDefinitions"],
                     "VectorIndexUpdates": [{"Create": {**NEAR, "IndexName": "nearer"}}]}),
    ("UpdateTable", {"TableName": "music", "ReplicaUpdates": [
        {"Create": {"RegionName": "eu-west-1", "ProvisionedThroughputOverride": {"ReadCapacityUnits": 5},
                    "GlobalSecondaryIndexes": [OF_INDEX]}}]}),
    ("ExportTableToPointInTime", {
        "TableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/music", "S3Bucket": "a-bucket",
        "S3BucketOwner": "000000000000", "S3SseAlgorithm": "KMS", "ExportTime": ManualClock().now()}),
    ("ImportTable", {**IMPORT, "TableCreationParameters": {
        **{name: TABLE[name] for name in ("AttributeDefinitions", "KeySchema")},
        "TableName": "provisioned", "ProvisionedThroughput": UNITS, "SSESpecification": KEY_OF_OURS,
        "GlobalSecondaryIndexes": [
            {**INDEX, "ProvisionedThroughput": UNITS, "OnDemandThroughput": {}}]}}),
    ("ImportTable", {**IMPORT, "TableCreationParameters": {
        **{name: TABLE[name] for name in ("AttributeDefinitions", "KeySchema", "BillingMode")},
        "TableName": "on-demand", "OnDemandThroughput": CEILINGS, "GlobalSecondaryIndexes": [INDEX],
        "VectorIndexes": [NEAR]}}),
]  # fmt: skip


class Noting(dict[str, Any]):
    """A structure of a request that notes the paths of the members that are asked for."""

    path: str

    def __getitem__(self, name: str) -> Any:
        _NOTE.add(f"{self.path}.{name}")
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        _NOTE.add(f"{self.path}.{name}")
        return super().get(name, default)

    def items(self) -> Any:
        _NOTE.update(f"{self.path}.{name}" for name in self)
        return super().items()


def noting(shape: Shape, value: Any, path: str) -> Any:
    """A value of a checked request whose structures note what is asked for."""
    match shape:
        case Structure():
            made = Noting(
                {
                    name: noting(shape.members[name], content, f"{path}.{name}")
                    if name in shape.members
                    else content
                    for name, content in value.items()
                }
            )
            made.path = path
            return made
        case List():
            return [noting(shape.member, content, f"{path}[]") for content in value]
        case Map():
            return {name: noting(shape.value, content, path + "{}") for name, content in value.items()}
    return value


def littered(shape: Shape, value: Any) -> Any:
    """A value of a checked request whose structures have one member more than the service knows."""
    match shape:
        case Structure():
            known = {
                name: littered(shape.members[name], content) if name in shape.members else content
                for name, content in value.items()
            }
            return {**known, "Unknown": LITTER}
        case List():
            return [littered(shape.member, content) for content in value]
        case Map():
            return {name: littered(shape.value, content) for name, content in value.items()}
    return value


def paths(shape: Shape, path: str) -> Iterator[str]:
    """The paths of all members below a shape."""
    match shape:
        case Structure():
            for name, member in shape.members.items():
                yield f"{path}.{name}"
                yield from paths(member, f"{path}.{name}")
        case List():
            yield from paths(shape.member, f"{path}[]")
        case Map():
            yield from paths(shape.value, path + "{}")


def prepare(operation: str, inner: Callable[..., Any], request: Any, context: Any) -> Any:
    return inner(noting(OPERATIONS[operation], request, operation), context)


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The paths of the members that operations ask for during the test."""
    load()
    for name, entry in REGISTRY.items():
        monkeypatch.setattr(entry, "prepare", partial(prepare, name, entry.prepare))
    _NOTE.clear()
    yield _NOTE
    _NOTE.clear()


def play_golden_scripts() -> None:
    for script in SCRIPTS:
        session = Session(MemoryEngine())
        for _, _, lines in steps(script.read_text(encoding="utf-8")):
            if lines:
                session.run(lines)


def play_seeds(folder: Path) -> None:
    (folder / "a-bucket").mkdir()
    (folder / "backups").mkdir()
    settings = Settings(s3_dir=str(folder), backup_dir=str(folder / "backups"))
    database = Database(MemoryEngine(), clock=ManualClock(), settings=settings)

    def ask(operation: str, request: Any) -> Any:
        return database.execute(operation, orjson.loads(orjson.dumps(request)))

    for create in (seeds.CREATE_MAIN, seeds.CREATE_PLAIN, seeds.CREATE_OTHER):
        ask("CreateTable", create)
    ask("PutItem", {"TableName": seeds.MAIN, "Item": seeds.ITEM})
    streams = seeds.stream_requests(ask)
    ask("CreateTable", TABLE)
    ask("UpdateContinuousBackups", RECOVERY)
    backup = ask("CreateBackup", {"TableName": "music", "BackupName": "mine"})["BackupDetails"]["BackupArn"]
    database.settle()
    ask("RestoreTableFromBackup", {"BackupArn": backup, "TargetTableName": "restored", **OVERRIDES})
    database.settle()
    provisioned = {name: INDEX[name] for name in ("IndexName", "KeySchema", "Projection")}
    ask("RestoreTableFromBackup", {
        "BackupArn": backup, "TargetTableName": "units", "BillingModeOverride": "PROVISIONED",
        "ProvisionedThroughputOverride": UNITS,
        "GlobalSecondaryIndexOverride": [{**provisioned, "ProvisionedThroughput": UNITS}],
        "VectorIndexOverride": []})  # fmt: skip
    database.settle()
    for operation, request in [*REST, *((name, one) for name, each in streams.items() for one in each)]:
        ask(operation, request)
    arn, shard = (streams["DescribeStream"][0][name] for name in ("StreamArn", "ExclusiveStartShardId"))
    ask("DescribeStream", {"StreamArn": arn, "ShardFilter": {"Type": "CHILD_SHARDS", "ShardId": shard}})
    start = {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": ManualClock().now()}
    ask("GetShardIterator", {"StreamArn": arn, "ShardId": shard, **start})
    for operation, requests in seeds.REQUESTS.items():
        for request in requests:
            with suppress(ServiceError):
                ask(operation, request)
    database.close()


def test_every_member_is_asked_for_or_excused(noted: set[str], tmp_path: Path) -> None:
    play_golden_scripts()
    play_seeds(tmp_path)
    ignored = {path for name, shape in OPERATIONS.items() for path in paths(shape, name)} - noted
    excused = {
        pattern: {path for path in ignored if re.fullmatch(pattern, path)} for pattern in WITHOUT_EFFECT
    }
    assert sorted(ignored.difference(*excused.values())) == []
    assert [pattern for pattern, matching in excused.items() if not matching] == []


def test_a_member_that_is_only_copied_is_not_asked_for(noted: set[str]) -> None:
    structure = Structure("Input", {"Used": List(Structure("Part", {"Name": String()})), "Copied": String()})
    request = noting(structure, {"Used": [{"Name": "a"}], "Copied": "b"}, "Operation")
    assert {**request}["Used"][0]["Name"] == "a"
    assert request.get("Used") is not None
    assert noted == {"Operation.Used[].Name", "Operation.Used"}


def test_no_answer_shows_a_member_that_the_service_does_not_know(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither of its request nor of an earlier one: what is kept may be nested too deeply to show."""

    def prepare(operation: str, inner: Callable[..., Any], request: Any, context: Any) -> Any:
        return inner(littered(OPERATIONS[operation], request), context)

    load()
    for name, entry in REGISTRY.items():
        monkeypatch.setattr(entry, "prepare", partial(prepare, name, entry.prepare))
    execute, shown, asked = Database.execute, set(), set()

    def look(self: Database, operation: str, request: Any) -> Any:
        answer = execute(self, operation, request)
        asked.add(operation)
        if LITTER in repr(answer):
            shown.add(operation)
        return answer

    monkeypatch.setattr(Database, "execute", look)
    play_seeds(tmp_path)
    assert shown == set()
    assert len(asked) > 40
