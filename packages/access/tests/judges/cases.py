"""Random policies and requests: small enough that many of them apply, and odd enough to differ.

The vocabulary is narrow on purpose. Of all users, tables, keys and values there are only a few, so that a
statement often names what the request asks for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

Json = dict[str, Any]

ACCOUNT = "123456789012"
OTHER = "444455556666"
REGION = "us-west-2"
TABLE = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/Scores"
INDEX = f"{TABLE}/index/ByGame"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/player"

# Actions with condition keys of DynamoDB's own, and without.
ACTIONS = ("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan", "DescribeTable", "BatchGetItem")
ON_INDEXES = ("Query", "Scan")

_ACTION_PATTERNS = (
    *("dynamodb:*", "*", "dynamodb:Get*", "dynamodb:*Item", "DynamoDB:getitem", "dynamodb:?can", "s3:*"),
    *(f"dynamodb:{action}" for action in ACTIONS),
)
_RESOURCE_PATTERNS = (
    *(TABLE, TABLE, INDEX, f"{TABLE}/index/*", f"{TABLE}*", "*", f"arn:aws:dynamodb:*:{ACCOUNT}:table/*"),
    *(f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/Sc?res", f"arn:aws:dynamodb:{REGION}:*:table/Scores"),
    *(f"arn:aws:dynamodb:eu-west-1:{ACCOUNT}:table/Scores", f"arn:aws:dynamodb:{REGION}:{OTHER}:table/*"),
    *(f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/${{aws:PrincipalTag/table}}",),
)
_NAMES = ("alice", "bob", "Alice", "al*", "a?ice", "*", "${aws:username}", "Scores",
          "${aws:PrincipalTag/table}")  # fmt: skip
_NUMBERS = ("1", "10", "9", "10.0", "-3")
_DATES = (
    *("2026-01-01T00:00:00Z", "2026-06-01T12:30:00Z", "2025-12-31T23:59:59Z"),
    *("1767225600", "2026-01-01T01:00:00+01:00"),
)
_ADDRESSES = (
    *("203.0.113.0/24", "203.0.113.9", "203.0.113.9/32", "10.0.0.0/8", "0.0.0.0/0", "2001:db8::/32"),
    *("2001:db8::1", "::/0"),
)
_ARNS = (
    *(f"arn:aws:iam::{ACCOUNT}:user/alice", "arn:aws:iam::*:user/*", ROLE, "arn:aws:iam::*:role/pl?yer"),
    *("arn:aws:sts::*:*", "arn:*:iam::*:*", f"arn:aws:iam::{OTHER}:user/bob", "*"),
)
_BOOLEANS = ("true", "false", "True")
_SELECTS = ("ALL_ATTRIBUTES", "SPECIFIC_ATTRIBUTES", "COUNT", "ALL_*")
_ATTRIBUTES = ("user", "score", "secret", "s*")

_STRING = ("StringEquals", "StringNotEquals", "StringEqualsIgnoreCase", "StringNotEqualsIgnoreCase",
           "StringLike", "StringNotLike")  # fmt: skip
_NUMERIC = tuple(f"Numeric{order}" for order in (
    "Equals", "NotEquals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals"
))  # fmt: skip
_DATE = tuple(name.replace("Numeric", "Date") for name in _NUMERIC)
_ARN = ("ArnEquals", "ArnLike", "ArnNotEquals", "ArnNotLike")
_IP = ("IpAddress", "NotIpAddress")

# The key, its operators, the values in policies and the values in requests; keys of the principal have those
# of the principal.
_KEYS: tuple[tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    ("aws:username", _STRING, _NAMES, ()),
    ("aws:PrincipalTag/team", _STRING, ("red", "Red", "r*", "blue", "${aws:username}"), ("red", "blue")),
    ("aws:UserAgent", _STRING, ("cli*", "cli/1", "CLI/1", "${*}", "?li/1"), ("cli/1", "*")),
    ("aws:EpochTime", _NUMERIC, _NUMBERS, ("10", "9", "11")),
    ("aws:CurrentTime", _DATE, _DATES, ("2026-01-01T00:00:00Z", "2026-06-01T12:30:00Z")),
    ("aws:SourceIp", _IP, _ADDRESSES, ("203.0.113.9", "10.1.2.3", "2001:db8::1")),
    ("aws:PrincipalArn", _ARN, _ARNS, ()),
    ("aws:SecureTransport", ("Bool",), _BOOLEANS, ("true", "false")),
    ("dynamodb:Select", _STRING, _SELECTS, ("ALL_ATTRIBUTES", "SPECIFIC_ATTRIBUTES", "COUNT")),
    ("dynamodb:LeadingKeys", _STRING, _NAMES, ("alice", "bob", "al*")),
    ("dynamodb:Attributes", _STRING, _ATTRIBUTES, ("user", "score", "secret")),
)
SEVERAL = frozenset({"dynamodb:LeadingKeys", "dynamodb:Attributes"})


@dataclass(frozen=True, slots=True)
class Case:
    """A request and the policies that take part. None: there is no such policy."""

    principal: str
    action: str
    resource: str
    keys: dict[str, str | list[str]]
    identity: list[Json] = field(default_factory=list)
    resource_policy: Json | None = None
    boundary: Json | None = None
    session: Json | None = None


def random_case(random: Random) -> Case:
    principal = random.choice((
        *[f"arn:aws:iam::{ACCOUNT}:user/alice"] * 3,
        *[f"arn:aws:sts::{ACCOUNT}:assumed-role/player/night"] * 3,
        *[f"arn:aws:iam::{OTHER}:user/bob"] * 2,
    ))  # fmt: skip
    action = random.choice(ACTIONS)
    resource = INDEX if action in ON_INDEXES and random.random() < 0.4 else TABLE
    is_session = ":assumed-role/" in principal
    return Case(
        principal,
        f"dynamodb:{action}",
        resource,
        _request_keys(random, principal),
        [_document(random) for _ in range(random.choice((0, 1, 1, 2)))],
        _document(random, on_resource=True) if random.random() < 0.5 else None,
        _document(random) if random.random() < 0.25 else None,
        _document(random) if is_session and random.random() < 0.4 else None,
    )


def _request_keys(random: Random, principal: str) -> dict[str, str | list[str]]:
    keys: dict[str, str | list[str]] = {"aws:PrincipalTag/table": "Scores", "aws:PrincipalArn": principal}
    if ":assumed-role/" in principal:
        keys["aws:PrincipalArn"] = ROLE
    else:
        keys["aws:username"] = principal.rpartition("/")[2]
    for key, _, _, values in _KEYS:
        if random.random() < 0.3 or not values:
            continue
        if key in SEVERAL:
            keys[key] = random.sample(values, random.randrange(1, len(values)))
        else:
            keys[key] = random.choice(values)
    return keys


def _document(random: Random, *, on_resource: bool = False) -> Json:
    version = {} if random.random() < 0.1 else {"Version": "2012-10-17"}
    statements = [_statement(random, on_resource) for _ in range(random.randrange(1, 4))]
    is_listed = len(statements) > 1 or random.random() < 0.5
    return {**version, "Statement": statements if is_listed else statements[0]}


def _statement(random: Random, on_resource: bool) -> Json:
    statement: Json = {"Effect": "Allow" if random.random() < 0.75 else "Deny"}
    if on_resource:
        statement |= _principal(random, statement["Effect"])
    excludes = random.random() < 0.12
    statement["NotAction" if excludes else "Action"] = _few(random, _ACTION_PATTERNS)
    excludes = random.random() < 0.12
    statement["NotResource" if excludes else "Resource"] = _few(random, _RESOURCE_PATTERNS)
    condition: Json = {}
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        operator, key, values = _condition(random)
        condition.setdefault(operator, {})[key] = values
    return statement | ({"Condition": condition} if condition else {})


def _principal(random: Random, effect: str) -> Json:
    names = (f"arn:aws:iam::{ACCOUNT}:user/alice", f"arn:aws:iam::{ACCOUNT}:root", ACCOUNT, ROLE, "*",
             f"arn:aws:sts::{ACCOUNT}:assumed-role/player/night", f"arn:aws:iam::{OTHER}:user/bob",
             f"arn:aws:iam::{OTHER}:root", OTHER)  # fmt: skip
    if effect == "Deny" and random.random() < 0.3:
        listed = random.sample([name for name in names if name != "*"], random.randrange(1, 5))
        return {"NotPrincipal": {"AWS": listed}}
    chosen = _few(random, names)
    return {"Principal": "*" if chosen == "*" and random.random() < 0.5 else {"AWS": chosen}}


def _condition(random: Random) -> tuple[str, str, Any]:
    key, operators, values, _ = random.choice(_KEYS)
    if random.random() < 0.1:
        return "Null", key, random.choice(("true", "false"))
    operator = random.choice(operators)
    if random.random() < 0.2:
        operator += "IfExists"
    if key in SEVERAL:
        operator = random.choice(("ForAllValues:", "ForAnyValue:", "ForAllValues:", "")) + operator
    return operator, key, _few(random, values)


def _few(random: Random, values: tuple[str, ...]) -> Any:
    chosen = random.sample(values, min(random.choice((1, 1, 1, 2, 3)), len(values)))
    return chosen[0] if len(chosen) == 1 and random.random() < 0.7 else chosen
