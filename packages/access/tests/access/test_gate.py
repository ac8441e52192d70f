"""A server that knows its users: boto3 over HTTP, with right and wrong keys."""

from __future__ import annotations

import gzip
import http.client
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import orjson
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from click.testing import CliRunner

from hashrange.cli import main
from hashrange.clock import SystemClock
from hashrange.database import Database
from hashrange.server import running
from hashrange.settings import Settings
from hashrange_access.judging.gate import Gate
from hashrange_access.judging.judging import guard
from hashrange_access.users import read
from serving import serving
from worlds import table_of

ACCOUNT = "123456789012"
USERS: dict[str, Any] = {
    "accounts": {
        ACCOUNT: {
            "users": {
                "admin": {
                    "policies": [{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}],
                    "keys": [{"id": "AKIDADMIN", "secret": "the-secret-of-admin"}],
                },
                "reader": {
                    "policies": [
                        {
                            "Version": "2012-10-17",
                            "Statement": {
                                "Effect": "Allow",
                                "Action": ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem"],
                                "Resource": f"arn:aws:dynamodb:*:{ACCOUNT}:table/scores",
                                "Condition": {
                                    "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "${aws:username}"}
                                },
                            },
                        }
                    ],
                    "keys": [{"id": "AKIDREADER", "secret": "the-secret-of-reader"}],
                },
            },
            "roles": {
                "exporter": {
                    "policies": [{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}],
                    "sessions": [
                        {
                            "name": "one",
                            "id": "ASIDROLE",
                            "secret": "the-secret-of-role",
                            "token": "the+token/of=role",
                        }
                    ],
                }
            },
        }
    }
}


JSON_HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Target": "DynamoDB_20120810.ListTables",
}


def client(endpoint: str, key: str, secret: str, token: str | None = None, **options: Any) -> Any:
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=Config(retries={"total_max_attempts": 1}, **options),
    )


@pytest.fixture(params=["strict"])
def endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    with Database.in_memory() as database:
        strict = request.param == "strict"
        guard(database, Gate(read(USERS), SystemClock().now, strict=strict))
        with running(database) as url:
            yield url


@pytest.fixture
def admin(endpoint: str) -> Iterator[Any]:
    made = client(endpoint, "AKIDADMIN", "the-secret-of-admin")
    made.create_table(**table_of("scores", "user"))
    yield made
    made.close()


