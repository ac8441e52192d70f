"""A stream can be read for a day after its table was deleted: what forbids that lasts as long."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest

from hashrange.clock import ManualClock
from hashrange.database import Caller, Database
from hashrange.errors import AccessDeniedException
from hashrange_access.judging.judge import Identified
from hashrange_access.policies.documents import parse
from hashrange_access.policies.requests import Principal
from hashrange_access.roles import Identity
from hostile.seeds import CREATE_MAIN, MAIN

ACCOUNT = "000000000000"
EVERYTHING = {"Effect": "Allow", "Action": "*", "Resource": "*"}
UNLESS_SECRET = {
    "Effect": "Deny",
    "Action": "dynamodb:DescribeStream",
    "Resource": "*",
    "Condition": {"StringEquals": {"aws:ResourceTag/kind": "secret"}},
}


def reads(database: Database, name: str, stream: str, *statements: Any, allowed: Any = (EVERYTHING,)) -> bool:
    """Whether a user with these statements may read a stream."""
    principal = Principal(f"arn:aws:iam::{ACCOUNT}:user/{name}", ACCOUNT, name=name)
    identity = Identity(principal, (parse({"Statement": [*allowed, *statements]}),))
    caller = Caller(identified=Identified(identity, {}, True))
    try:
        database.execute("DescribeStream", {"StreamArn": stream}, caller)
    except AccessDeniedException:
        return False
    return True


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "made again"])
def test_what_forbids_a_stream_outlives_its_table(again: bool) -> None:
    with Database.in_memory(clock=ManualClock(1_800_000_000.0)) as database:
        database.part("access", "judging").begin()
        database.execute("CreateTable", copy.deepcopy(CREATE_MAIN))
        described = database.execute("DescribeTable", {"TableName": MAIN})["Table"]
        stream, table = described["LatestStreamArn"], described["TableArn"]
        database.execute("TagResource", {"ResourceArn": table, "Tags": [{"Key": "kind", "Value": "secret"}]})
        alice = {"AWS": f"arn:aws:iam::{ACCOUNT}:user/alice"}
        deny = {"Effect": "Deny", "Action": "dynamodb:*", "Resource": stream, "Principal": alice}
        policy = orjson.dumps({"Version": "2012-10-17", "Statement": [deny]}).decode()
        database.execute("PutResourcePolicy", {"ResourceArn": stream, "Policy": policy})

        def outcomes() -> list[bool]:
            return [
                reads(database, "alice", stream),
                reads(database, "bob", stream, UNLESS_SECRET),
                reads(database, "bob", stream),
            ]

        assert outcomes() == [False, False, True]
        database.execute("DeleteTable", {"TableName": MAIN})
        database.settle()
        if again:
            database.execute("CreateTable", copy.deepcopy(CREATE_MAIN))
        assert outcomes() == [False, False, True]


def test_a_new_table_of_the_name_gives_nobody_the_former_stream() -> None:
    """An Allow that depends on the tags of the table must not be fulfilled by those of another table."""
    if_public = {
        "Effect": "Allow",
        "Action": "dynamodb:DescribeStream",
        "Resource": "*",
        "Condition": {"StringEquals": {"aws:ResourceTag/kind": "public"}},
    }
    with Database.in_memory(clock=ManualClock(1_800_000_000.0)) as database:
        database.part("access", "judging").begin()
        database.execute("CreateTable", copy.deepcopy(CREATE_MAIN))
        described = database.execute("DescribeTable", {"TableName": MAIN})["Table"]
        stream, table = described["LatestStreamArn"], described["TableArn"]
        database.execute("DeleteTable", {"TableName": MAIN})
        database.settle()
        database.execute("CreateTable", copy.deepcopy(CREATE_MAIN))
        database.execute("TagResource", {"ResourceArn": table, "Tags": [{"Key": "kind", "Value": "public"}]})
        newer = database.execute("DescribeTable", {"TableName": MAIN})["Table"]["LatestStreamArn"]
        assert not reads(database, "eve", stream, if_public, allowed=())
        assert reads(database, "eve", newer, if_public, allowed=())
