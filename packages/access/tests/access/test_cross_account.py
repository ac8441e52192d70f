"""Tables of another account, reached by their ARN: in process and over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import orjson
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

import hashrange
from hashrange.clock import SystemClock
from hashrange.database import Database
from hashrange.errors import AccessDeniedException
from hashrange.operations import REGISTRY
from hashrange.operations.context import Caller
from hashrange.server import running
from hashrange.settings import Settings
from hashrange_access.judging.accounts import CROSS_ACCOUNT
from hashrange_access.judging.gate import Gate
from hashrange_access.judging.judge import Identified
from hashrange_access.judging.judging import guard
from hashrange_access.policies.requests import Principal
from hashrange_access.roles import Identity
from hashrange_access.users import read
from worlds import table_of

OWNER, GUEST, THIRD = "111111111111", "222222222222", "333333333333"
ARN = f"arn:aws:dynamodb:us-east-1:{OWNER}:table/scores"
BOB = f"arn:aws:iam::{GUEST}:user/bob"
OWN = f"arn:aws:dynamodb:us-east-1:{GUEST}:table/scores"
KEY = {"user": {"S": "a"}}
FULL: dict[str, Any] = {
    "Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*"},
}  # fmt: skip

Statement = dict[str, Any]
CONNECT: Any = boto3.client


def grant(actions: Any = "dynamodb:*", resource: Any = ARN, principal: Any = BOB, **more: Any) -> Statement:
    return {
        "Effect": "Allow", "Action": actions, "Resource": resource, "Principal": {"AWS": principal},
    } | more  # fmt: skip


def create(client: Any) -> None:
    client.create_table(**table_of("scores", "user", stream="NEW_IMAGE"))


class World:
    """Two accounts that each have a table `scores`. `bob` calls as the user bob of the second account, who
    has the policy `document`."""

    def __init__(self, owner: Any, bob: Callable[..., Any]) -> None:
        self.owner = owner
        self.bob = bob

    def attach(self, *statements: Statement, arn: str = ARN) -> None:
        text = orjson.dumps({"Version": "2012-10-17", "Statement": list(statements)}).decode()
        self.owner.put_resource_policy(ResourceArn=arn, Policy=text)

    def refusal(self, operation: str, document: dict[str, Any] = FULL, **request: Any) -> str:
        with pytest.raises(ClientError) as raised:
            self.bob(operation, document, **request)
        error = raised.value.response["Error"]
        assert error["Code"] == "AccessDeniedException", error
        return str(error["Message"])


@contextmanager
def in_process() -> Iterator[World]:
    with hashrange.local() as database:

        def client(account: str, service: str = "dynamodb") -> Any:
            return CONNECT(
                service, region_name="us-east-1", aws_access_key_id=account, aws_secret_access_key="any"
            )

        owner, guest = client(OWNER), {name: client(GUEST, name) for name in ("dynamodb", "dynamodbstreams")}
        create(owner)
        create(guest["dynamodb"])

        def bob(operation: str, document: dict[str, Any] = FULL, **request: Any) -> Any:
            service = "dynamodbstreams" if operation in STREAMS else "dynamodb"
            with hashrange.local(database, policy=document, user="bob"):
                return getattr(guest[service], operation)(**request)

        yield World(owner, bob)


STREAMS = ("describe_stream", "get_shard_iterator", "get_records")


def key(key_id: str) -> dict[str, str]:
    return {"id": key_id, "secret": "a-long-secret"}


@contextmanager
def over_http() -> Iterator[World]:
    nobody = {"Version": "2012-10-17", "Statement": FULL["Statement"] | {"Effect": "Deny"}}
    users = {
        OWNER: {"root": {"keys": [key("AKIDOWNER")]}},
        GUEST: {"users": {"bob": {"policies": [FULL], "keys": [key("AKIDFULL")]}}},
    }
    other = {GUEST: {"users": {"bob": {"policies": [nobody], "keys": [key("AKIDNONE")]}}}}
    known, denied = read({"accounts": users}), read({"accounts": other})
    known.keys.update(denied.keys)
    with Database.in_memory(settings=Settings(separate_accounts=True)) as database:
        guard(database, Gate(known, SystemClock().now, strict=True))
        with running(database) as url:

            def client(key: str, service: str = "dynamodb") -> Any:
                return CONNECT(
                    service, endpoint_url=url, region_name="us-east-1", aws_access_key_id=key,
                    aws_secret_access_key="a-long-secret", config=Config(retries={"total_max_attempts": 1}),
                )  # fmt: skip

            owner = client("AKIDOWNER")
            create(owner)
            create(client("AKIDFULL"))

            def bob(operation: str, document: dict[str, Any] = FULL, **request: Any) -> Any:
                key = "AKIDFULL" if document is FULL else "AKIDNONE"
                service = "dynamodbstreams" if operation in STREAMS else "dynamodb"
                return getattr(client(key, service), operation)(**request)

            yield World(owner, bob)


@pytest.fixture(params=[in_process, over_http])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with request.param() as made:
        yield made


def test_both_accounts_have_to_allow(world: World) -> None:
    opening = f"User: {BOB} is not authorized to perform: dynamodb:GetItem on resource: {ARN}"
    assert world.refusal("get_item", TableName=ARN, Key=KEY) == (
        f"{opening} because no resource-based policy allows the dynamodb:GetItem action"
    )
    world.attach(grant("dynamodb:GetItem"))
    world.owner.put_item(TableName="scores", Item=KEY | {"best": {"N": "9"}})
    assert world.bob("get_item", TableName=ARN, Key=KEY)["Item"]["best"] == {"N": "9"}
    assert "PutItem" in world.refusal("put_item", TableName=ARN, Item=KEY)
    neither = {"Version": "2012-10-17", "Statement": FULL["Statement"] | {"Effect": "Deny"}}
    assert world.refusal("get_item", neither, TableName=ARN, Key=KEY) == (
        f"{opening} with an explicit deny in an identity-based policy"
    )


def test_a_name_is_a_table_of_the_own_account(world: World) -> None:
    world.attach(grant())
    world.owner.put_item(TableName="scores", Item=KEY)
    assert "Item" not in world.bob("get_item", TableName="scores", Key=KEY)
    assert world.bob("describe_table", TableName="scores")["Table"]["TableArn"] == OWN
    assert world.bob("describe_table", TableName=ARN)["Table"]["TableArn"] == ARN


def test_items_of_another_account(world: World) -> None:
    world.attach(grant())
    world.bob("put_item", TableName=ARN, Item=KEY)
    assert world.owner.scan(TableName="scores")["Items"] == [KEY]
    assert world.bob("scan", TableName=ARN)["Items"] == [KEY]
    keys = {ARN: {"Keys": [KEY]}}
    assert world.bob("batch_get_item", RequestItems=keys)["Responses"][ARN] == [KEY]
    get = [{"Get": {"TableName": ARN, "Key": KEY}}]
    assert world.bob("transact_get_items", TransactItems=get)["Responses"] == [{"Item": KEY}]
    world.bob("transact_write_items", TransactItems=[{"Delete": {"TableName": ARN, "Key": KEY}}])
    world.bob("batch_write_item", RequestItems={ARN: [{"PutRequest": {"Item": KEY}}]})
    world.bob("update_item", TableName=ARN, Key=KEY, AttributeUpdates={"n": {"Value": {"N": "1"}}})
    world.bob("delete_item", TableName=ARN, Key=KEY)
    assert world.owner.scan(TableName="scores")["Count"] == 0
    assert world.bob("scan", TableName="scores")["Count"] == 0


def test_conditions_hold_for_the_other_accounts_table(world: World) -> None:
    world.attach(grant(
        "dynamodb:GetItem",
        Condition={"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "a"},
                   "StringEquals": {"aws:PrincipalAccount": GUEST, "aws:ResourceAccount": OWNER}},
    ))  # fmt: skip
    assert "Item" not in world.bob("get_item", TableName=ARN, Key=KEY)
    world.refusal("get_item", TableName=ARN, Key={"user": {"S": "b"}})


def test_streams_of_another_account(world: World) -> None:
    stream = world.owner.describe_table(TableName="scores")["Table"]["LatestStreamArn"]
    world.refusal("describe_stream", StreamArn=stream)
    actions = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"]
    world.attach(grant(actions, stream), arn=stream)
    world.owner.put_item(TableName="scores", Item=KEY)
    shard = world.bob("describe_stream", StreamArn=stream)["StreamDescription"]["Shards"][0]["ShardId"]
    iterator = world.bob(
        "get_shard_iterator", StreamArn=stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    records = world.bob("get_records", ShardIterator=iterator)["Records"]
    assert [record["dynamodb"]["Keys"] for record in records] == [KEY]


def test_tags_and_tables_of_another_account(world: World) -> None:
    world.attach(grant())
    world.bob("tag_resource", ResourceArn=ARN, Tags=[{"Key": "team", "Value": "red"}])
    assert world.owner.list_tags_of_resource(ResourceArn=ARN)["Tags"] == [{"Key": "team", "Value": "red"}]
    world.bob("untag_resource", ResourceArn=ARN, TagKeys=["team"])
    assert world.bob("list_tags_of_resource", ResourceArn=ARN)["Tags"] == []
    world.bob("update_table", TableName=ARN, DeletionProtectionEnabled=False)
    world.bob("delete_table", TableName=ARN)
    assert world.owner.list_tables()["TableNames"] == []
    assert world.bob("list_tables")["TableNames"] == ["scores"]


@pytest.mark.parametrize(
    ("operation", "request_", "text"),
    [
        ("describe_time_to_live", {"TableName": ARN}, "not authorized"),
        ("describe_continuous_backups", {"TableName": ARN}, "not authorized"),
        ("describe_contributor_insights", {"TableName": ARN}, "not authorized"),
        ("describe_kinesis_streaming_destination", {"TableName": ARN}, "not authorized"),
        ("get_resource_policy", {"ResourceArn": ARN}, "accounts that match the resource owner"),
        ("delete_resource_policy", {"ResourceArn": ARN}, "accounts that match the resource owner"),
        ("execute_statement", {"Statement": f'SELECT * FROM "{ARN}"'}, "Table name should be within"),
    ],
)
def test_other_operations_do_not_reach_another_account(
    world: World, operation: str, request_: dict[str, Any], text: str
) -> None:
    world.attach(grant())
    with pytest.raises(ClientError, match=text):
        world.bob(operation, **request_)


def test_a_request_stays_in_one_account(world: World) -> None:
    world.attach(grant())
    both = {ARN: {"Keys": [KEY]}, "scores": {"Keys": [KEY]}}
    world.refusal("batch_get_item", RequestItems=both)
    third = ARN.replace(OWNER, THIRD)
    gets = [{"Get": {"TableName": name, "Key": KEY}} for name in (ARN, third)]
    world.refusal("transact_get_items", TransactItems=gets)


def test_a_table_that_is_not_there_does_not_show(world: World) -> None:
    message = world.refusal("get_item", TableName=f"{ARN}s", Key=KEY)
    assert message.endswith("because no resource-based policy allows the dynamodb:GetItem action")


def test_the_operations_exist() -> None:
    assert set(REGISTRY) >= CROSS_ACCOUNT


def test_without_policies_another_account_is_refused_as_before() -> None:
    with hashrange.local():
        clients = [
            boto3.client("dynamodb", region_name="us-east-1", aws_access_key_id=account,
                         aws_secret_access_key="any")
            for account in (OWNER, GUEST)
        ]  # fmt: skip
        create(clients[0])
        text = orjson.dumps({"Version": "2012-10-17", "Statement": [grant()]}).decode()
        clients[0].put_resource_policy(ResourceArn=ARN, Policy=text)
        with pytest.raises(ClientError, match="AccessDeniedException"):
            clients[1].get_item(TableName=ARN, Key=KEY)


def test_a_request_that_is_only_logged_does_not_reach_another_account() -> None:
    root = Identity(Principal(f"arn:aws:iam::{GUEST}:root", GUEST, "Account"))
    with Database.in_memory(settings=Settings(separate_accounts=True)) as database:
        database.part("access", "judging").begin()
        for refuses in (True, False):
            caller = Caller(account_id=GUEST, identified=Identified(root, {}, refuses))
            with pytest.raises(AccessDeniedException) as raised:
                database.execute("GetItem", {"TableName": ARN, "Key": KEY}, caller)
            assert ("resource-based policy" in str(raised.value)) is refuses
