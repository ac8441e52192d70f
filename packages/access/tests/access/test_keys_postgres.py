"""Keys and sessions on several servers over one PostgreSQL."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from click.testing import CliRunner

import postgres
from hashrange.cli import main
from serving import Server, serving


@pytest.fixture
def servers(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Server]]:
    """Two servers over one schema, with one key file, and one token for their admin planes."""
    monkeypatch.setenv("HASHRANGE_ADMIN_TOKEN", "0123456789abcdef")
    path = tmp_path / "access.key"
    path.write_bytes(base64.b64encode(os.urandom(32)))
    path.chmod(0o600)
    options = ["--postgres", postgres_url, "--postgres-schema", postgres.new_schema()]
    options += ["--auth", "strict", "--key-file", str(path)]
    with ExitStack() as stack:
        yield [stack.enter_context(serving(*options)) for _ in range(2)]


def command(server: Server, *arguments: str) -> str:
    result = CliRunner().invoke(main, ["key", *arguments, "--endpoint-url", server.endpoint])
    assert result.exit_code == 0, result.output
    return result.stdout


def client(service: Any, server: Server, *credentials: str) -> Any:
    key, secret, token = (*credentials, None)[:3]
    return boto3.client(
        service,
        endpoint_url=server.endpoint,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=Config(retries={"total_max_attempts": 1}),
    )


def is_let_in(server: Server, *credentials: str) -> bool:
    try:
        client("dynamodb", server, *credentials).list_tables()
    except ClientError as error:
        assert error.response["Error"]["Code"] == "UnrecognizedClientException"
        return False
    return True


def test_a_key_is_made_and_revoked_on_all_servers(servers: list[Server]) -> None:
    one, other = servers
    key = tuple(line.partition("=")[2] for line in command(one, "create", "--root").splitlines())
    assert is_let_in(one, *key)
    while not is_let_in(other, *key):  # it looks once a second
        pass
    session = client("sts", one, *key).get_session_token()["Credentials"]
    token = (session["AccessKeyId"], session["SecretAccessKey"], session["SessionToken"])
    assert is_let_in(one, *token)
    assert is_let_in(other, *token)
    command(other, "disable", key[0])
    assert not is_let_in(other, *key)
    assert not is_let_in(other, *token)
    while is_let_in(one, *key):
        pass
    assert not is_let_in(one, *token)


def test_a_server_over_postgres_needs_a_key_file_for_keys(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--postgres", postgres_url, "--postgres-schema", postgres.new_schema(), "--auth", "strict"]
    refused = CliRunner().invoke(main, ["serve", "--port", "0", *options])
    assert refused.exit_code == 2
    assert "without one nobody can use the server" in " ".join(refused.output.split())
    monkeypatch.setenv("HASHRANGE_ROOT_ACCESS_KEY_ID", "AKIDROOT")
    monkeypatch.setenv("HASHRANGE_ROOT_SECRET_ACCESS_KEY", "the-secret-of-root")
    with serving(*options) as server:
        assert is_let_in(server, "AKIDROOT", "the-secret-of-root")
        given = ["key", "create", "--root", "--endpoint-url", server.endpoint]
        result = CliRunner().invoke(main, given)
        assert "over PostgreSQL it needs --key-file" in result.output
        with pytest.raises(ClientError, match="This server issues no sessions: over PostgreSQL"):
            client("sts", server, "AKIDROOT", "the-secret-of-root").get_session_token()
