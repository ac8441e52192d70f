"""`hashrange key` with a running server, and the servers that start without any key."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import orjson
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.clock import SystemClock
from hashrange.database import Database
from hashrange.server import running
from hashrange_access.directory import Directory
from hashrange_access.judging.gate import Gate
from hashrange_access.judging.judging import guard
from hashrange_access.keys import sealing
from hashrange_access.keys.keyring import Keyring
from hashrange_access.users import read
from serving import serving

TOKEN = "0123456789abcdef"
EVERYTHING = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
USERS: dict[str, Any] = {
    "accounts": {"123456789012": {"users": {"alice": {"policies": [EVERYTHING]}}}}
}


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with Database.in_memory() as database:
        directory = Directory(read(USERS))
        now = SystemClock().now
        keyring = Keyring(database.engine, sealing.in_memory(os.urandom), directory, now)
        guard(database, Gate(directory, now, strict=True, keyring=keyring))
        monkeypatch.setenv("HASHRANGE_ADMIN_TOKEN", TOKEN)
        with running(database, admin=bind_admin(0, token=TOKEN)) as url:
            yield url


def run(endpoint: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["key", *arguments, "--endpoint-url", endpoint])


def made(result: Result) -> tuple[str, str]:
    """The key and the secret that a command shows."""
    assert result.exit_code == 0, result.output
    match = re.fullmatch(r"AWS_ACCESS_KEY_ID=(\S+)\nAWS_SECRET_ACCESS_KEY=(\S+)\n", result.stdout)
    assert match is not None
    return match[1], match[2]


def code(endpoint: str, key: tuple[str, str]) -> str:
    """What a server says to a request with a key: "" if it is answered."""
    client = boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=key[0],
        aws_secret_access_key=key[1],
        config=Config(retries={"total_max_attempts": 1}),
    )
    try:
        client.list_tables()
    except ClientError as error:
        return error.response["Error"]["Code"]
    return ""


def test_a_key_is_made_and_revoked(endpoint: str) -> None:
    result = run(endpoint, "create", "--user", "alice")
    key = made(result)
    assert "Its secret is not shown again" in result.stderr
    assert code(endpoint, key) == ""
    assert "disabled" in run(endpoint, "disable", key[0]).stdout
    assert code(endpoint, key) == "UnrecognizedClientException"
    assert "enabled" in run(endpoint, "enable", key[0]).stdout
    assert code(endpoint, key) == ""
    assert run(endpoint, "delete", key[0], "--yes").exit_code == 0
    assert code(endpoint, key) == "UnrecognizedClientException"
    assert "The store has no keys" in run(endpoint, "list").stdout


def test_a_key_is_rotated(endpoint: str) -> None:
    old = made(run(endpoint, "create", "--user", "alice"))
    result = run(endpoint, "rotate", old[0], "--grace", "1h")
    assert f"{old[0]} ends in 1h" in result.stderr
    new = made(result)
    assert (code(endpoint, old), code(endpoint, new)) == ("", "")
    listed = run(endpoint, "list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == [old[0], new[0]]
    assert "until 20" in listed[0]
    assert "enabled" in listed[1]
    assert old[1] not in "".join(listed)
    run(endpoint, "rotate", new[0], "--grace", "0")
    assert code(endpoint, new) == "UnrecognizedClientException"


def test_keys_of_the_root_user_and_of_a_user_with_a_policy(endpoint: str, tmp_path: Path) -> None:
    assert code(endpoint, made(run(endpoint, "create", "--root"))) == ""
    policy = tmp_path / "policy.json"
    policy.write_bytes(orjson.dumps({"Statement": {"Effect": "Deny", "Action": "*", "Resource": "*"}}))
    denied = made(run(endpoint, "create", "--user", "ci", "--policy", str(policy)))
    assert code(endpoint, denied) == "AccessDeniedException"
    assert "with a policy of its own" in run(endpoint, "list").stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["create"], "Name the user with --user NAME, or give --root"),
        (["create", "--root", "--user", "alice"], "Name the user with --user NAME, or give --root"),
        (["create", "--user", "carol"], "no user 'carol' in the account 123456789012, but alice"),
        (["create", "--root", "--account", "1"], "the server has no account 1, but 123456789012"),
        (["disable", "AKIANOBODY"], "there is no key AKIANOBODY in the store"),
        (["rotate", "AKIANOBODY"], "there is no key AKIANOBODY in the store"),
        (["rotate", "AKIANOBODY", "--grace", "soon"], "'soon' is not a duration"),
        (["delete", "AKIANOBODY", "--yes"], "there is no key AKIANOBODY in the store"),
        (["delete", "AKIANOBODY"], "There is no terminal for the answer: give --yes"),
    ],
)
def test_what_is_not_possible(endpoint: str, arguments: list[str], text: str) -> None:
    result = run(endpoint, *arguments)
    assert result.exit_code != 0
    assert text in " ".join(result.output.split())


def test_a_policy_that_is_no_json(endpoint: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text("Statement: {}")
    result = run(endpoint, "create", "--user", "ci", "--policy", str(policy))
    assert f"{policy} is not a policy in JSON" in result.output


def test_a_server_without_users_has_no_keys() -> None:
    with Database.in_memory() as database, running(database, admin=bind_admin(0)) as url:
        result = run(url, "list")
    assert "the server has no keys: start it with --auth soft or --auth strict" in result.output


def test_a_server_begins_without_a_key_and_keeps_those_that_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--data-dir", str(tmp_path / "data"), "--auth", "strict")
    with serving(*options) as server:
        refused = run(server.endpoint, "create", "--root")
        assert (refused.exit_code, "the token that the server printed" in refused.output) == (1, True)
        monkeypatch.setenv("HASHRANGE_ADMIN_TOKEN", server.says(r"token +(\S+)"))
        key = made(run(server.endpoint, "create", "--root"))
        assert code(server.endpoint, key) == ""
        assert code(server.endpoint, ("any", "any")) == "UnrecognizedClientException"
    with serving(*options) as server:
        assert code(server.endpoint, key) == ""
    assert (tmp_path / "data" / "access.key").stat().st_mode & 0o777 == 0o600


def test_a_root_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HASHRANGE_ROOT_ACCESS_KEY_ID", "AKIDROOT")
    monkeypatch.setenv("HASHRANGE_ROOT_SECRET_ACCESS_KEY", "the-secret-of-root")
    monkeypatch.setenv("HASHRANGE_AUTH", "strict")
    with serving("--memory") as server:
        made(run(server.endpoint, "create", "--root"))  # signed with the key of the environment
        assert code(server.endpoint, ("AKIDROOT", "the-secret-of-root")) == ""
        assert code(server.endpoint, ("AKIDROOT", "another-secret")) == "InvalidSignatureException"