def refusal(call: Any, **request: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as raised:
        call(**request)
    error = raised.value.response["Error"]
    return error["Code"], error["Message"]


def test_users_do_what_their_policies_allow(endpoint: str, admin: Any) -> None:
    assert admin.describe_table(TableName="scores")["Table"]["TableArn"] == (
        f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/scores"
    )
    reader = client(endpoint, "AKIDREADER", "the-secret-of-reader")
    reader.put_item(TableName="scores", Item={"user": {"S": "reader"}, "best": {"N": "9"}})
    assert "Item" in reader.get_item(TableName="scores", Key={"user": {"S": "reader"}})
    table = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/scores"
    for call, action, request in (
        (reader.get_item, "GetItem", {"Key": {"user": {"S": "admin"}}}),
        (reader.put_item, "PutItem", {"Item": {"user": {"S": "admin"}}}),
        (reader.scan, "Scan", {}),
        (reader.delete_table, "DeleteTable", {}),
    ):
        assert refusal(call, TableName="scores", **request) == (
            "AccessDeniedException",
            f"User: arn:aws:iam::{ACCOUNT}:user/reader is not authorized to perform: dynamodb:{action} on "
            f"resource: {table} because no identity-based policy allows the dynamodb:{action} action",
        )


def test_a_large_request_is_judged_too(endpoint: str, admin: Any) -> None:
    reader = client(endpoint, "AKIDREADER", "the-secret-of-reader")
    large = {"user": {"S": "reader"}, "text": {"S": "x" * 200_000}}
    reader.put_item(TableName="scores", Item=large)
    error = refusal(reader.put_item, TableName="scores", Item=large | {"user": {"S": "admin"}})
    assert error[0] == "AccessDeniedException"


@pytest.mark.parametrize(
    ("condition", "is_allowed"),
    [
        ({"IpAddress": {"aws:SourceIp": ["127.0.0.0/8", "::1"]}}, True),
        ({"NotIpAddress": {"aws:SourceIp": ["127.0.0.0/8", "::1"]}}, False),
        ({"IpAddress": {"aws:SourceIp": "203.0.113.0/24"}}, False),
        ({"Null": {"aws:SourceIp": "true"}}, False),
        ({"StringLike": {"aws:UserAgent": "Boto3/*"}}, True),
        ({"StringLike": {"aws:UserAgent": "curl/*"}}, False),
        ({"StringEquals": {"aws:Referer": "https://example.com/"}}, True),
        ({"Bool": {"aws:SecureTransport": "true"}}, False),
    ],
)
def test_what_the_connection_says(condition: Any, is_allowed: bool) -> None:
    statement = {"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": condition}
    key = {"id": "AKIDALICE", "secret": "the-secret-of-alice"}
    policies = [{"Version": "2012-10-17", "Statement": statement}]
    users = {"accounts": {ACCOUNT: {"users": {"alice": {"policies": policies, "keys": [key]}}}}}
    with Database.in_memory() as database:
        guard(database, Gate(read(users), SystemClock().now, strict=True))
        with running(database) as url:
            alice = client(url, key["id"], key["secret"])

            def refer(request: Any, **_: Any) -> None:
                request.headers["Referer"] = "https://example.com/"

            alice.meta.events.register("before-sign.dynamodb", refer)
            if is_allowed:
                assert alice.list_tables()["TableNames"] == []
            else:
                assert refusal(alice.list_tables)[0] == "AccessDeniedException"


def test_no_client_can_say_where_it_is(endpoint: str) -> None:
    host, port = endpoint.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n:source: 203.0.113.9\r\n\r\n")
        assert connection.recv(1_000).startswith(b"HTTP/1.1 400 ")


def test_a_session_has_a_token(endpoint: str, admin: Any) -> None:
    session = client(endpoint, "ASIDROLE", "the-secret-of-role", "the+token/of=role")
    assert session.list_tables()["TableNames"] == ["scores"]
    for token in (None, "another"):
        code, message = refusal(client(endpoint, "ASIDROLE", "the-secret-of-role", token).list_tables)
        assert code == "UnrecognizedClientException"
        assert message == "The security token included in the request is invalid."


@pytest.mark.parametrize(
    ("key", "secret", "code"),
    [
        ("AKIDNOBODY", "the-secret-of-admin", "UnrecognizedClientException"),
        (ACCOUNT, "any", "UnrecognizedClientException"),
        ("AKIDADMIN", "the-secret-of-reader", "InvalidSignatureException"),
    ],
)
def test_a_stranger_is_refused(endpoint: str, admin: Any, key: str, secret: str, code: str) -> None:
    stranger = client(endpoint, key, secret)
    assert refusal(stranger.list_tables)[0] == code
    assert refusal(stranger.get_item, TableName="scores", Key={"user": {"S": "a"}})[0] == code


def test_a_signed_header_may_come_in_several_lines(endpoint: str, admin: Any) -> None:
    # [report] extenddb, measured on September 16, 2026
    host, headers = endpoint.removeprefix("http://"), {"X-Amz-Meta-Dup": "first,second", **JSON_HEADERS}
    signed = AWSRequest("POST", endpoint, headers={"Host": host, **headers}, data=b"{}")
    SigV4Auth(Credentials("AKIDADMIN", "the-secret-of-admin"), "dynamodb", "us-east-1").add_auth(signed)
    statuses = []
    for lines in (["first", "second"], ["first,second"], [" first ", " second"], ["second", "first"]):
        connection = http.client.HTTPConnection(host, timeout=10)
        connection.putrequest("POST", "/", skip_host=True)
        for name, value in signed.headers.items():
            for line in lines if name == "X-Amz-Meta-Dup" else [value]:
                connection.putheader(name, line)
        connection.putheader("Content-Length", "2")
        connection.endheaders(b"{}")
        statuses.append(connection.getresponse().status)
        connection.close()
    assert statuses == [200, 200, 200, 400]


def test_a_signature_covers_the_body_as_it_is_sent(endpoint: str, admin: Any) -> None:
    host = endpoint.removeprefix("http://")
    statuses = []
    for body in (gzip.compress(b"{}"), b"{}"):
        signed = AWSRequest("POST", endpoint, headers={"Host": host, **JSON_HEADERS}, data=body)
        SigV4Auth(Credentials("AKIDADMIN", "the-secret-of-admin"), "dynamodb", "us-east-1").add_auth(signed)
        connection = http.client.HTTPConnection(host, timeout=10)
        headers = {**signed.headers, "Content-Encoding": "gzip"}
        connection.request("POST", "/", gzip.compress(b"{}"), headers)
        statuses.append(connection.getresponse().status)
        connection.close()
    assert statuses == [200, 400]


def test_an_unsigned_request_is_refused(endpoint: str) -> None:
    from botocore import UNSIGNED

    unsigned = client(endpoint, "any", "any", signature_version=UNSIGNED)
    assert refusal(unsigned.list_tables) == (
        "MissingAuthenticationTokenException",
        "Request is missing Authentication Token",
    )


@pytest.mark.parametrize("endpoint", ["soft"], indirect=True)
def test_soft_answers_everybody_and_logs(
    endpoint: str, admin: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert client(endpoint, "AKIDNOBODY", "any").list_tables()["TableNames"] == ["scores"]
        assert "Items" in client(endpoint, "AKIDREADER", "the-secret-of-reader").scan(TableName="scores")
        assert client(endpoint, "AKIDADMIN", "the-secret-of-admin").list_tables()["TableNames"] == ["scores"]
    fields = [vars(record)["fields"] for record in caplog.records]
    assert [record.getMessage() for record in caplog.records] == ["strict would refuse a request"] * 2
    assert (fields[0]["key"], fields[0]["error"]) == ("AKIDNOBODY", "UnrecognizedClientException")
    scan = "dynamodb:Scan on arn:aws:dynamodb:us-east-1:123456789012:table/scores"
    assert f"{scan} is refused" in fields[1]["why"]


def test_a_database_that_nobody_judges_has_no_watch() -> None:
    with Database.in_memory() as database:
        assert database.observers.active is None
        assert not database.observers.heads


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--auth", "strict"], "--auth strict needs --users FILE"),
        (["--users", "users.yaml"], "--users has no effect without --auth"),
        (["--key-file", "access.key"], "--key-file has no effect without --auth"),
        (["--root-access-key-id", "AKIDROOT"], "--root-access-key-id has no effect without --auth"),
        (["--auth", "strict", "--root-access-key-id", "AKIDROOT"], "has fewer than 8 characters"),
        (["--auth", "strict", "--root-secret-access-key", "a-secret"], "'' is not a key id"),
        (["--auth", "strict", "--key-file", "none.key"], "none.key does not exist: `openssl rand"),
        (["--host", "0.0.0.0"], "Add --auth strict, which admits only users with a key, or --insecure"),
        (["--host", "0.0.0.0", "--auth", "soft"], "With --host 0.0.0.0 other machines can reach the"),
        (["--auth", "soft", "--users", "missing.yaml"], "missing.yaml cannot be used"),
        (["--auth", "strict", "--users", "wrong.yaml"], "names no accounts"),
        (["--auth", "strict", "--users", "two.yaml"], "add --separate-accounts"),
        (["--auth", "perhaps"], "is not one of"),
    ],
)
def test_wrong_options_of_the_server(
    options: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wrong.yaml").write_text("accounts: {}")
    Path("two.yaml").write_text('accounts: {"000000000001": {}, "000000000002": {}}')
    outcome = CliRunner().invoke(main, ["serve", "--memory", "--port", "0", "--admin-port", "0", *options])
    assert outcome.exit_code != 0
    assert text in " ".join(outcome.output.split())


def test_the_server_of_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "users.json"
    file.write_bytes(orjson.dumps(USERS))
    with serving("--memory", "--auth", "strict", "--users", str(file), "--host", "0.0.0.0") as server:
        url = server.endpoint.replace("0.0.0.0", "127.0.0.1")
        assert client(url, "AKIDADMIN", "the-secret-of-admin").list_tables()["TableNames"] == []
        stranger = client(url, "AKIDNOBODY", "the-secret-of-admin")
        assert refusal(stranger.list_tables)[0] == "UnrecognizedClientException"
        reader = client(url, "AKIDREADER", "the-secret-of-reader")
        assert refusal(reader.list_tables)[0] == "AccessDeniedException"


def test_accounts_have_tables_of_their_own() -> None:
    both = {
        account: {
            "root": {"keys": [{"id": f"AKID{account}", "secret": "a-long-secret"}]},
        }
        for account in ("111111111111", "222222222222")
    }
    with Database.in_memory(settings=Settings(separate_accounts=True)) as database:
        guard(database, Gate(read({"accounts": both}), SystemClock().now, strict=True))
        with running(database) as url:
            first, second = (client(url, f"AKID{account}", "a-long-secret") for account in both)
            first.create_table(**table_of("own", "k"))
            assert first.list_tables()["TableNames"] == ["own"]
            assert second.list_tables()["TableNames"] == []
            arn = "arn:aws:dynamodb:us-east-1:111111111111:table/own"
            assert refusal(second.scan, TableName=arn)[0] == "AccessDeniedException"
