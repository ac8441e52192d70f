"""A test's code under a policy: `hashrange.local(policy=...)`."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

import hashrange
from hashrange.testing import mock_aws
from worlds import table_of

OWN: dict[str, Any] = {
    "Version": "2012-10-17",
    "Statement": {
        "Effect": "Allow",
        "Action": ["dynamodb:GetItem", "dynamodb:PutItem"],
        "Resource": "arn:aws:dynamodb:*:*:table/scores",
        "Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "${aws:username}"}},
    },
}


def make_table() -> Any:
    return boto3.resource("dynamodb", region_name="us-east-1").create_table(**table_of("scores", "user"))


def test_the_code_of_a_block_runs_under_its_policy() -> None:
    with hashrange.local() as database:
        table = make_table()
        with hashrange.local(database, policy=OWN, user="alice"):
            table.put_item(Item={"user": "alice"})
            for call, request in ((table.put_item, {"Item": {"user": "bob"}}), (table.scan, {})):
                with pytest.raises(ClientError) as raised:
                    call(**request)
                error = raised.value.response["Error"]
                assert error["Code"] == "AccessDeniedException"
                assert ":user/alice is not authorized to perform: dynamodb:" in error["Message"]
        assert table.scan()["Items"] == [{"user": "alice"}]
        assert database.database.observers.active is None


def test_several_policies() -> None:
    scan = {"Statement": {"Effect": "Allow", "Action": "dynamodb:Scan", "Resource": "*"}}
    with hashrange.local() as database:
        table = make_table()
        with hashrange.local(database, policy=[OWN, scan]):
            assert table.scan()["Items"] == []


def test_a_function_runs_under_a_policy() -> None:
    @hashrange.local(policy=OWN)
    def listed() -> Any:
        return boto3.client("dynamodb", region_name="us-east-1").list_tables()

    with pytest.raises(ClientError, match="dynamodb:ListTables"):
        listed()


def test_a_document_that_is_no_policy_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="policy, statement 1: Effect must be Allow or Deny"):
        hashrange.local(policy={"Statement": {"Effect": "Maybe"}})


def test_sts_knows_the_user_of_a_policy() -> None:
    policy = {"Statement": {"Effect": "Deny", "Action": "*", "Resource": "*"}}
    with mock_aws(), hashrange.local(policy=policy, user="alice"):
        arn = boto3.client("sts", region_name="us-east-1").get_caller_identity()["Arn"]
    assert arn.endswith(":user/alice")
