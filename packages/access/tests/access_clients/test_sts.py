"""Programs that ask STS before they use DynamoDB, configured as for AWS: the AWS CLI, and profiles with a
role."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from serving import serving

ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/exporter"
EVERYTHING = {"Statement": {"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*"}}
MAY_ASSUME = {"Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": ROLE}}
USERS = {
    "accounts": {
        ACCOUNT: {
            "users": {
                "alice": {
                    "policies": [MAY_ASSUME],
                    "keys": [{"id": "AKIDALICE", "secret": "the-secret-of-alice"}],
                }
            },
            "roles": {
                "exporter": {
                    "policies": [EVERYTHING],
                    "trust": {
                        "Statement": {
                            "Effect": "Allow",
                            "Principal": {"AWS": ACCOUNT},
                            "Action": "sts:AssumeRole",
                        }
                    },
                }
            },
        }
    }
}
PROFILES = """
[profile alice]
region = us-east-1
[profile exporter]
role_arn = {role}
source_profile = alice
role_session_name = nightly
region = us-east-1
[profile process]
credential_process = {python} {program}
region = us-east-1
"""
PROCESS = """
import json, os, boto3
session = boto3.Session(profile_name="alice")
made = session.client("sts").assume_role(RoleArn="{role}", RoleSessionName="process")["Credentials"]
made["Expiration"] = made["Expiration"].isoformat()
print(json.dumps({{"Version": 1, **made}}))
"""

ASKING = """
import boto3
print(boto3.Session(profile_name="{profile}").client("sts").get_caller_identity()["Arn"])
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A machine that is configured for a strict server."""
    home = tmp_path_factory.mktemp("home")
    (home / "users.json").write_bytes(orjson.dumps(USERS))
    (home / "process.py").write_text(PROCESS.format(role=ROLE))
    named = {"role": ROLE, "python": sys.executable, "program": home / "process.py"}
    (home / "config").write_text(PROFILES.format(**named))
    (home / "credentials").write_text(
        "[alice]\naws_access_key_id = AKIDALICE\naws_secret_access_key = the-secret-of-alice\n"
    )
    with serving("--memory", "--auth", "strict", "--users", str(home / "users.json")) as server:
        mine = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        yield mine | {
            "HOME": str(home),
            "AWS_CONFIG_FILE": str(home / "config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(home / "credentials"),
            "AWS_ENDPOINT_URL_STS": server.endpoint,
            "AWS_ENDPOINT_URL_DYNAMODB": server.endpoint,
            "AWS_PAGER": "",
        }


def aws(environment: dict[str, str], *arguments: str) -> Any:
    program = Path(sys.executable).with_name("aws")
    done = subprocess.run(
        [program, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    return orjson.loads(done.stdout) if done.returncode == 0 else done.stderr


@pytest.mark.parametrize(
    ("profile", "arn"),
    [
        ("alice", f"arn:aws:iam::{ACCOUNT}:user/alice"),
        ("exporter", f"arn:aws:sts::{ACCOUNT}:assumed-role/exporter/nightly"),
        ("process", f"arn:aws:sts::{ACCOUNT}:assumed-role/exporter/process"),
    ],
)
def test_who_a_profile_is(environment: dict[str, str], profile: str, arn: str) -> None:
    assert aws(environment, "--profile", profile, "sts", "get-caller-identity")["Arn"] == arn
    program = ASKING.format(profile=profile)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == arn, done.stderr


def test_a_profile_with_a_role_uses_the_data(environment: dict[str, str]) -> None:
    assert aws(environment, "--profile", "exporter", "dynamodb", "list-tables") == {"TableNames": []}
    assert aws(environment, "--profile", "process", "dynamodb", "list-tables") == {"TableNames": []}
    refused = aws(environment, "--profile", "alice", "dynamodb", "list-tables")
    assert "(AccessDeniedException)" in refused


def test_a_role_that_does_not_trust_the_user(environment: dict[str, str]) -> None:
    role = ROLE.replace("exporter", "another")
    given = ("sts", "assume-role", "--role-arn", role, "--role-session-name", "test")
    refused = aws(environment, "--profile", "alice", *given)
    assert "(AccessDenied)" in refused
    assert f"is not authorized to perform: sts:AssumeRole on resource: {role}" in refused
