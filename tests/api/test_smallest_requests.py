"""Every operation of the API by its smallest legal request, and each of its members wrong, by both doors.

The smallest request has the required members only. From it and from the request's shape come requests in
which one member is missing, has a wrong JSON type, is longer than it may be, or is not known. Operations that
Hashrange does not have are unknown.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import botocore.session
import orjson
import pytest

from doors import Door, in_process, outcome, over_http
from hashrange.clock import ManualClock
from hashrange.database import Database, Settings
from hashrange.operations import REGISTRY
from hashrange.server import running
from hashrange.shapes import OPERATIONS
from hashrange.shapes.vocabulary import (
    AttributeValue,
    Blob,
    Boolean,
    List,
    Map,
    Number,
    Shape,
    String,
    Structure,
    Timestamp,
)
from hashrange.storage.memory import MemoryEngine
from vector_tables import index_of

Json = dict[str, Any]
Put = Callable[[Any], Json]

_SESSION = botocore.session.get_session()
MODELLED = sorted(
    name
    for service in ("dynamodb", "dynamodbstreams")
    for name in _SESSION.get_service_model(service).operation_names
)
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/music"
JOB = "01791506763707-476754e8"
KINESIS = "arn:aws:kinesis:us-east-1:000000000000:stream/changes"
KEY = {"pk": {"S": "a"}}
OF_ITEM = {"TableName": "music", "Key": KEY}
SELECT = {"Statement": "SELECT * FROM music WHERE pk = 'a'"}
POLICY = orjson.dumps(
    {
        "Version": "2012-10-17",
        "Statement": {"Effect": "Deny", "Principal": "*", "Action": "dynamodb:GetItem", "Resource": ARN},
    }
).decode()
TABLE: Json = {
    "TableName": "music",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}
NO_SUCH_GLOBAL_TABLE = "GlobalTableNotFoundException"

# The smallest request of each operation, and what answers it: "OK" or the code of an error.
SMALLEST: dict[str, tuple[Json, str]] = {
    "BatchExecuteStatement": ({"Statements": [SELECT]}, "OK"),
    "BatchGetItem": ({"RequestItems": {"music": {"Keys": [KEY]}}}, "OK"),
    "BatchWriteItem": ({"RequestItems": {"music": [{"DeleteRequest": {"Key": KEY}}]}}, "OK"),
    "CancelBulkOperation": (
        {"BulkOperationArn": f"{ARN}/bulk-operation/{JOB}"},
        "ResourceNotFoundException",
    ),
    "CreateBackup": ({"TableName": "music", "BackupName": "mine"}, "OK"),
    "CreateGlobalTable": (
        {"GlobalTableName": "music", "ReplicationGroup": [{"RegionName": "eu-west-1"}]},
        "ValidationException",
    ),
    "CreateTable": (TABLE | {"TableName": "other"}, "OK"),
    "DeleteBackup": ({"BackupArn": f"{ARN}/backup/{JOB}"}, "BackupNotFoundException"),
    "DeleteItem": (OF_ITEM, "OK"),
    "DeleteResourcePolicy": ({"ResourceArn": ARN}, "OK"),
    "DeleteTable": ({"TableName": "music"}, "OK"),
    "DescribeBackup": ({"BackupArn": f"{ARN}/backup/{JOB}"}, "BackupNotFoundException"),
    "DescribeBulkOperation": (
        {"BulkOperationArn": f"{ARN}/bulk-operation/{JOB}"},
        "ResourceNotFoundException",
    ),
    "DescribeContinuousBackups": ({"TableName": "music"}, "OK"),
    "DescribeEndpoints": ({}, "OK"),
    "DescribeExport": ({"ExportArn": f"{ARN}/export/{JOB}"}, "ExportNotFoundException"),
    "DescribeGlobalTable": ({"GlobalTableName": "music"}, NO_SUCH_GLOBAL_TABLE),
    "DescribeGlobalTableSettings": ({"GlobalTableName": "music"}, NO_SUCH_GLOBAL_TABLE),
    "DescribeImport": ({"ImportArn": f"{ARN}/import/{JOB}"}, "ImportNotFoundException"),
    "DescribeLimits": ({}, "OK"),
    "DescribeStream": ({"StreamArn": "<stream>"}, "OK"),
    "DescribeContributorInsights": ({"TableName": "music"}, "OK"),
    "DescribeKinesisStreamingDestination": ({"TableName": "music"}, "OK"),
    "DescribeTable": ({"TableName": "music"}, "OK"),
    "DescribeTableReplicaAutoScaling": ({"TableName": "music"}, "ResourceNotFoundException"),
    "DescribeTimeToLive": ({"TableName": "music"}, "OK"),
    "DisableKinesisStreamingDestination": (
        {"TableName": "music", "StreamArn": KINESIS},
        "ValidationException",
    ),
    "EnableKinesisStreamingDestination": ({"TableName": "music", "StreamArn": KINESIS}, "OK"),
    "ExecuteStatement": (SELECT, "OK"),
    "ExecuteTransaction": ({"TransactStatements": [SELECT]}, "OK"),
    "ExportTableToPointInTime": ({"TableArn": ARN, "S3Bucket": "a-bucket"}, "OK"),
    "GetItem": (OF_ITEM, "OK"),
    "GetRecords": ({"ShardIterator": "<iterator>"}, "OK"),
    "GetResourcePolicy": ({"ResourceArn": ARN}, "PolicyNotFoundException"),
    "GetShardIterator": (
        {"StreamArn": "<stream>", "ShardId": "<shard>", "ShardIteratorType": "LATEST"},
        "OK",
    ),
    "ImportTable": (
        {
            "S3BucketSource": {"S3Bucket": "a-bucket"},
            "InputFormat": "ION",
            "TableCreationParameters": TABLE | {"TableName": "imported"},
        },
        "OK",
    ),
    "ListBackups": ({}, "OK"),
    "ListBulkOperations": ({}, "OK"),
    "ListContributorInsights": ({}, "OK"),
    "ListExports": ({}, "OK"),
    "ListGlobalTables": ({}, "OK"),
    "ListImports": ({}, "OK"),
    "ListStreams": ({}, "OK"),
    "ListTables": ({}, "OK"),
    "ListTagsOfResource": ({"ResourceArn": ARN}, "OK"),
    "PutItem": ({"TableName": "music", "Item": KEY}, "OK"),
    "PutResourcePolicy": ({"ResourceArn": ARN, "Policy": POLICY}, "OK"),
    "Query": (
        {
            "TableName": "music",
            "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}},
        },
        "OK",
    ),
    "RestoreTableFromBackup": (
        {"TargetTableName": "restored", "BackupArn": f"{ARN}/backup/{JOB}"},
        "BackupNotFoundException",
    ),
    "RestoreTableToPointInTime": (
        {"SourceTableName": "music", "TargetTableName": "restored", "UseLatestRestorableTime": True},
        "OK",
    ),
    "Scan": ({"TableName": "music"}, "OK"),
    "SearchVectors": (
        {"TableName": "music", "IndexName": "near", "SearchVector": [{"N": "1"}, {"N": "2"}], "TopK": 1},
        "OK",
    ),
    "StartBulkPutItems": (
        {
            "TableName": "music",
            "InputS3Configuration": {"S3Bucket": "a-bucket", "InputFormat": "ION"},
            "OutputS3Configuration": {"S3Bucket": "a-bucket", "OutputType": ["ERROR"]},
        },
        "OK",
    ),
    "TagResource": ({"ResourceArn": ARN, "Tags": [{"Key": "a", "Value": "b"}]}, "OK"),
    "TransactGetItems": ({"TransactItems": [{"Get": OF_ITEM}]}, "OK"),
    "TransactWriteItems": ({"TransactItems": [{"Delete": OF_ITEM}]}, "OK"),
    "UntagResource": ({"ResourceArn": ARN, "TagKeys": ["a"]}, "OK"),
    "UpdateContinuousBackups": (
        {"TableName": "music", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}},
        "OK",
    ),
    "UpdateContributorInsights": ({"TableName": "music", "ContributorInsightsAction": "ENABLE"}, "OK"),
    "UpdateGlobalTable": (
        {"GlobalTableName": "music", "ReplicaUpdates": [{"Create": {"RegionName": "eu-west-1"}}]},
        "ValidationException",
    ),
    "UpdateGlobalTableSettings": ({"GlobalTableName": "music"}, NO_SUCH_GLOBAL_TABLE),
    "UpdateItem": (OF_ITEM, "OK"),
    "UpdateKinesisStreamingDestination": (
        {"TableName": "music", "StreamArn": KINESIS},
        "ValidationException",
    ),
    "UpdateTable": ({"TableName": "music", "DeletionProtectionEnabled": False}, "OK"),
    "UpdateTableReplicaAutoScaling": ({"TableName": "music"}, "ResourceNotFoundException"),
    "UpdateTimeToLive": (
        {"TableName": "music", "TimeToLiveSpecification": {"AttributeName": "t", "Enabled": True}},
        "OK",
    ),
}


class World:
    """A database with a table that has a stream and recovery, and a door to it."""

    def __init__(self, folder: Path) -> None:
        (folder / "a-bucket").mkdir(exist_ok=True)
        settings = Settings(s3_dir=str(folder), backup_dir=str(folder / "backups"))
        self.database = Database(MemoryEngine(), clock=ManualClock(), settings=settings)
        stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        self.ask("CreateTable", {**TABLE, "StreamSpecification": stream, "VectorIndexes": [index_of()]})
        self.ask("UpdateContinuousBackups", SMALLEST["UpdateContinuousBackups"][0])
        self.stream = self.ask("DescribeTable", {"TableName": "music"})["Table"]["LatestStreamArn"]
        described = self.ask("DescribeStream", {"StreamArn": self.stream})["StreamDescription"]
        self.shard = described["Shards"][0]["ShardId"]
        where = {"StreamArn": self.stream, "ShardId": self.shard, "ShardIteratorType": "LATEST"}
        self.iterator = self.ask("GetShardIterator", where)["ShardIterator"]

    def ask(self, operation: str, request: Json) -> Json:
        answered: Json = self.database.execute(operation, copy.deepcopy(request))
        return answered

    def smallest(self, operation: str) -> Json:
        """The smallest legal request of an operation."""
        names = {"<stream>": self.stream, "<shard>": self.shard, "<iterator>": self.iterator}
        request = orjson.dumps(SMALLEST[operation][0]).decode()
        for placeholder, real in names.items():
            request = request.replace(placeholder, real)
        replaced: Json = orjson.loads(request)
        return replaced


@pytest.fixture(params=["http", "in process"])
def world_and_door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[World, Door]]:
    world = World(tmp_path)
    try:
        if request.param == "http":
            with running(world.database) as endpoint:
                yield world, over_http(endpoint)
        else:
            yield world, in_process(world.database)
    finally:
        world.database.close()


def legal(shape: Shape) -> Any:
    """A small legal value of a shape."""
    match shape:
        case String():
            shortest = 3 if shape.names_table else 1
            return shape.words[0] if shape.words else "a" * max(shape.minimum or 1, shortest)
        case Number():
            return shape.minimum or 1
        case Boolean():
            return True
        case Blob():
            return "AA=="
        case Timestamp():
            return 1
        case AttributeValue():
            return {"S": "a"}
        case List():
            return [legal(shape.member)] * max(shape.minimum or 0, 1)
        case Map():
            return {legal(shape.key): legal(shape.value)}
        case Structure():
            return {name: legal(shape.members[name]) for name in shape.members if name in shape.needed}


def places(shape: Shape, value: Any, put: Put) -> Iterator[tuple[Shape, Put, Any]]:
    """Every place of a request: the shape of the value there, a function that puts another value there, and
    the structure that the place is a member of (None for a place in a list or map). `value` is None where the
    request has nothing."""
    match shape:
        case Structure():
            present = legal(shape) if value is None else value
            for name, member in shape.members.items():

                def put_member(new: Any, name: str = name, present: Json = present) -> Json:
                    return put({**present, name: new})

                yield member, put_member, (shape, name, present)
                yield from places(member, present.get(name), put_member)
        case List():
            yield shape.member, lambda new: put([new]), None
            yield from places(shape.member, value[0] if value else None, lambda new: put([new]))
        case Map():
            key = next(iter(value)) if value else legal(shape.key)
            yield shape.value, lambda new: put({key: new}), None
            yield from places(shape.value, value[key] if value else None, lambda new: put({key: new}))


def of_wrong_type(shape: Shape) -> Any:
    return 5 if isinstance(shape, Structure | List | Map | AttributeValue) else [{}]


def too_long(shape: Shape) -> Any:
    """A value longer than the shape allows, or None if it allows any."""
    if isinstance(shape, String) and shape.maximum is not None:
        return "a" * (shape.maximum + 1)
    if isinstance(shape, List) and shape.maximum is not None:
        return [legal(shape.member)] * (shape.maximum + 1)
    return None


def test_there_is_a_smallest_request_of_every_operation() -> None:
    assert set(SMALLEST) == set(REGISTRY)


@pytest.mark.parametrize("operation", MODELLED)
def test_the_smallest_request(world_and_door: tuple[World, Door], operation: str) -> None:
    world, door = world_and_door
    if operation not in REGISTRY:
        assert outcome(door, operation, {}).startswith("UnknownOperationException")
        return
    request = world.smallest(operation)
    shape = OPERATIONS[operation]
    unknown = {**request, "NoMemberOfTheApi": {"at": ["all"]}}
    assert outcome(door, operation, unknown).partition(":")[0] == SMALLEST[operation][1]
    for member, put, _ in places(shape, request, dict):
        wrong = put(of_wrong_type(member))
        assert outcome(door, operation, wrong).startswith("SerializationException"), wrong
        long = too_long(member)
        if long is not None:
            answered = outcome(door, operation, put(long))
            assert answered.startswith("ValidationException"), (put(long), answered)


@pytest.mark.parametrize("operation", sorted(REGISTRY))
def test_a_required_member_that_is_missing(world_and_door: tuple[World, Door], operation: str) -> None:
    world, door = world_and_door
    request, shape = world.smallest(operation), OPERATIONS[operation]
    without = [{name: request[name] for name in request if name != gone} for gone in shape.needed]
    for _, put, at in places(shape, request, dict):
        if at is not None and at[1] in at[0].needed:
            without.append(put(None))
    for broken in without:
        answered = outcome(door, operation, broken)
        is_null = operation == "SearchVectors" and None in broken.values()
        code = "SerializationException: invalid type: null" if is_null else "ValidationException"
        assert answered.startswith(code), (broken, answered)
