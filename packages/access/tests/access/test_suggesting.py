"""The smallest policy from recorded requests: it is sound, and allows these requests and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import orjson
import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner

import hashrange
from hashrange.cli import main
from hashrange_access.judging.known import KNOWN_ACTIONS, KNOWN_KEYS
from hashrange_access.policies.linting import lint
from hashrange_access.policies.suggesting import Uses
from worlds import table_of

TABLE = "arn:aws:dynamodb:us-east-1:000000000000:table/scores"
INDEX = f"{TABLE}/index/by-game"


def test_uses_are_grouped_without_allowing_more() -> None:
    uses = Uses()
    for use in ("GetItem a", "Query a", "Query b", "GetItem b", "Scan b"):
        action, _, resource = use.partition(" ")
        uses.add(action, resource, None)
    uses.add("Query", "c", None)
    uses.add("GetItem", "c", None)
    assert uses.policy() == {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": ["GetItem", "Query"], "Resource": ["a", "c"]},
            {"Effect": "Allow", "Action": ["GetItem", "Query", "Scan"], "Resource": ["b"]},
        ],
    }


def test_leading_keys_are_limited_where_every_use_has_some() -> None:
    uses = Uses()
    uses.add("GetItem", "a", ("x",))
    uses.add("GetItem", "a", ("y", "${*}"))
    uses.add("Query", "a", ("x",))
    uses.add("Query", "a", None)
    first, second = uses.policy(with_leading_keys=True)["Statement"]
    assert first["Action"] == ["GetItem"]
    assert first["Condition"] == {
        "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${$}{${*}}", "x", "y"]}
    }
    assert (second["Action"], "Condition" in second) == (["Query"], False)


def test_nothing_recorded_makes_no_policy() -> None:
    with pytest.raises(ValueError, match="nothing was recorded"):
        Uses().policy()


def create(client: Any) -> None:
    client.create_table(**table_of("scores", "user", indexes={"by-game": "game"}))  # fmt: skip


QUERY = {
    "TableName": "scores", "IndexName": "by-game", "KeyConditionExpression": "game = :g",
    "ExpressionAttributeValues": {":g": {"S": "go"}},
}  # fmt: skip
GET = {"TableName": "scores", "Key": {"user": {"S": "x"}}}
DONE: list[tuple[str, dict[str, Any]]] = [
    ("put_item", {"TableName": "scores", "Item": {"user": {"S": "*"}, "game": {"S": "go"}}}),
    ("query", QUERY),
    ("batch_write_item", {"RequestItems": {"scores": [{"DeleteRequest": {"Key": {"user": {"S": "x"}}}}]}}),
    ("transact_get_items", {"TransactItems": [{"Get": GET}]}),
    ("list_tables", {}),
    ("execute_statement", {"Statement": "SELECT * FROM scores WHERE \"user\" = 'x'"}),
]
OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("scan", {"TableName": "scores"}),
    ("delete_item", {"TableName": "scores", "Key": {"user": {"S": "x"}}}),
    ("query", {"TableName": "scores", "KeyConditionExpression": "#u = :u",
               "ExpressionAttributeNames": {"#u": "user"}, "ExpressionAttributeValues": {":u": {"S": "x"}}}),
    ("execute_statement", {"Statement": "DELETE FROM scores WHERE \"user\" = 'x'"}),
    ("describe_table", {"TableName": "scores"}),
]  # fmt: skip


def test_a_recorded_policy_allows_what_was_done_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    with hashrange.local() as database:
        client = boto3.client("dynamodb", region_name="us-east-1")
        create(client)
        with hashrange.local(database, record_policy=path):
            for operation, request in DONE:
                getattr(client, operation)(**request)
        document = orjson.loads(path.read_bytes())
        assert lint(document, KNOWN_ACTIONS, KNOWN_KEYS) == []
        with hashrange.local(database, policy=document):
            for operation, request in DONE:
                getattr(client, operation)(**request)
            for operation, request in OTHERS:
                with pytest.raises(ClientError, match="AccessDeniedException"):
                    getattr(client, operation)(**request)
        assert database.database.observers.active is None


def test_a_block_without_requests_writes_nothing(tmp_path: Path) -> None:
    with hashrange.local(record_policy=tmp_path / "policy.json"):
        pass
    assert not (tmp_path / "policy.json").exists()


def test_a_block_is_judged_or_recorded() -> None:
    with pytest.raises(ValueError, match="give one of them"):
        hashrange.local(policy=[], record_policy="policy.json")


def line(action: str, resource: str, user: str = "alice", keys: list[str] | None = None) -> bytes:
    return orjson.dumps({
        "time": "2026-01-01T00:00:00Z", "level": "warning", "event": "strict would refuse a request",
        "user": f"arn:aws:iam::000000000000:user/{user}", "action": action, "resource": resource,
        "leading_keys": keys, "why": "…",
    })  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    lines = [
        b'{"event":"started"}', b"Traceback (most recent call last):", b"[1]",
        b'{"event":"strict would refuse a request","key":"AKIDX","error":"UnrecognizedClientException"}',
        line("GetItem", TABLE, keys=["a"]), line("GetItem", TABLE, keys=["b"]), line("Query", INDEX),
        line("Scan", TABLE, "bob"),
    ]  # fmt: skip
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def run(*arguments: str) -> tuple[int, str]:
    outcome = CliRunner().invoke(main, ["policy", "suggest", *arguments])
    return outcome.exit_code, outcome.output


def test_a_policy_from_a_log(log: Path) -> None:
    code, output = run(str(log), "--user", "alice", "--leading-keys")
    assert code == 0
    document = orjson.loads(output)
    assert lint(document, KNOWN_ACTIONS, KNOWN_KEYS) == []
    condition = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["a", "b"]}}
    assert document["Statement"] == [
        {"Effect": "Allow", "Action": ["dynamodb:GetItem"], "Resource": [TABLE], "Condition": condition},
        {"Effect": "Allow", "Action": ["dynamodb:Query"], "Resource": [INDEX]},
    ]
    assert "dynamodb:Scan" in run(str(log))[1]
    assert "dynamodb:Scan" not in output


def test_a_log_without_the_user(log: Path) -> None:
    code, output = run(str(log), "--user", "carol")
    assert code == 1
    assert "no refused request of carol: it has those of arn:aws:iam::000000000000:user/alice" in output
    log.write_text("")
    assert "it has no line 'strict would refuse a request'" in run(str(log))[1]
