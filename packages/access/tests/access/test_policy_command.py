"""`hashrange policy lint` and `hashrange policy simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from hashrange.cli import main

TABLE = "arn:aws:dynamodb:us-east-1:000000000000:table/scores"
ALLOW = {"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": TABLE}
DEAD = {
    "Effect": "Deny",
    "Action": "dynamodb:GetItem",
    "Resource": "*",
    "Condition": {"StringEquals": {"dynamodb:LeadingKeys": "secret"}},
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    key = {"id": "AKIDALICE", "secret": "long-enough"}
    keyed = {"users": {"alice": {"policies": ["own"], "keys": [key]}, "keyless": {}}}
    trusting = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "0" * 12}}
    trusting["Condition"] = {"StringEquals": {"sts:ExternalId": "the-id"}}
    anybody = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": "*"}
    own: Any = {"Version": "2012-10-17", "Statement": [ALLOW]}
    contents = {
        "allow.json": {"Version": "2012-10-17", "Statement": ALLOW},
        "dead.json": {"Version": "2012-10-17", "Statement": [ALLOW, DEAD]},
        "wrong.json": {"Statement": {"Effect": "Allow"}},
        "public.json": {"Statement": ALLOW | {"Principal": "*"}},
        "users.json": {"accounts": {"000000000000": {"policies": {"own": own}, **keyed}}},
        "dead-users.json": {
            "accounts": {"000000000000": {"policies": {"own": {"Statement": DEAD}}, **keyed}}
        },
    }
    for name, statement in (("trust", trusting), ("anybody", anybody)):
        roles = {"reader": {"trust": {"Version": "2012-10-17", "Statement": statement}}}
        contents[f"{name}.json"] = {"accounts": {"0" * 12: {"roles": roles}}}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(orjson.dumps(content))
    (tmp_path / "allow.yaml").write_text(
        f"Version: 2012-10-17\nStatement: {{Effect: Allow, Action: 'dynamodb:*', Resource: '{TABLE}'}}\n"
    )
    return tmp_path


def run(*arguments: str) -> tuple[int, str]:
    outcome = CliRunner().invoke(main, ["policy", *arguments])
    return outcome.exit_code, outcome.output


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["allow.json"], 0, "1 file without errors or dangers."),
        (["allow.json", "allow.yaml"], 0, "2 files without errors or dangers."),
        (["dead.json"], 1, "DANGER: dead.json, statement 2: StringEquals dynamodb:LeadingKeys never matches"),
        (["trust.json"], 0, "1 file without errors or dangers."),
        (["anybody.json"], 1, 'Principal "*" without a condition permits anyone'),
        (["wrong.json"], 1, "ERROR: wrong.json: statement 1: it has neither Action nor NotAction"),
        (["public.json"], 1, "only the policy of a resource names a Principal"),
        (["--resource", "public.json"], 1, 'DANGER: public.json, statement 1: Principal "*" without'),
        (["users.json"], 0, "without errors or dangers"),
        (["dead-users.json"], 1, "DANGER: accounts.000000000000.policies.own, statement 1"),
        (["missing.json"], 2, "does not exist"),
    ],
)
def test_lint(files: Path, arguments: list[str], code: int, text: str) -> None:
    exit_code, output = run("lint", *arguments)
    assert text in output
    assert exit_code == code


GET = ["simulate", "--action", "GetItem", "--resource", TABLE]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--policy", "allow.json"], 0, f"dynamodb:GetItem on {TABLE} is allowed: allowed by allow.json"),
        ([], 1, "is refused: no identity-based policy allows it"),
        (["--policy", "dead.json", "--context", "dynamodb:LeadingKeys=secret"], 0, "is allowed"),
        (["--policy", "allow.json", "--boundary", "dead.json"], 0, "is allowed"),
        (["--policy", "allow.json", "--session", "allow.yaml"], 0, "is allowed"),
        (["--resource-policy", "public.json"], 0, "(resource-based policy)"),
        (["--users", "users.json", "--user", "alice"], 0, "allowed by own, statement 1"),
        (["--users", "users.json", "--user", "bob"], 2, "give one of alice, keyless"),
        (["--users", "users.json", "--user", "keyless"], 1, "is refused: no identity-based policy allows it"),
        (["--policy", "wrong.json"], 1, "it has neither Action nor NotAction"),
        (["--context", "x"], 2, "has no value"),
        (["--principal", "alice"], 2, "is not the ARN of a user"),
    ],
)
def test_simulate(files: Path, arguments: list[str], code: int, text: str) -> None:
    exit_code, output = run(*GET, *arguments)
    assert text in output
    assert exit_code == code
