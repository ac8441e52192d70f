"""The example policies of DynamoDB's developer guide: what each allows and what it refuses, through boto3.

The documents are the guide's, with two changes: the id of a user of a web identity provider, which no request
has here, is the name of the IAM user; and the sessions, users and addresses are those of the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import orjson
import pytest
from botocore.exceptions import ClientError

import hashrange
from hashrange.settings import Settings

ACCOUNT = "123456789012"
REGION = "us-west-2"
ARN = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table"
SCORES = f"{ARN}/GameScores"
INDEX = f"{SCORES}/index/TopScoreDateTimeIndex"

Json = dict[str, Any]
Request = tuple[str, Json]


@dataclass(frozen=True, slots=True)
class Example:
    """An example of the guide. `on_resource`: the statements are attached to the table."""

    name: str
    statements: list[Json]
    allowed: list[Request]
    refused: list[Request]
    on_resource: bool = False
    user: str = "alice"


def allow(actions: str, resource: Any, sid: str = "", effect: str = "Allow", **condition: Any) -> Json:
    named = [action if ":" in action else f"dynamodb:{action}" for action in actions.split()]
    made: Json = {"Effect": effect, "Action": named, "Resource": resource}
    if sid:
        made["Sid"] = sid
    if condition:
        made["Condition"] = {name.replace("__", ":"): keys for name, keys in condition.items()}
    return made


def key(user: str = "alice", title: str | None = None, table: str = "GameScores", **more: Any) -> Json:
    made = {"UserId": {"S": user}} | ({"GameTitle": {"S": title}} if title else {})
    return {"TableName": table, "Key": made, **more}


def item(user: str = "alice", table: str = "GameScores", title: str | None = None) -> Json:
    made = {"UserId": {"S": user}, "Wins": {"N": "1"}} | ({"GameTitle": {"S": title}} if title else {})
    return {"TableName": table, "Item": made}


def update(path: str, user: str = "alice", **more: Any) -> Request:
    return "update_item", key(
        user, UpdateExpression=f"SET {path} = :v", ExpressionAttributeValues={":v": {"N": "1"}}, **more
    )


def query(user: str = "alice", table: str = "GameScores", **more: Any) -> Request:
    return "query", {
        "TableName": table,
        "KeyConditionExpression": "UserId = :u",
        "ExpressionAttributeValues": {":u": {"S": user}},
        **more,
    }


def query_index(**more: Any) -> Request:
    return "query", {
        "TableName": "GameScores",
        "IndexName": "TopScoreDateTimeIndex",
        "KeyConditionExpression": "GameTitle = :t",
        "ExpressionAttributeValues": {":t": {"S": "Chess"}},
        **more,
    }


def run(statement: str, operation: str = "execute_statement") -> Request:
    if operation == "execute_transaction":
        return operation, {"TransactStatements": [{"Statement": statement}]}
    return operation, {"Statement": statement}


def keys_of(*users: str) -> Json:
    return {"RequestItems": {"GameScores": {"Keys": [{"UserId": {"S": user}} for user in users]}}}


SCAN: Request = ("scan", {"TableName": "GameScores"})
DESCRIBE: Request = ("describe_table", {"TableName": "GameScores"})
BOOKS: list[Request] = [
    ("get_item", key(table="Books")), ("put_item", item(table="Books")), query(table="Books"),
    ("scan", {"TableName": "Books"}), ("describe_table", {"TableName": "Books"}),
]  # fmt: skip
OWN = {"dynamodb:LeadingKeys": ["${aws:username}"]}
NOT_ALL = {"dynamodb:ReturnValues": ["NONE", "UPDATED_OLD", "UPDATED_NEW"]}
MUSIC = "PartiQLInsert PartiQLUpdate PartiQLDelete PartiQLSelect"
TRANSACTIONS = {"dynamodb:EnclosingOperation": ["ExecuteTransaction"]}
SELECT = "SELECT * FROM \"GameScores\" WHERE UserId = 'alice'"
INSERT = "INSERT INTO \"GameScores\" VALUE {'UserId': 'zoe'}"
WRITES = "PutItem UpdateItem DeleteItem GetItem Query Scan BatchWriteItem"

FINE_GRAINED = [
    Example(
        "specific partition key",
        [allow("GetItem BatchGetItem Query PutItem UpdateItem DeleteItem BatchWriteItem", SCORES,
               ForAllValues__StringEquals=OWN)],
        [("get_item", key()), ("put_item", item()), query(), update("Wins"), ("delete_item", key()),
         ("batch_get_item", keys_of("alice"))],
        [("get_item", key("bob")), ("put_item", item("bob")), query("bob"), update("Wins", "bob"),
         ("batch_get_item", keys_of("alice", "bob")), SCAN, query_index(), DESCRIBE],
    ),
    Example(
        "read-only with a specific partition key",
        [allow("GetItem BatchGetItem Query", SCORES, ForAllValues__StringEquals=OWN)],
        [("get_item", key()), query()],
        [("put_item", item()), ("get_item", key("bob")), SCAN],
    ),
    Example(
        "specific attributes",
        [allow("UpdateItem GetItem Query BatchGetItem Scan", SCORES,
               ForAllValues__StringEquals={"dynamodb:Attributes": ["UserId", "TopScore"]},
               StringEqualsIfExists={"dynamodb:Select": "SPECIFIC_ATTRIBUTES", **NOT_ALL})],
        [("get_item", key(ProjectionExpression="UserId, TopScore")), update("TopScore"),
         update("TopScore", ReturnValues="UPDATED_NEW"),
         query(ProjectionExpression="TopScore"),
         ("scan", {"TableName": "GameScores", "ProjectionExpression": "TopScore"})],
        [("get_item", key()), ("get_item", key(ProjectionExpression="Wins")), update("Wins"),
         update("TopScore", ReturnValues="ALL_OLD"), query(),
         query(ProjectionExpression="TopScore", FilterExpression="attribute_exists(Wins)"), SCAN,
         ("put_item", item()), ("delete_item", key())],
    ),
    Example(
        "no updates of certain attributes",
        [allow("UpdateItem", SCORES,
               ForAllValues__StringNotLike={"dynamodb:Attributes": [
                   "FreeGamesAvailable", "BossLevelUnlocked"]},
               StringEquals=NOT_ALL)],
        [update("Wins"), update("Wins", ReturnValues="UPDATED_OLD")],
        [update("FreeGamesAvailable"), update("Wins", ReturnValues="ALL_NEW"),
         update("Wins", ConditionExpression="attribute_exists(BossLevelUnlocked)"), ("get_item", key())],
    ),
    Example(
        "projected attributes of an index",
        [allow("Query", [INDEX], ForAllValues__StringEquals={"dynamodb:Attributes": [
                   "TopScoreDateTime", "GameTitle", "Wins", "Losses", "Attempts"]},
               StringEquals={"dynamodb:Select": "SPECIFIC_ATTRIBUTES"})],
        [query_index(ProjectionExpression="Wins, Losses"),
         query_index(ProjectionExpression="Wins", Select="SPECIFIC_ATTRIBUTES")],
        [query_index(), query_index(ProjectionExpression="UserId"), query_index(Select="COUNT"),
         query(ProjectionExpression="Wins")],
    ),
    Example(
        "all projected attributes of an index",
        [allow("Query", [INDEX], StringEquals={"dynamodb:Select": "ALL_PROJECTED_ATTRIBUTES"})],
        [query_index(), query_index(Select="ALL_PROJECTED_ATTRIBUTES")],
        [query_index(ProjectionExpression="Wins"), query_index(Select="COUNT"), query()],
    ),
    Example(
        "attributes and partition keys",
        [allow("UpdateItem GetItem Query BatchGetItem", [SCORES, INDEX],
               ForAllValues__StringEquals=OWN | {"dynamodb:Attributes": [
                   "UserId", "attributeA", "attributeB"]},
               StringEqualsIfExists={"dynamodb:Select": "SPECIFIC_ATTRIBUTES", **NOT_ALL})],
        [update("attributeA"), ("get_item", key(ProjectionExpression="attributeB"))],
        [update("Wins"), update("attributeA", "bob"), update("attributeA", ReturnValues="ALL_NEW"),
         ("get_item", key()), ("get_item", key("bob", ProjectionExpression="attributeB"))],
    ),
]  # fmt: skip

IDENTITY_BASED = [
    Example("describe, query and scan", [allow("DescribeTable Query Scan", f"{ARN}/Books")],
            [BOOKS[2], BOOKS[3], BOOKS[4]], [BOOKS[0], BOOKS[1], SCAN]),
    Example("all actions on a table", [allow("*", f"{ARN}/Books")], BOOKS,
            [SCAN, ("get_item", key()), ("list_tables", {})]),
    Example("read-only on items", [allow("GetItem BatchGetItem", f"{ARN}/Books")], [BOOKS[0]], BOOKS[1:]),
    Example("put, update and delete", [allow("PutItem UpdateItem DeleteItem", f"{ARN}/Books")],
            [BOOKS[1], ("delete_item", key(table="Books"))], [BOOKS[0], BOOKS[2], BOOKS[3]]),
    Example("a table and its indexes", [allow("*", [SCORES, f"{SCORES}/index/*"])],
            [SCAN, query(), query_index()], [BOOKS[0]]),
    Example("a table without its indexes", [allow("*", [SCORES])], [SCAN, query()], [query_index()]),
    Example("a table for each user",
            [allow("*", f"{ARN}/${{aws:username}}_ProductCatalog"),
             allow("ListTables DescribeTable cloudwatch:* sns:*", "*")],
            [("put_item", item(table="Alice_ProductCatalog")), ("list_tables", {}), DESCRIBE],
            [("put_item", item(table="Bob_ProductCatalog")), SCAN], user="Alice"),
    Example("a stream and not its table",
            [allow("DescribeStream GetRecords GetShardIterator ListStreams", f"{SCORES}/stream/*")],
            [("list_streams", {"TableName": "GameScores"}), ("describe_stream", {}), ("get_records", {})],
            [SCAN, DESCRIBE]),
    Example("all streams", [allow("lambda:InvokeFunction", ["*"]),
                            allow("GetRecords GetShardIterator DescribeStream ListStreams", "*")],
            [("list_streams", {}), ("get_records", {})], [SCAN]),
]  # fmt: skip

PARTIQL = [
    Example("all statements", [allow(MUSIC, [SCORES])], [run(SELECT), run(INSERT)],
            [("get_item", key()), SCAN]),
    Example("select only", [allow("PartiQLSelect", [SCORES])], [run(SELECT)], [run(INSERT)]),
    Example("transactions only", [allow(MUSIC, [SCORES], StringEquals=TRANSACTIONS)],
            [run(SELECT, "execute_transaction"), run(INSERT, "execute_transaction")],
            [run(SELECT), run(INSERT)]),
    Example("no transactions", [allow(MUSIC, [SCORES], effect="Deny", StringEquals=TRANSACTIONS),
                                allow(MUSIC, [SCORES])],
            [run(SELECT), run(INSERT)], [run(SELECT, "execute_transaction")]),
    Example("no full table scan", [allow("PartiQLSelect", [SCORES], effect="Deny",
                                         Bool={"dynamodb:FullTableScan": ["true"]}),
                                   allow("PartiQLSelect", [SCORES])],
            [run(SELECT)], [run('SELECT * FROM "GameScores"'),
                            run("SELECT * FROM \"GameScores\" WHERE Wins = 1")]),
]  # fmt: skip

BACKUP: Request = ("create_backup", {"TableName": "GameScores", "BackupName": "first"})
BACKUPS = [
    Example("create and restore", [allow(f"CreateBackup RestoreTableFromBackup {WRITES}", "*")], [BACKUP],
            [("list_backups", {})]),
    Example("create and not restore", [allow("CreateBackup", "*"),
                                       allow("RestoreTableFromBackup", "*", effect="Deny")],
            [BACKUP], [SCAN]),
    Example("list only", [allow("ListBackups", "*"),
                          allow("CreateBackup RestoreTableFromBackup", "*", effect="Deny")],
            [("list_backups", {})], [BACKUP]),
    Example("a specific table", [allow("CreateBackup", [SCORES])], [BACKUP],
            [("create_backup", {"TableName": "Books", "BackupName": "first"}), ("list_backups", {})]),
    Example("list backups of a table", [allow("ListBackups", SCORES)], [], [("list_backups", {})]),
]  # fmt: skip

USER = f"arn:aws:iam::{ACCOUNT}:user"


def for_users(*names: str, actions: str, resource: Any, **condition: Any) -> Json:
    principal = {"AWS": [f"{USER}/{name}" for name in names]}
    return {**allow(actions, resource, **condition), "Principal": principal}


RESOURCE_BASED = [
    Example("two users may get",
            [for_users("John", "Jane", actions="GetItem BatchGetItem", resource=[SCORES])],
            [("get_item", key()), ("batch_get_item", keys_of("alice"))], [SCAN, ("put_item", item())],
            on_resource=True, user="Jane"),
    Example("a user who is not named", [for_users("John", actions="GetItem", resource=[SCORES])], [],
            [("get_item", key())], on_resource=True, user="Jane"),
    Example("all actions and an index", [for_users("John", actions="*", resource=[SCORES, INDEX])],
            [SCAN, query_index(), DESCRIBE], [BOOKS[0]], on_resource=True, user="John"),
    Example("everything below the table",
            [for_users("John", actions="*", resource=[SCORES, f"{SCORES}/*"])],
            [SCAN, query_index()], [BOOKS[0]], on_resource=True, user="John"),
    Example("items and attributes",
            [for_users("John", actions="GetItem", resource=[SCORES],
                       ForAllValues__StringEquals={"dynamodb:LeadingKeys": "Jane",
                                                   "dynamodb:Attributes": ["UserId", "SongTitle"]},
                       StringEquals={"dynamodb:Select": "SPECIFIC_ATTRIBUTES"})],
            [("get_item", key("Jane", ProjectionExpression="UserId, SongTitle"))],
            [("get_item", key("Jane")), ("get_item", key("Joe", ProjectionExpression="SongTitle")),
             ("get_item", key("Jane", ProjectionExpression="Wins"))], on_resource=True, user="John"),
]  # fmt: skip

EXAMPLES = [
    pytest.param(example, id=f"{page}: {example.name}")
    for page, examples in (
        ("specifying-conditions", FINE_GRAINED), ("using-identity-based-policies", IDENTITY_BASED),
        ("ql-iam", PARTIQL), ("backuprestore_IAM", BACKUPS), ("rbac-examples", RESOURCE_BASED),
    )
    for example in examples
]  # fmt: skip


def make_tables(client: Any) -> None:
    attributes = [{"AttributeName": name, "AttributeType": "S"}
                  for name in ("UserId", "GameTitle", "TopScoreDateTime")]  # fmt: skip
    hashed = [{"AttributeName": "UserId", "KeyType": "HASH"}]
    for name in ("Books", "Alice_ProductCatalog", "Bob_ProductCatalog"):
        client.create_table(TableName=name, KeySchema=hashed, AttributeDefinitions=attributes[:1],
                            BillingMode="PAY_PER_REQUEST")  # fmt: skip
    client.create_table(
        TableName="GameScores",
        KeySchema=hashed,
        AttributeDefinitions=attributes,
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        GlobalSecondaryIndexes=[{
            "IndexName": "TopScoreDateTimeIndex",
            "KeySchema": [{"AttributeName": "GameTitle", "KeyType": "HASH"},
                          {"AttributeName": "TopScoreDateTime", "KeyType": "RANGE"}],
            "Projection": {"ProjectionType": "ALL"},
        }],
    )  # fmt: skip


@dataclass(slots=True)
class Clients:
    """The clients of a block, and an iterator of the stream of GameScores."""

    tables: Any
    streams: Any
    stream_arn: str = ""
    iterator: str = ""
    refusals: list[str] = field(default_factory=list)

    def is_allowed(self, operation: str, request: Json) -> bool:
        """Whether a request is allowed. Any other error fails the test."""
        client = self.streams if "stream" in operation or operation == "get_records" else self.tables
        given = request | {
            "describe_stream": {"StreamArn": self.stream_arn},
            "get_records": {"ShardIterator": self.iterator},
        }.get(operation, {})
        try:
            getattr(client, operation)(**given)
        except ClientError as error:
            assert error.response["Error"]["Code"] == "AccessDeniedException", error
            self.refusals.append(error.response["Error"]["Message"])
            return False
        return True


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[tuple[Any, Clients]]:
    settings = Settings(separate_accounts=True, separate_regions=True, backup_dir=str(tmp_path))
    with hashrange.local(settings=settings) as database:
        options: Any = {"region_name": REGION, "aws_access_key_id": ACCOUNT, "aws_secret_access_key": "any"}
        made = Clients(boto3.client("dynamodb", **options), boto3.client("dynamodbstreams", **options))
        make_tables(made.tables)
        made.stream_arn = made.tables.describe_table(TableName="GameScores")["Table"]["LatestStreamArn"]
        shards = made.streams.describe_stream(StreamArn=made.stream_arn)["StreamDescription"]["Shards"]
        made.iterator = made.streams.get_shard_iterator(
            StreamArn=made.stream_arn, ShardId=shards[0]["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        yield database, made


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example(clients: tuple[Any, Clients], example: Example) -> None:
    database, made = clients
    document = {"Version": "2012-10-17", "Statement": example.statements}
    if example.on_resource:
        made.tables.put_resource_policy(ResourceArn=SCORES, Policy=orjson.dumps(document).decode())
    policies = [] if example.on_resource else [document]
    for operation, request in example.allowed + example.refused:
        with hashrange.local(database, policy=policies, user=example.user):
            is_allowed = made.is_allowed(operation, request)
        assert is_allowed is ((operation, request) in example.allowed), (operation, request, made.refusals)
