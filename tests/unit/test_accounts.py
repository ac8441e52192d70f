"""Separate accounts and regions: two sets of tables, whatever the operation; and shared ones, the default."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from hashrange.cli.serving.owners import warn_of_hidden_tables
from hashrange.clock import ManualClock
from hashrange.database import Caller, Database
from hashrange.errors import (
    AccessDeniedException,
    ResourceNotFoundException,
    ServiceError,
    TableNotFoundException,
    ValidationException,
)
from hashrange.operations import REGISTRY
from hashrange.protocol import Call, Wire
from hashrange.settings import Settings
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.inspection.check import check
from vector_tables import index_of
from worlds import create, expiry_of, recovery_of

ONE, OTHER = "111111111111", "222222222222"
ACCOUNTS = Settings(separate_accounts=True)
REGIONS = Settings(separate_regions=True)
BOTH = Settings(separate_accounts=True, separate_regions=True)

KEY = {"pk": {"S": "k"}}


def arn(account: str, region: str = "us-east-1", name: str = "pages") -> str:
    return f"arn:aws:dynamodb:{region}:{account}:table/{name}"


class World:
    """A database, called by several callers."""

    def __init__(self, settings: Settings) -> None:
        self.engine = MemoryEngine()
        self.clock = ManualClock(1_800_000_000.0)
        self.database = Database(self.engine, settings=settings, clock=self.clock)

    def __call__(self, caller: Caller, operation: str, **request: Any) -> Any:
        copied = orjson.loads(orjson.dumps(request))
        return orjson.loads(orjson.dumps(self.database.execute(operation, copied, caller)))

    def create(self, caller: Caller, value: str, name: str = "pages") -> None:
        near = {**index_of("nearby", 1), "VectorAttribute": {"AttributeName": "place"}}
        create(self.database, name, "pk", caller, stream="NEW_IMAGE", VectorIndexes=[near])
        self(caller, "PutItem", TableName=name, Item={**KEY, "v": {"S": value}})

    def value(self, caller: Caller, name: str = "pages") -> str | None:
        try:
            return str(self(caller, "GetItem", TableName=name, Key=KEY)["Item"]["v"]["S"])
        except ResourceNotFoundException:
            return None


HERE, THERE = Caller(account_id=ONE), Caller(account_id=OTHER)
ABROAD = Caller("eu-west-1", ONE)


@pytest.mark.parametrize(
    ("settings", "there", "abroad"),
    [(Settings(), "mine", "mine"), (ACCOUNTS, None, "mine"), (REGIONS, "mine", None), (BOTH, None, None)],
    ids=["shared", "accounts", "regions", "both"],
)
def test_whose_tables_a_caller_finds(settings: Settings, there: str | None, abroad: str | None) -> None:
    world = World(settings)
    world.create(HERE, "mine")
    assert [world.value(caller) for caller in (HERE, THERE, ABROAD)] == ["mine", there, abroad]
    for caller, value in ((THERE, there), (ABROAD, abroad)):
        names = world(caller, "ListTables")["TableNames"]
        assert names == ([] if value is None else ["pages"])
        if value is None:
            world.create(caller, "another")
    assert world.value(HERE) == "mine"
    assert [*check(world.engine)] == []


KINESIS = "arn:aws:kinesis:us-east-1:000000000000:stream/pages"
# One request of every operation that names a table, and what it shows of the table that it found.
OPERATIONS: dict[str, dict[str, Any]] = {
    "BatchExecuteStatement": {"Statements": [{"Statement": "SELECT * FROM pages WHERE pk = 'k'"}]},
    "BatchGetItem": {"RequestItems": {"pages": {"Keys": [KEY]}}},
    "BatchWriteItem": {"RequestItems": {"pages": [{"PutRequest": {"Item": {**KEY, "v": {"S": "new"}}}}]}},
    "DeleteItem": {"TableName": "pages", "Key": KEY},
    "DeleteTable": {"TableName": "pages"},
    "DescribeContinuousBackups": {"TableName": "pages"},
    "UpdateContinuousBackups": recovery_of("pages"),
    "DescribeTable": {"TableName": "pages"},
    "DescribeTimeToLive": {"TableName": "pages"},
    "DescribeContributorInsights": {"TableName": "pages"},
    "DescribeKinesisStreamingDestination": {"TableName": "pages"},
    "EnableKinesisStreamingDestination": {"TableName": "pages", "StreamArn": KINESIS},
    "ListContributorInsights": {"TableName": "pages"},
    "ExecuteStatement": {"Statement": "UPDATE pages SET v = 'new' WHERE pk = 'k'"},
    "ExecuteTransaction": {"TransactStatements": [{"Statement": "DELETE FROM pages WHERE pk = 'k'"}]},
    "GetItem": {"TableName": "pages", "Key": KEY},
    "PutItem": {"TableName": "pages", "Item": {**KEY, "v": {"S": "new"}}},
    "Query": {
        "TableName": "pages",
        "KeyConditionExpression": "pk = :k",
        "ExpressionAttributeValues": {":k": {"S": "k"}},
    },
    "Scan": {"TableName": "pages"},
    "SearchVectors": {
        "TableName": "pages", "IndexName": "nearby", "SearchVector": [{"N": "1"}], "TopK": 1
    },
    "TransactGetItems": {"TransactItems": [{"Get": {"TableName": "pages", "Key": KEY}}]},
    "TransactWriteItems": {"TransactItems": [{"Delete": {"TableName": "pages", "Key": KEY}}]},
    "UpdateItem": {"TableName": "pages", "Key": KEY},
    "UpdateContributorInsights": {"TableName": "pages", "ContributorInsightsAction": "ENABLE"},
    "UpdateTable": {"TableName": "pages", "DeletionProtectionEnabled": False},
    "UpdateTimeToLive": expiry_of("pages"),
}
# These name their table by its ARN only, or make one, or name none.
ELSEWHERE = {"CreateTable", "RestoreTableToPointInTime", "ListTables", "ListStreams"}
ELSEWHERE |= {"DescribeStream", "GetShardIterator", "GetRecords"}
ELSEWHERE |= {"CreateBackup", "DescribeBackup", "ListBackups", "DeleteBackup", "RestoreTableFromBackup"}
ELSEWHERE |= {"ImportTable", "DescribeImport", "ListImports"}
ELSEWHERE |= {
    "StartBulkPutItems", "DescribeBulkOperation", "ListBulkOperations", "CancelBulkOperation"
}  # fmt: skip
ELSEWHERE |= {"ExportTableToPointInTime", "DescribeExport", "ListExports"}
ELSEWHERE |= {"TagResource", "UntagResource", "ListTagsOfResource", "DescribeEndpoints", "DescribeLimits"}
ELSEWHERE |= {"PutResourcePolicy", "GetResourcePolicy", "DeleteResourcePolicy"}
# These need a destination, or a global table.
ELSEWHERE |= {"DisableKinesisStreamingDestination", "UpdateKinesisStreamingDestination"}
ELSEWHERE |= {"DescribeTableReplicaAutoScaling", "UpdateTableReplicaAutoScaling"}
ELSEWHERE |= {"CreateGlobalTable", "DescribeGlobalTable", "DescribeGlobalTableSettings"}
ELSEWHERE |= {"ListGlobalTables", "UpdateGlobalTable", "UpdateGlobalTableSettings"}


def test_every_operation_is_looked_at() -> None:
    assert REGISTRY.keys() - ELSEWHERE == OPERATIONS.keys()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_operation_finds_the_tables_of_another_account(operation: str) -> None:
    world = World(ACCOUNTS)
    world.create(HERE, "mine")
    request = OPERATIONS[operation]
    try:
        answer = world(THERE, operation, **request)
    except (ResourceNotFoundException, TableNotFoundException):
        pass
    else:
        assert answer["Responses"][0]["Error"]["Code"] == "ResourceNotFound"
    assert world.value(HERE) == "mine"
    # It finds the caller's own table, and leaves the other caller's as it is.
    world.create(THERE, "theirs")
    world(THERE, operation, **request)
    assert world.value(HERE) == "mine"


def test_a_table_is_restored_within_its_account() -> None:
    world = World(ACCOUNTS)
    for caller, value in ((HERE, "mine"), (THERE, "theirs")):
        world.create(caller, value)
        world(caller, "UpdateContinuousBackups", **recovery_of("pages"))
    restore: Any = {"TargetTableName": "restored", "UseLatestRestorableTime": True}
    with pytest.raises(ValidationException, match="match the resource owner's account"):
        world(THERE, "RestoreTableToPointInTime", SourceTableArn=arn(ONE), **restore)
    for caller, value in ((HERE, "mine"), (THERE, "theirs")):
        world(caller, "RestoreTableToPointInTime", SourceTableName="pages", **restore)
        assert world.value(caller, "restored") == value
        world(caller, "DeleteTable", TableName="pages")
    assert [*check(world.engine)] == []


def test_an_arn_names_the_tables_of_its_account_and_region_only() -> None:
    world = World(BOTH)
    world.create(HERE, "mine")
    assert world.value(HERE, arn(ONE)) == "mine"
    world(HERE, "TagResource", ResourceArn=arn(ONE), Tags=[{"Key": "a", "Value": "b"}])
    assert world(HERE, "ListTagsOfResource", ResourceArn=arn(ONE))["Tags"]
    for operation in ("GetItem", "DeleteItem"):
        with pytest.raises(AccessDeniedException, match=arn(ONE)):
            world(THERE, operation, TableName=arn(ONE), Key=KEY)
        with pytest.raises(ValidationException, match="Invalid ResourceArn"):
            world(ABROAD, operation, TableName=arn(ONE), Key=KEY)
    with pytest.raises(AccessDeniedException):
        world(THERE, "DescribeTable", TableName=arn(ONE))
    put = {"Put": {"TableName": arn(ONE), "Item": KEY}}
    for request in (("TransactWriteItems", {"TransactItems": [put]}), ("Scan", {"TableName": arn(ONE)})):
        with pytest.raises(AccessDeniedException):
            world(THERE, request[0], **request[1])


def test_shared_tables_answer_to_the_arns_of_all() -> None:
    world = World(Settings())
    world.create(HERE, "mine")
    assert world.value(THERE, arn(ONE)) == world.value(ABROAD, arn("000000000000")) == "mine"


def test_streams_belong_to_the_account_of_their_table() -> None:
    world = World(BOTH)
    world.create(HERE, "mine")
    world.create(THERE, "theirs")
    streams = {caller: world(caller, "ListStreams")["Streams"] for caller in (HERE, THERE, ABROAD)}
    assert [len(found) for found in streams.values()] == [1, 1, 0]
    [mine], [theirs] = streams[HERE], streams[THERE]
    assert arn(ONE) in mine["StreamArn"]
    assert arn(OTHER) in theirs["StreamArn"]
    with pytest.raises(ResourceNotFoundException):
        world(THERE, "DescribeStream", StreamArn=mine["StreamArn"])
    # Nor by a made up ARN of one's own.
    forged = mine["StreamArn"].replace(ONE, "333333333333")
    with pytest.raises(ResourceNotFoundException):
        world(Caller(account_id="333333333333"), "DescribeStream", StreamArn=forged)
    described = world(HERE, "DescribeStream", StreamArn=mine["StreamArn"])["StreamDescription"]
    shard = {"StreamArn": mine["StreamArn"], "ShardId": described["Shards"][0]["ShardId"]}
    start = world(HERE, "GetShardIterator", **shard, ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
    [record] = world(HERE, "GetRecords", ShardIterator=start)["Records"]
    assert record["dynamodb"]["NewImage"]["v"] == {"S": "mine"}
    with pytest.raises(ResourceNotFoundException):
        world(THERE, "GetRecords", ShardIterator=start)
    world(HERE, "DeleteTable", TableName="pages")
    assert world(HERE, "DescribeStream", StreamArn=mine["StreamArn"])
    assert world.value(THERE) == "theirs"


def test_tokens_of_transactions_belong_to_an_account_and_a_region() -> None:
    world = World(BOTH)
    for number, caller in enumerate((HERE, THERE, ABROAD)):
        world.create(caller, "old")
        put = {"Put": {"TableName": "pages", "Item": {**KEY, "v": {"S": f"new {number}"}}}}
        world(caller, "TransactWriteItems", TransactItems=[put], ClientRequestToken="the same")
    assert [world.value(caller) for caller in (HERE, THERE, ABROAD)] == ["new 0", "new 1", "new 2"]


def test_the_background_works_on_the_tables_of_all() -> None:
    world = World(BOTH)
    for caller in (HERE, THERE, ABROAD):
        world.create(caller, "old")
        world(caller, "UpdateTimeToLive", **expiry_of("pages"))
        world(caller, "PutItem", TableName="pages", Item={**KEY, "ttl": {"N": "1800000100"}})
    overview = [table["name"] for table in world.database.overview()]
    assert overview == [f"{ONE}/eu-west-1/pages", f"{ONE}/us-east-1/pages", f"{OTHER}/us-east-1/pages"]
    assert [table["name"] for table in world.database.overview(overview[0], 1)] == overview[1:2]
    world.clock.advance(1000.0)
    world.database.settle()
    for caller in (HERE, THERE, ABROAD):
        assert world(caller, "Scan", TableName="pages")["Count"] == 0
    assert [*check(world.engine)] == []


def test_global_tables_need_shared_regions() -> None:
    update = {"TableName": "pages", "ReplicaUpdates": [{"Create": {"RegionName": "eu-west-1"}}]}
    for settings in (REGIONS, BOTH):
        world = World(settings)
        world.create(HERE, "mine")
        with pytest.raises(ValidationException, match="--separate-regions"):
            world(HERE, "UpdateTable", **update)
    world = World(ACCOUNTS)
    world.create(HERE, "mine", "pages")
    world(
        HERE,
        "UpdateTable",
        TableName="pages",
        StreamSpecification={"StreamEnabled": False},
    )
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    world(HERE, "UpdateTable", TableName="pages", StreamSpecification=stream)
    world(HERE, "UpdateTable", **update)
    assert world.value(ABROAD) == "mine"
    assert world.value(THERE) is None


def test_a_name_with_slashes_reaches_no_other_scope() -> None:
    world = World(ACCOUNTS)
    world.create(HERE, "mine")
    shared = World(Settings())
    for made_up in (f"{ONE}/*/pages", "../pages", f"/{ONE}/*/pages"):
        for one in (world, shared):
            with pytest.raises(ServiceError):
                one(THERE, "ExecuteStatement", Statement=f"SELECT * FROM \"{made_up}\" WHERE pk = 'k'")
            with pytest.raises(ServiceError):
                one(THERE, "GetItem", TableName=made_up, Key=KEY)


def test_the_account_of_a_request_is_its_access_key_where_that_has_twelve_digits() -> None:
    wire = Wire(region="us-east-1", account_id="000000000000")

    def caller(access_key: str, region: str) -> Caller:
        credential = f"{access_key}/20260101/{region}/dynamodb/aws4_request"
        signed = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host, Signature=0"
        headers = {
            b"content-type": b"application/x-amz-json-1.0",
            b"x-amz-target": b"DynamoDB_20120810.ListTables",
            b"x-amz-date": b"20260101T000000Z",
            b"authorization": signed.encode(),
        }
        call = wire.read(b"POST", b"/", headers, b"{}")
        assert isinstance(call, Call)
        return call.caller

    assert caller(ONE, "eu-west-1") == Caller("eu-west-1", ONE, ONE)
    assert caller("any", "eu-west-1") == Caller("eu-west-1", "000000000000", "any")
    assert caller("AKIAIOSFODNN7EXAMPLE", "us-east-1").account_id == "000000000000"


FOUND = {
    Settings(): "start the server without --separate-accounts and without --separate-regions to find them",
    ACCOUNTS: "start the server with --separate-accounts and without --separate-regions to find them",
    REGIONS: "start the server without --separate-accounts and with --separate-regions to find them",
    BOTH: "start the server with --separate-accounts and with --separate-regions to find them",
}


@pytest.mark.parametrize("now", FOUND, ids=["shared", "accounts", "regions", "both"])
def test_a_start_warns_of_tables_that_nobody_finds(now: Settings, caplog: pytest.LogCaptureFixture) -> None:
    engine = MemoryEngine()
    for number, settings in enumerate(FOUND):
        for caller in (HERE, THERE):
            create(Database(engine, settings=settings), f"{caller.account_id}-{number}", "pk", caller)
    warn_of_hidden_tables(Database(engine, settings=now))
    owners = {
        Settings(): "all callers",
        ACCOUNTS: f"{ONE}/*, {OTHER}/*",
        REGIONS: "*/us-east-1",
        BOTH: f"{ONE}/us-east-1, {OTHER}/us-east-1",
    }
    warned = [getattr(record, "fields", {}) for record in caplog.records]
    expected = [(2, owners[made], remedy) for made, remedy in FOUND.items() if made != now]
    shown = [(one["tables"], one["owners"], one["remedy"]) for one in warned]
    assert sorted(shown) == sorted(expected)


def test_a_start_names_a_few_owners_and_counts_the_others(caplog: pytest.LogCaptureFixture) -> None:
    engine = MemoryEngine()
    accounts = Database(engine, settings=ACCOUNTS)
    for number in range(8):
        create(accounts, "pages", "pk", Caller(account_id=f"{number:012}"))
    warn_of_hidden_tables(accounts)
    assert caplog.records == []
    warn_of_hidden_tables(Database(engine))
    [record] = caplog.records
    fields: dict[str, Any] = getattr(record, "fields", {})
    assert fields["tables"] == 8
    assert fields["owners"] == ", ".join(f"{number:012}/*" for number in range(5)) + " and 3 more"
