"""IAM's policy language, by tables of the cases that AWS documents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hashrange.operations.policies.operators import OPERATORS as NAMES
from hashrange_access.policies.conditions import OPERATORS
from hashrange_access.policies.documents import Policy, parse
from hashrange_access.policies.errors import PolicyError
from hashrange_access.policies.evaluation import Attached, Decision, evaluate
from hashrange_access.policies.requests import Principal, Request

ACCOUNT = "123456789012"
OTHER = "444455556666"
TABLE = f"arn:aws:dynamodb:us-west-2:{ACCOUNT}:table/GameScores"
STREAM = f"{TABLE}/stream/2026-01-01T00:00:00.000"
ALICE = Principal(f"arn:aws:iam::{ACCOUNT}:user/alice", ACCOUNT, name="alice", user_id="AIDAALICE")
BOB = Principal(f"arn:aws:iam::{OTHER}:user/bob", OTHER, name="bob", user_id="AIDABOB")
ROOT = Principal(f"arn:aws:iam::{ACCOUNT}:root", ACCOUNT, "Account")
ROLE_ARN = f"arn:aws:iam::{ACCOUNT}:role/player"
SESSION = Principal(
    f"arn:aws:sts::{ACCOUNT}:assumed-role/player/one", ACCOUNT, "AssumedRole", ROLE_ARN, user_id="AROA:one"
)


def statement(effect: str = "Allow", **elements: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"Effect": effect}
    if not {"Action", "NotAction"} & set(elements):
        made["Action"] = "dynamodb:GetItem"
    if not {"Resource", "NotResource"} & set(elements):
        made["Resource"] = TABLE
    return made | elements


def policy(*statements: dict[str, Any], on_resource: bool = False, version: str = "2012-10-17") -> Policy:
    return parse({"Version": version, "Statement": list(statements)}, on_resource=on_resource)


def asked(
    action: str = "dynamodb:GetItem",
    resource: str = TABLE,
    principal: Principal = ALICE,
    **keys: Any,
) -> Request:
    """A request; the names of keys have `__` for the colon."""
    made = {
        name.replace("__", ":", 1).lower(): value if isinstance(value, tuple) else (value,)
        for name, value in keys.items()
    }
    return Request(principal, action, resource, ACCOUNT, made)


def decide(made: Policy, request: Request) -> Decision:
    return evaluate(request, Attached(identity=(made,)))


def holds(condition: dict[str, Any], version: str = "2012-10-17", **keys: Any) -> bool:
    return decide(policy(statement(Condition=condition), version=version), asked(**keys)).allowed


@pytest.mark.parametrize(
    ("pattern", "action", "matches"),
    [
        ("dynamodb:GetItem", "dynamodb:GetItem", True),
        ("DynamoDB:getitem", "dynamodb:GetItem", True),
        ("dynamodb:*", "dynamodb:GetItem", True),
        ("*", "dynamodb:GetItem", True),
        ("dynamodb:Get*", "dynamodb:GetItem", True),
        ("dynamodb:*Item", "dynamodb:BatchGetItem", True),
        ("dynamodb:?etItem", "dynamodb:GetItem", True),
        ("dynamodb:GetItem", "dynamodb:GetItems", False),
        ("dynamodb:Get", "dynamodb:GetItem", False),
        ("s3:*", "dynamodb:GetItem", False),
    ],
)
def test_action(pattern: str, action: str, matches: bool) -> None:
    assert decide(policy(statement(Action=pattern)), asked(action)).allowed is matches
    assert decide(policy(statement(NotAction=pattern)), asked(action)).allowed is not matches


@pytest.mark.parametrize(
    ("pattern", "resource", "matches"),
    [
        (TABLE, TABLE, True),
        ("*", TABLE, True),
        (f"{TABLE}/index/*", f"{TABLE}/index/ByScore", True),
        (f"{TABLE}/index/*", TABLE, False),
        (TABLE, f"{TABLE}/index/ByScore", False),
        (TABLE.replace("GameScores", "Game*"), f"{TABLE}/index/ByScore", True),
        (TABLE.replace("GameScores", "gamescores"), TABLE, False),
        (TABLE.replace("us-west-2", "*"), TABLE, True),
        (TABLE.replace("us-west-2", "us-*-2"), TABLE, True),
        (TABLE.replace("us-west-2", "eu-*"), TABLE, False),
        # Only a * at the end of a part matches across colons.
        ("arn:aws:dynamodb:us-west-2:*", TABLE, True),
        ("arn:aws:dynamodb:us-*-2:table/GameScores", TABLE, False),
        ("arn:aws:dynamodb:*:table/GameScores", TABLE, True),
        (f"{TABLE}/stream/*", STREAM, True),
        (f"{TABLE}/stream/2026-01-01T00:00:00.000", STREAM, True),
        (f"{TABLE}/stream/2026-??-01T00:00:00.000", STREAM, True),
        (f"{TABLE}/stream/*:00.000", STREAM, True),
    ],
)
def test_resource(pattern: str, resource: str, matches: bool) -> None:
    assert decide(policy(statement(Resource=pattern)), asked(resource=resource)).allowed is matches
    assert decide(policy(statement(NotResource=pattern)), asked(resource=resource)).allowed is not matches


@pytest.mark.parametrize(
    ("condition", "value", "matches"),
    [
        ({"StringEquals": {"aws:username": "alice"}}, "alice", True),
        ({"StringEquals": {"aws:username": "alice"}}, "Alice", False),
        ({"StringEquals": {"aws:username": ["bob", "alice"]}}, "alice", True),
        ({"StringEquals": {"aws:username": "al*"}}, "alice", False),
        ({"StringNotEquals": {"aws:username": ["bob", "alice"]}}, "alice", False),
        ({"StringNotEquals": {"aws:username": ["bob", "carol"]}}, "alice", True),
        ({"StringEqualsIgnoreCase": {"aws:username": "ALICE"}}, "alice", True),
        ({"StringNotEqualsIgnoreCase": {"aws:username": "ALICE"}}, "alice", False),
        ({"StringLike": {"aws:username": "al*"}}, "alice", True),
        ({"StringLike": {"aws:username": "al?ce"}}, "alice", True),
        ({"StringNotLike": {"aws:username": "al*"}}, "alice", False),
        ({"StringNotLike": {"aws:username": "b*"}}, "alice", True),
        ({"NumericEquals": {"aws:username": "10"}}, "10.0", True),
        ({"NumericNotEquals": {"aws:username": 10}}, "10", False),
        ({"NumericLessThan": {"aws:username": "10"}}, "9", True),
        ({"NumericLessThan": {"aws:username": "10"}}, "10", False),
        ({"NumericLessThanEquals": {"aws:username": "10"}}, "10", True),
        ({"NumericGreaterThan": {"aws:username": "10"}}, "9", False),
        ({"NumericGreaterThan": {"aws:username": "10"}}, "100", True),
        ({"NumericGreaterThanEquals": {"aws:username": "10"}}, "10", True),
        ({"NumericGreaterThanEquals": {"aws:username": "10"}}, "many", False),
        ({"NumericEquals": {"aws:username": "1"}}, "NaN", False),
        ({"DateEquals": {"aws:username": "2026-01-01T00:00:00Z"}}, "1767225600", True),
        ({"DateNotEquals": {"aws:username": "2026-01-01"}}, "2026-01-01T00:00:00Z", False),
        ({"DateLessThan": {"aws:username": "2026-06-01T00:00:00Z"}}, "2026-01-01T00:00:00Z", True),
        ({"DateLessThanEquals": {"aws:username": "2026-01-01T00:00:00Z"}}, "2026-01-01T01:00:00+01:00", True),
        ({"DateGreaterThan": {"aws:username": "2026-06-01T00:00:00Z"}}, "2026-01-01T00:00:00Z", False),
        ({"DateGreaterThanEquals": {"aws:username": "2026-01-01T00:00:00Z"}}, "2026-01-01T00:00:00Z", True),
        ({"Bool": {"aws:username": "true"}}, "true", True),
        ({"Bool": {"aws:username": True}}, "false", False),
        ({"Bool": {"aws:username": "false"}}, "false", True),
        ({"BinaryEquals": {"aws:username": "QmluYXJ5VmFsdWU="}}, "QmluYXJ5VmFsdWU=", True),
        ({"BinaryEquals": {"aws:username": "QmluYXJ5"}}, "b3RoZXI=", False),
        ({"IpAddress": {"aws:username": "203.0.113.0/24"}}, "203.0.113.9", True),
        ({"IpAddress": {"aws:username": "203.0.113.0/24"}}, "203.0.114.9", False),
        ({"IpAddress": {"aws:username": "203.0.113.9"}}, "203.0.113.9", True),
        ({"IpAddress": {"aws:username": ["10.0.0.0/8", "2001:db8::/32"]}}, "2001:db8::1", True),
        ({"NotIpAddress": {"aws:username": "203.0.113.0/24"}}, "203.0.113.9", False),
        ({"ArnEquals": {"aws:username": "arn:aws:iam::*:role/p*"}}, ROLE_ARN, True),
        ({"ArnLike": {"aws:username": f"arn:aws:iam::{ACCOUNT}:role/player"}}, ROLE_ARN, True),
        ({"ArnLike": {"aws:username": "arn:aws:*:role/player"}}, ROLE_ARN, False),
        ({"ArnNotEquals": {"aws:username": "arn:aws:iam::*:role/p*"}}, ROLE_ARN, False),
        ({"ArnNotLike": {"aws:username": "arn:aws:iam::*:user/*"}}, ROLE_ARN, True),
    ],
)
def test_an_operator_compares_the_value(condition: dict[str, Any], value: str, matches: bool) -> None:
    assert holds(condition, aws__username=value) is matches


@pytest.mark.parametrize(
    ("operator", "value", "without_the_key"),
    [
        ("StringEquals", "x", False),
        ("StringLike", "*", False),
        ("NumericLessThan", "1", False),
        ("DateGreaterThan", "2026-01-01", False),
        ("Bool", "true", False),
        ("IpAddress", "0.0.0.0/0", False),
        ("ArnLike", "arn:aws:iam::*:user/*", False),
        ("StringNotEquals", "x", True),
        ("StringNotEqualsIgnoreCase", "x", True),
        ("StringNotLike", "*", True),
        ("NumericNotEquals", "1", True),
        ("DateNotEquals", "2026-01-01", True),
        ("NotIpAddress", "0.0.0.0/0", True),
        ("ArnNotEquals", "arn:aws:iam::*:user/*", True),
        ("ArnNotLike", "arn:aws:iam::*:user/*", True),
        ("StringEqualsIfExists", "x", True),
        ("BoolIfExists", "true", True),
        ("NumericLessThanIfExists", "1", True),
        ("ForAllValues:StringEquals", "x", True),
        ("ForAllValues:StringNotEquals", "x", True),
        ("ForAnyValue:StringEquals", "x", False),
        ("ForAnyValue:StringNotEquals", "x", False),
        ("ForAnyValue:StringEqualsIfExists", "x", True),
    ],
)
def test_an_operator_without_the_key(operator: str, value: str, without_the_key: bool) -> None:
    assert holds({operator: {"aws:sourcevpc": value}}) is without_the_key


def test_every_operator_has_a_comparison() -> None:
    assert set(OPERATORS) == NAMES


def test_if_exists_compares_a_key_that_exists() -> None:
    condition = {"StringEqualsIfExists": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"}}
    assert holds(condition, dynamodb__select="SPECIFIC_ATTRIBUTES")
    assert not holds(condition, dynamodb__select="ALL_ATTRIBUTES")


def test_null() -> None:
    assert holds({"Null": {"aws:TokenIssueTime": "true"}})
    assert not holds({"Null": {"aws:TokenIssueTime": "true"}}, aws__tokenissuetime="2026")
    assert holds({"Null": {"aws:TokenIssueTime": "false"}}, aws__tokenissuetime="2026")
    assert not holds({"Null": {"aws:TokenIssueTime": False}})


@pytest.mark.parametrize(
    ("operator", "values", "matches"),
    [
        ("ForAllValues:StringEquals", ("a",), True),
        ("ForAllValues:StringEquals", ("a", "b"), True),
        ("ForAllValues:StringEquals", ("a", "c"), False),
        ("ForAllValues:StringEquals", (), True),
        ("ForAnyValue:StringEquals", ("a", "c"), True),
        ("ForAnyValue:StringEquals", ("c", "d"), False),
        ("ForAnyValue:StringEquals", (), False),
        ("ForAllValues:StringNotEquals", ("c", "d"), True),
        ("ForAllValues:StringNotEquals", ("a", "d"), False),
        ("ForAnyValue:StringNotEquals", ("a", "d"), True),
        ("ForAnyValue:StringNotEquals", ("a", "b"), False),
        ("ForAllValues:StringLike", ("a", "b"), True),
        # A bare operator never matches a key that may have several values, not even one value.
        ("StringEquals", ("a",), False),
        ("StringEquals", ("a", "b"), False),
        ("StringNotEquals", ("c",), False),
        ("StringLike", ("a",), False),
    ],
)
def test_keys_with_several_values(operator: str, values: tuple[str, ...], matches: bool) -> None:
    condition = {operator: {"dynamodb:LeadingKeys": ["a", "b"]}}
    assert holds(condition, dynamodb__leadingkeys=values) is matches


def test_a_bare_deny_of_a_key_with_several_values_does_nothing() -> None:
    deny = statement("Deny", Condition={"StringEquals": {"dynamodb:LeadingKeys": "secret"}})
    decision = decide(policy(statement(), deny), asked(dynamodb__leadingkeys="secret"))
    assert decision.allowed
    assert "only ForAllValues and ForAnyValue match it" in "\n".join(decision.explained())


def test_conditions_are_and_ed_and_values_are_or_ed() -> None:
    condition = {
        "StringEquals": {"aws:username": ["alice", "bob"], "aws:PrincipalType": "User"},
        "Bool": {"aws:SecureTransport": "true"},
    }
    fitting = {"aws__username": "alice", "aws__principaltype": "User", "aws__securetransport": "true"}
    assert holds(condition, **fitting)
    for name in fitting:
        assert not holds(condition, **{**fitting, name: "other"})


@pytest.mark.parametrize(
    ("pattern", "value", "matches"),
    [
        ("${aws:username}", "alice", True),
        ("${AWS:UserName}", "alice", True),
        ("user-${aws:username}-*", "user-alice-1", True),
        ("${aws:unknown}", "", False),
        ("${aws:unknown, 'nobody'}", "nobody", True),
        ("${aws:username, 'nobody'}", "alice", True),
        ("${*}", "*", True),
        ("${*}", "x", False),
        ("a${?}${$}", "a?$", True),
        ("${}", "", False),
        ("*${aws:unknown}", "x", False),
    ],
)
def test_variables(pattern: str, value: str, matches: bool) -> None:
    keys: dict[str, Any] = {"aws__username": "alice", "aws__useragent": value}
    assert holds({"StringLike": {"aws:UserAgent": pattern}}, **keys) is matches
    deny = policy(statement(), statement("Deny", Condition={"StringLike": {"aws:UserAgent": pattern}}))
    assert decide(deny, asked(**keys)).allowed is not matches


@pytest.mark.parametrize("operator", ["StringNotEquals", "StringNotLike", "ForAnyValue:StringNotEquals"])
@pytest.mark.parametrize("values", ["${aws:unknown}", ["x", "${aws:unknown}"]])
def test_a_negated_operator_is_false_without_the_value_of_a_variable(operator: str, values: Any) -> None:
    condition = {operator: {"aws:UserAgent": values}}
    assert not holds(condition, aws__useragent="alice")
    assert holds(condition, aws__useragent="alice", aws__unknown="bob")


def test_the_value_of_a_variable_is_no_wildcard() -> None:
    condition = {"StringLike": {"aws:UserAgent": "${aws:username}"}}
    assert not holds(condition, aws__username="*", aws__useragent="alice")
    assert holds(condition, aws__username="*", aws__useragent="*")
    made = policy(statement(Resource=f"arn:aws:dynamodb:us-west-2:{ACCOUNT}:table/${{aws:username}}"))
    assert not decide(made, asked(aws__username="*")).allowed
    assert decide(made, asked(aws__username="GameScores")).allowed


def test_the_old_version_has_no_variables() -> None:
    condition = {"StringEquals": {"aws:UserAgent": "${aws:username}"}}
    assert not holds(condition, "2008-10-17", aws__username="a", aws__useragent="a")
    assert holds(condition, "2008-10-17", aws__username="a", aws__useragent="${aws:username}")


ALLOW = policy(statement())
DENY = policy(statement("Deny"))
NEITHER = policy(statement(Action="dynamodb:Query"))


def resource_policy(principal: Any, effect: str = "Allow", element: str = "Principal") -> Policy:
    return policy(statement(effect, **{element: principal}), on_resource=True)


ALICE_ALLOWED = resource_policy({"AWS": ALICE.arn})
ACCOUNT_ALLOWED = resource_policy({"AWS": ACCOUNT})
EVERYBODY_ALLOWED = resource_policy("*")
ROLE_ALLOWED = resource_policy({"AWS": ROLE_ARN})
SESSION_ALLOWED = resource_policy({"AWS": SESSION.arn})


@pytest.mark.parametrize(
    ("principal", "attached", "allowed", "layer"),
    [
        (ALICE, Attached(), False, "identity-based policy"),
        (ALICE, Attached(identity=(ALLOW,)), True, "identity-based policy"),
        (ALICE, Attached(identity=(NEITHER, ALLOW)), True, "identity-based policy"),
        (ALICE, Attached(identity=(ALLOW, DENY)), False, "identity-based policy"),
        (ROOT, Attached(), True, "identity-based policy"),
        # A permissions boundary and a session policy limit what identity policies allow.
        (ALICE, Attached(identity=(ALLOW,), boundary=(ALLOW,)), True, "identity-based policy"),
        (ALICE, Attached(identity=(ALLOW,), boundary=(NEITHER,)), False, "permissions boundary"),
        (ALICE, Attached(identity=(ALLOW,), boundary=(DENY,)), False, "permissions boundary"),
        (ALICE, Attached(boundary=(ALLOW,)), False, "identity-based policy"),
        (SESSION, Attached(identity=(ALLOW,), session=(ALLOW,)), True, "identity-based policy"),
        (SESSION, Attached(identity=(ALLOW,), session=(NEITHER,)), False, "session policy"),
        (SESSION, Attached(identity=(ALLOW,), session=()), False, "session policy"),
        (SESSION, Attached(session=(ALLOW,)), False, "identity-based policy"),
        # A resource's policy in the same account.
        (ALICE, Attached(resource=(ALICE_ALLOWED,)), True, "resource-based policy"),
        (ALICE, Attached(resource=(ALICE_ALLOWED,), boundary=(NEITHER,)), True, "resource-based policy"),
        (ALICE, Attached(resource=(ALICE_ALLOWED,), boundary=(DENY,)), False, "permissions boundary"),
        (ALICE, Attached(resource=(ACCOUNT_ALLOWED,)), False, "identity-based policy"),
        (ALICE, Attached(resource=(ACCOUNT_ALLOWED,), identity=(ALLOW,)), True, "identity-based policy"),
        (ALICE, Attached(resource=(EVERYBODY_ALLOWED,)), True, "resource-based policy"),
        (ALICE, Attached(resource=(EVERYBODY_ALLOWED,), boundary=(NEITHER,)), True, "resource-based policy"),
        (ALICE, Attached(resource=(EVERYBODY_ALLOWED,), boundary=(DENY,)), False, "permissions boundary"),
        (SESSION, Attached(resource=(EVERYBODY_ALLOWED,), session=(NEITHER,)), True, "resource-based policy"),
        (ALICE, Attached(resource=(EVERYBODY_ALLOWED,), identity=(DENY,)), False, "identity-based policy"),
        (ALICE, Attached(identity=(ALLOW,), resource=(resource_policy("*", "Deny"),)), False,
         "resource-based policy"),
        (ALICE, Attached(resource=(ROLE_ALLOWED,)), False, "identity-based policy"),
        (SESSION, Attached(resource=(ROLE_ALLOWED,)), True, "resource-based policy"),
        (SESSION, Attached(resource=(ROLE_ALLOWED,), session=(NEITHER,)), False, "identity-based policy"),
        (SESSION, Attached(resource=(ROLE_ALLOWED,), boundary=(NEITHER,)), False, "identity-based policy"),
        (SESSION, Attached(resource=(SESSION_ALLOWED,), session=(NEITHER,)), True, "resource-based policy"),
        (SESSION, Attached(resource=(SESSION_ALLOWED,), session=(DENY,)), False, "session policy"),
        # From another account both sides must allow.
        (BOB, Attached(identity=(ALLOW,)), False, "resource-based policy"),
        (BOB, Attached(resource=(resource_policy({"AWS": BOB.arn}),)), False, "identity-based policy"),
        (BOB, Attached(identity=(ALLOW,), resource=(resource_policy({"AWS": BOB.arn}),)), True,
         "identity-based policy"),
        (BOB, Attached(identity=(ALLOW,), resource=(resource_policy({"AWS": OTHER}),)), True,
         "identity-based policy"),
        (BOB, Attached(identity=(ALLOW,), resource=(EVERYBODY_ALLOWED,), boundary=(NEITHER,)), False,
         "permissions boundary"),
        (BOB, Attached(identity=(ALLOW,), resource=(ALICE_ALLOWED,)), False, "resource-based policy"),
    ],
)  # fmt: skip
def test_which_policies_decide(principal: Principal, attached: Attached, allowed: bool, layer: str) -> None:
    decision = evaluate(asked(principal=principal), attached)
    assert (decision.allowed, decision.layer) == (allowed, layer), decision.explained()


@pytest.mark.parametrize(
    ("principal", "listed", "denied"),
    [
        (ALICE, [ALICE.arn, f"arn:aws:iam::{ACCOUNT}:root"], False),
        (ALICE, [ALICE.arn], True),
        (ALICE, [f"arn:aws:iam::{ACCOUNT}:root"], True),
        (SESSION, [SESSION.arn, ROLE_ARN, ACCOUNT], False),
        (SESSION, [SESSION.arn, ACCOUNT], True),
        (BOB, [ALICE.arn, ACCOUNT], True),
    ],
)
def test_not_principal_of_a_deny_spares_whom_it_lists_completely(
    principal: Principal, listed: list[str], denied: bool
) -> None:
    attached = Attached(
        identity=(ALLOW,),
        resource=(EVERYBODY_ALLOWED, resource_policy({"AWS": listed}, "Deny", "NotPrincipal")),
    )
    assert evaluate(asked(principal=principal), attached).allowed is not denied


def test_not_principal_of_a_deny_spares_nobody_who_has_a_boundary() -> None:
    deny = resource_policy({"AWS": [ALICE.arn, ACCOUNT]}, "Deny", "NotPrincipal")
    attached = Attached(identity=(ALLOW,), resource=(deny,))
    assert evaluate(asked(), attached).allowed
    assert not evaluate(asked(), replace(attached, boundary=(ALLOW,))).allowed


def test_not_principal_of_an_allow_is_everybody_else() -> None:
    attached = Attached(resource=(resource_policy({"AWS": ALICE.arn}, "Allow", "NotPrincipal"),))
    assert not evaluate(asked(principal=ALICE), attached).allowed
    assert evaluate(asked(principal=SESSION), attached).allowed


def test_a_service_is_not_an_account() -> None:
    service = Principal("dynamodb.amazonaws.com", "", "Service")
    by_service = Attached(resource=(resource_policy({"Service": "dynamodb.amazonaws.com"}),))
    by_user = Attached(resource=(resource_policy({"AWS": "*"}),))
    denied = evaluate(asked(principal=service), by_user)
    assert denied.layer == "resource-based policy"
    assert evaluate(asked(principal=service), by_service).layer == "identity-based policy"


def test_the_messages_are_those_of_aws() -> None:
    opening = f"User: {ALICE.arn} is not authorized to perform: dynamodb:GetItem on resource: {TABLE}"
    explicit = Attached(identity=(ALLOW, DENY))
    assert evaluate(asked(), explicit).message() == (
        f"{opening} with an explicit deny in an identity-based policy"
    )
    assert evaluate(asked(), Attached()).message() == (
        f"{opening} because no identity-based policy allows the dynamodb:GetItem action"
    )
    limited = Attached(identity=(ALLOW,), boundary=(NEITHER,))
    assert evaluate(asked(), limited).message() == (
        f"{opening} because no permissions boundary allows the dynamodb:GetItem action"
    )


def test_a_decision_says_which_statement_and_why() -> None:
    made = parse({
        "Version": "2012-10-17",
        "Statement": [
            statement(Action="dynamodb:Query", Sid="Queries"),
            statement(Resource=f"{TABLE}2"),
            statement(Sid="Own", Condition={"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "alice"}}),
            statement("Deny", Sid="Never"),
        ],
    }, name="players")  # fmt: skip
    lines = decide(made, asked(dynamodb__leadingkeys=("bob",))).explained()
    assert lines == [
        f'dynamodb:GetItem on {TABLE} is refused: denied by players, statement 4 "Never" '
        "(identity-based policy)",
        'Allow of players, statement 1 "Queries" (identity-based policy) does not apply: its Action does not '
        "include dynamodb:GetItem",
        "Allow of players, statement 2 (identity-based policy) does not apply: its Resource does not "
        f"include {TABLE}",
        'Allow of players, statement 3 "Own" (identity-based policy) does not apply: '
        "ForAllValues:StringEquals dynamodb:LeadingKeys: the request has ['bob'], the policy has ['alice']",
        'Deny of players, statement 4 "Never" (identity-based policy) applies',
    ]


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ([], "a policy document is a JSON object, not a list"),
        ({"Version": "2020-01-01", "Statement": [statement()]}, "Version must be"),
        ({"Statement": []}, "Statement must be"),
        ({"Statement": ["x"]}, "a statement is a JSON object, not a string"),
        ({"Statement": statement(), "More": 1}, "'More' is not an element here"),
        ({"Statement": statement("allow")}, "Effect must be Allow or Deny, not 'allow'"),
        ({"Statement": statement(NotAction="*", Action="*")}, "it has both Action and NotAction"),
        ({"Statement": {"Effect": "Allow", "Action": "*"}}, "it has neither Resource nor NotResource"),
        ({"Statement": statement(Principal="*")}, "only the policy of a resource names a Principal"),
        ({"Statement": statement(Action=[])}, "Action must be a string or a list of strings"),
        ({"Statement": statement(Action="GetItem")}, "'GetItem' is not an action"),
        ({"Statement": statement(Resource="table/x")}, "'table/x' is not a resource"),
        ({"Statement": statement(Condition=[])}, "Condition must be an object of operators"),
        ({"Statement": statement(Condition={"StringEquals": {}})}, "must be an object of context keys"),
        ({"Statement": statement(Condition={"StringIs": {"a": "b"}})}, "'StringIs' is not a condition"),
        ({"Statement": statement(Condition={"ForAll:Bool": {"a": "b"}})}, "is not a condition operator"),
        ({"Statement": statement(Condition={"NullIfExists": {"a": "true"}})}, "Null takes neither"),
        ({"Statement": statement(Condition={"Bool": {"a": "maybe"}})}, "must be true or false, not 'maybe'"),
        ({"Statement": statement(Condition={"NumericEquals": {"a": "many"}})}, "be a number, not 'many'"),
        ({"Statement": statement(Condition={"NumericLessThan": {"a": "NaN"}})}, "be a number, not 'NaN'"),
        ({"Statement": statement(Condition={"DateEquals": {"a": "never"}})}, "must be a date in ISO 8601"),
        ({"Statement": statement(Condition={"NotIpAddress": {"a": "10.0.0"}})}, "must be an IP address"),
        ({"Statement": statement(Condition={"BinaryEquals": {"a": "%"}})}, "must be in base64, not '%'"),
        ({"Statement": statement(Condition={"StringEquals": {"a": []}})}, "there is no value"),
        ({"Statement": statement(Condition={"StringEquals": {"a": None}})}, "must be a string, a number"),
        ({"Statement": [statement(Sid="A"), statement(Sid="A")]}, "two statements have the same Sid"),
    ],
)  # fmt: skip
def test_what_is_not_a_policy_is_refused(document: Any, text: str) -> None:
    with pytest.raises(PolicyError) as raised:
        parse(document)
    assert text in str(raised.value)
