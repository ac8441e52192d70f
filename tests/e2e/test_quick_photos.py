"""Quick Photos: users, photos, reactions and friendships in one table.

Create the table, load 967 items with `batch_writer`, count them with the AWS CLI, and fetch a user and all
of the user's photos, two types of entity, with one Query.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_dynamodb.service_resource import DynamoDBServiceResource

ITEMS = 967
USERS = 50
PHOTOS = 300
REACTIONS = 450
FRIENDSHIPS = ITEMS - USERS - PHOTOS - REACTIONS


def entities() -> list[dict[str, Any]]:
    """The same 967 entities every time."""
    chance = random.Random(967)
    names = [f"user{number:02}" for number in range(USERS)]
    users = [
        {
            "PK": f"USER#{name}",
            "SK": f"#METADATA#{name}",
            "username": name,
            "name": name.title(),
            "address": f"{number} Main Street\nSpringfield, Ωhio",
            "status": "active",
            "interests": chance.sample(["baseball", "economics", "gardening", "music"], k=2),
        }
        for number, name in enumerate(names)
    ]
    photos: dict[str, dict[str, Any]] = {}
    while len(photos) < PHOTOS:
        name = chance.choice(names)
        taken = datetime(2018, 5, 1) + timedelta(seconds=chance.randrange(31_536_000))
        sort_key = f"PHOTO#{name}#{taken.isoformat()}"
        photos[sort_key] = {
            "PK": f"USER#{name}",
            "SK": sort_key,
            "username": name,
            "timestamp": taken.isoformat(),
            "location": {"city": "Springfield", "coordinates": [chance.randrange(90), chance.randrange(180)]},
        }
    reactions: dict[tuple[str, str], dict[str, Any]] = {}
    while len(reactions) < REACTIONS:
        name, kind = chance.choice(names), chance.choice(["+1", "smiley", "heart", "sunglasses"])
        key = (f"REACTION#{name}#{kind}", chance.choice(list(photos)))
        reactions[key] = {"PK": key[0], "SK": key[1], "reactingUser": name, "reactionType": kind}
    pairs = [(one, other) for one in names for other in names if one != other]
    friendships = [
        {"PK": f"USER#{one}", "SK": f"#FRIEND#{other}", "followedUser": one, "followingUser": other}
        for one, other in chance.sample(pairs, k=FRIENDSHIPS)
    ]
    everything = [*users, *photos.values(), *reactions.values(), *friendships]
    chance.shuffle(everything)
    return everything


@pytest.fixture
def table(
    http_client: DynamoDBClient, http_resource: DynamoDBServiceResource, name_table: Callable[..., str]
) -> str:
    """The loaded table's name."""
    name = name_table("quick-photos", http_client)
    http_client.create_table(
        TableName=name,
        AttributeDefinitions=[
            {"AttributeName": "PK", "AttributeType": "S"},
            {"AttributeName": "SK", "AttributeType": "S"},
        ],
        KeySchema=[
            {"AttributeName": "PK", "KeyType": "HASH"},
            {"AttributeName": "SK", "KeyType": "RANGE"},
        ],
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
    )
    http_client.get_waiter("table_exists").wait(TableName=name)
    with http_resource.Table(name).batch_writer() as batch:
        for item in entities():
            batch.put_item(Item=item)
    return name


def aws(environment: dict[str, str], *arguments: str) -> Any:
    """The answer of the real AWS CLI, installed beside this Python."""
    command = Path(sysconfig.get_path("scripts")) / "aws"
    if not command.exists() and shutil.which("aws") is None:
        pytest.skip("the AWS CLI is not installed")
    program = [sys.executable, str(command)] if command.exists() else ["aws"]
    finished = subprocess.run(
        [*program, *arguments], env=environment, check=True, capture_output=True, text=True, timeout=120
    )
    return json.loads(finished.stdout)


def test_the_aws_cli_counts_what_was_loaded(table: str, command_environment: dict[str, str]) -> None:
    counted = aws(command_environment, "dynamodb", "scan", "--table-name", table, "--select", "COUNT")
    assert counted == {"Count": ITEMS, "ScannedCount": ITEMS, "ConsumedCapacity": None}


def test_the_aws_cli_reads_an_item(table: str, command_environment: dict[str, str]) -> None:
    key = {"PK": {"S": "USER#user07"}, "SK": {"S": "#METADATA#user07"}}
    got = aws(
        command_environment, "dynamodb", "get-item", "--table-name", table, "--key", json.dumps(key)
    )
    assert got["Item"] == {
        **key,
        "username": {"S": "user07"},
        "name": {"S": "User07"},
        "address": {"S": "7 Main Street\nSpringfield, Ωhio"},
        "status": {"S": "active"},
        "interests": got["Item"]["interests"],
    }


def test_one_query_fetches_a_user_and_the_photos(table: str, http_client: DynamoDBClient) -> None:
    for username in ("user00", "user21", "user49"):
        found = http_client.query(
            TableName=table,
            KeyConditionExpression="PK = :pk AND SK BETWEEN :metadata AND :photos",
            ExpressionAttributeValues={
                ":pk": {"S": f"USER#{username}"},
                ":metadata": {"S": f"#METADATA#{username}"},
                ":photos": {"S": "PHOTO$"},
            },
            ScanIndexForward=True,
        )
        user, *photos = found["Items"]
        assert user["name"] == {"S": username.title()}
        expected = sorted(
            entity["timestamp"]
            for entity in entities()
            if entity["PK"] == f"USER#{username}" and entity["SK"].startswith("PHOTO#")
        )
        assert [photo["timestamp"]["S"] for photo in photos] == expected
        assert found["Count"] == 1 + len(expected)


def test_friends_sort_before_the_metadata(table: str, http_resource: DynamoDBServiceResource) -> None:
    found = http_resource.Table(table).query(
        KeyConditionExpression="PK = :pk AND begins_with(SK, :friend)",
        ExpressionAttributeValues={":pk": "USER#user21", ":friend": "#FRIEND#"},
    )
    expected = sorted(
        entity["SK"]
        for entity in entities()
        if entity["PK"] == "USER#user21" and entity["SK"].startswith("#FRIEND#")
    )
    assert [item["SK"] for item in found["Items"]] == expected
