"""What `hashrange policy lint` finds."""

from __future__ import annotations

from typing import Any

import pytest

from hashrange_access.judging.known import KNOWN_KEYS
from hashrange_access.policies.linting import lint

TABLE = "arn:aws:dynamodb:us-west-2:123456789012:table/GameScores"
KNOWN = frozenset({"getitem", "query", "scan"})


def of(
    effect: str = "Allow", version: str = "2012-10-17", on_resource: bool = False, **elements: Any
) -> list[str]:
    statement = {"Effect": effect, "Action": "dynamodb:GetItem", "Resource": TABLE, **elements}
    if "NotAction" in elements:
        del statement["Action"]
    document = {"Version": version, "Statement": [statement]}
    return list(map(str, lint(document, KNOWN, KNOWN_KEYS, on_resource=on_resource)))


def test_a_sound_policy_has_no_findings() -> None:
    assert of(Condition={"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "${aws:username}"}}) == []


@pytest.mark.parametrize(
    ("elements", "text"),
    [
        ({"Effect": "Perhaps"}, "ERROR: policy: statement 1: Effect must be Allow or Deny"),
        (
            {"effect": "Deny", "Condition": {"StringEquals": {"dynamodb:LeadingKeys": "x"}}},
            "this Deny REFUSES NOTHING. Write ForAnyValue:StringEquals dynamodb:LeadingKeys",
        ),
        (
            {"Condition": {"StringLike": {"dynamodb:Attributes": "x"}}},
            "this Allow permits nothing. Write ForAllValues:StringLike dynamodb:Attributes",
        ),
        ({"Condition": {"ForAnyValue:StringEquals": {"aws:username": "x"}}}, "has at most one value"),
        (
            {
                "Action": "dynamodb:*",
                "Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "x"}},
            },
            "is also true for a request without the key, such as a Scan",
        ),
        (
            {"effect": "Deny", "Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "x"}}},
            "a batch with one other value escapes it",
        ),
        ({"Action": "dynamodb:GetItems"}, "dynamodb:getitems matches no action of DynamoDB"),
        (
            {"effect": "Deny", "Condition": {"StringEquals": {"aws:SourceVpc": "vpc-1"}}},
            "StringEquals aws:SourceVpc: no request to Hashrange ever has this key",
        ),
        ({"NotAction": "dynamodb:Scan"}, "Allow with NotAction permits every other action"),
        ({"Condition": {"StringEquals": {"aws:username": "a*"}}}, "has no wildcards"),
        ({"version": "2008-10-17", "Resource": TABLE + "${aws:username}"}, "has no variables"),
        ({"on_resource": True, "Principal": "*"}, "permits anyone, strangers included"),
        ({"on_resource": True, "NotPrincipal": {"AWS": "123456789012"}}, "permits anyone else"),
    ],
)
def test_a_finding(elements: dict[str, Any], text: str) -> None:
    assert [line for line in of(**elements) if text in line], of(**elements)


def test_the_tags_of_keys_have_any_name() -> None:
    assert of(Condition={"StringEquals": {"aws:ResourceTag/team": "${aws:PrincipalTag/team}"}}) == []


def test_null_guards_for_all_values() -> None:
    condition = {
        "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "x"},
        "Null": {"dynamodb:LeadingKeys": "false"},
    }
    assert of(Action="dynamodb:*", Condition=condition) == []
