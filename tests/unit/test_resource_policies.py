"""Documents of resource-based policies: their canonical form, patterns, and the policies of streams."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange.database import Database
from hashrange.errors import ResourceNotFoundException, ServiceError, ValidationException
from hashrange.operations.policies import documents, operators
from worlds import table_of

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/music"
STREAM_ACTIONS = ["dynamodb:GetRecords", "dynamodb:DescribeStream"]


def statement(**members: Any) -> dict[str, Any]:
    made = {
        "Sid": "Read",
        "Effect": "Allow",
        "Principal": {"AWS": "000000000000"},
        "Action": "dynamodb:GetItem",
        "Resource": ARN,
        **members,
    }
    return {name: value for name, value in made.items() if value is not None}


def text(*statements: Any) -> str:
    return orjson.dumps({"Version": "2012-10-17", "Statement": list(statements)}).decode()


ACTIONS = st.sampled_from(["dynamodb:GetItem", "dynamodb:Q*", "dynamodb:putitem"])
ACCOUNT_TWICE = {"AWS": ["000000000000", "arn:aws:iam::000000000000:root"]}
ROLE = {"AWS": "arn:aws:iam::123456789012:role/r"}
CONDITIONS = [None, {"StringLike": {"aws:PrincipalArn": ["a"]}}, {"Bool": {"k": ["true", "false"]}}]
STATEMENTS = st.builds(
    statement,
    Sid=st.none(),
    Effect=st.sampled_from(["Allow", "allow", "DENY"]),
    Action=st.lists(ACTIONS, min_size=1, max_size=3),
    Principal=st.sampled_from([ACCOUNT_TWICE, ROLE]),
    Condition=st.sampled_from(CONDITIONS),
)


@given(st.lists(STATEMENTS, min_size=1, max_size=3), st.booleans())
def test_the_canonical_form_is_its_own_canonical_form(statements: list[Any], sorted_keys: bool) -> None:
    options = orjson.OPT_INDENT_2 | (orjson.OPT_SORT_KEYS if sorted_keys else 0)
    made = documents.canonical(orjson.dumps({"Statement": statements}, option=options).decode(), ARN)
    assert documents.canonical(made, ARN) == made
    for before, after in zip(statements, orjson.loads(made)["Statement"], strict=True):
        assert after["Effect"] == before["Effect"].capitalize()
        assert after["Action"] == (before["Action"][0] if len(before["Action"]) == 1 else before["Action"])


@given(st.text("ab*?", max_size=12), st.text("ab", max_size=12))
def test_patterns_match_as_regular_expressions_do(pattern: str, value: str) -> None:
    expected = re.fullmatch(pattern.replace("*", ".*").replace("?", "."), value) is not None
    assert documents.matches(pattern, value) == expected


def test_a_pattern_of_many_stars_takes_no_time() -> None:
    assert not documents.matches("*a" * 5_000 + "b", "a" * 1_200)
    with pytest.raises(ValidationException):
        documents.canonical(text(statement(Action="dynamodb:" + "*?" * 9_000)), ARN)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ({"StringIs": {"a": "b"}}, "Invalid Condition type : StringIs"),
        ({"ForSome:Bool": {"a": "true"}}, "Invalid Condition type : ForSome:Bool"),
        ({"NullIfExists": {"a": "true"}}, "Invalid Condition type : NullIfExists"),
        ({"Bool": {"a": "maybe"}}, "Syntax error at position"),
        ({"NumericEquals": {"a": ["1", "many"]}}, "Syntax error at position"),
        ({"DateLessThan": {"a": "never"}}, "Syntax error at position"),
        ({"IpAddress": {"a": "10.0.0"}}, "Syntax error at position"),
        ({"StringEquals": {"a": []}}, "Syntax error at position"),
        ({"StringEquals": {"a": {"b": "c"}}}, "Syntax error at position"),
    ],
)
def test_a_condition_that_nothing_could_fulfil_is_refused(condition: Any, message: str) -> None:
    with pytest.raises(ValidationException, match=re.escape(message)):
        documents.canonical(text(statement(Condition=condition)), ARN)


def test_every_operator_with_every_qualifier_is_taken() -> None:
    values = {"numeric": "1", "date": "2026-01-01", "ip": "::1", "notip": "::1", "bool": "true"}
    for name in operators.OPERATORS:
        value = next((value for start, value in values.items() if name.startswith(start)), "YQ==")
        for operator in (name, f"{name}IfExists", f"ForAllValues:{name}", f"ForAnyValue:{name}IfExists"):
            documents.canonical(text(statement(Condition={operator: {"a": [value, "${b}"]}})), ARN)
    documents.canonical(text(statement(Condition={"Null": {"a": True}, "NumericEquals": {"a": 1.5}})), ARN)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(["Sid", "Effect", "Principal", "Action", "Resource", "Condition", "Other"]), JUNK)
def test_any_document_is_taken_or_refused(name: str, value: Any) -> None:
    for document in (statement(**{name: value}), value):
        try:
            made = documents.canonical(text(document), ARN)
            documents.check_access_remains(made, ARN, "000000000000")
        except ServiceError:
            continue
        assert documents.canonical(made, ARN) == made


def test_a_stream_has_a_policy_of_its_own() -> None:
    with Database.in_memory() as database:
        made = database.execute("CreateTable", table_of("music", "pk", stream="KEYS_ONLY"))
        stream = made["TableDescription"]["LatestStreamArn"]
        policy = text(statement(Action=STREAM_ACTIONS, Resource=stream))
        put = database.execute("PutResourcePolicy", {"ResourceArn": stream, "Policy": policy})
        shown = database.execute("GetResourcePolicy", {"ResourceArn": stream})
        assert shown["RevisionId"] == put["RevisionId"]
        assert orjson.loads(shown["Policy"])["Statement"][0]["Action"] == STREAM_ACTIONS
        with pytest.raises(ServiceError, match="Resource-based policy not found"):
            database.execute("GetResourcePolicy", {"ResourceArn": ARN})
        wrong = text(statement(Action="dynamodb:GetRecords"))
        with pytest.raises(ValidationException, match="relative-id"):
            database.execute("PutResourcePolicy", {"ResourceArn": stream, "Policy": wrong})
        database.execute("DeleteTable", {"TableName": "music"})
        database.settle()
        with pytest.raises(ResourceNotFoundException):
            database.execute("DeleteResourcePolicy", {"ResourceArn": stream})
