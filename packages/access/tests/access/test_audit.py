"""The audit log: what it says, what it never says, and what it shows of a server that was killed."""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import orjson
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.clock import SystemClock
from hashrange.database import Database
from hashrange.server import running
from hashrange_access.audit import log
from hashrange_access.audit.log import AuditError, AuditLog
from hashrange_access.commands.serving import opened_log
from hashrange_access.judging.gate import Gate
from hashrange_access.judging.judging import guard
from hashrange_access.users import read
from serving import serving
from worlds import table_of

SECRET = "rosebud"
ACCOUNT = "123456789012"
TABLE = table_of("scores", "user, number:N")
KEY = {"user": {"S": SECRET}, "number": {"N": "7"}}
ITEM = KEY | {"text": {"S": SECRET}, "flag": {"BOOL": True}}
USERS = {
    "accounts": {
        ACCOUNT: {
            "users": {
                "alice": {
                    "policies": [{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}],
                    "keys": [{"id": "AKIDALICE", "secret": "the-secret-of-alice"}],
                },
                "bob": {"keys": [{"id": "AKIDBOB", "secret": "the-secret-of-bob"}]},
            }
        }
    }
}


def hashed(key: Any) -> str:
    """The hash as packages/access/docs/access.md describes it."""
    return hashlib.sha256(orjson.dumps(dict(sorted(key.items())))).hexdigest()


def client(endpoint: str, key: str = "AKIDALICE", secret: str = "the-secret-of-alice") -> Any:
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        config=Config(retries={"total_max_attempts": 1}),
    )


def entries(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def requests(path: Path) -> list[dict[str, Any]]:
    return [entry for entry in entries(path) if entry["event"] == "request"]


def opened(path: Path, database: Database | None = None, **more: Any) -> AuditLog:
    """A log, which must be closed."""
    given = {"audit_log": path, "audit_log_bytes": 1_000_000, "audit_log_files": 3, **more}
    if database is not None:
        return opened_log(given, database)
    made = AuditLog(
        path,
        lambda: 1_767_225_600.0,
        lambda table, caller: None,
        bytes_max=given["audit_log_bytes"],
        files_max=given["audit_log_files"],
    )
    made.open("1.0")
    return made


@contextmanager
def audited(path: Path, auth: str, admin: Any = None) -> Iterator[str]:
    """A server with a log, which is complete when the block has ended."""
    with Database.in_memory() as database:
        if auth != "off":
            guard(database, Gate(read(USERS), SystemClock().now, strict=auth == "strict"))
        audit = opened(path, database)
        try:
            with running(database, audit=audit, admin=admin) as endpoint:
                yield endpoint
        finally:
            audit.close()


def test_who_did_what_and_what_came_of_it(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with audited(path, "strict") as endpoint:
        alice = client(endpoint)
        alice.create_table(**TABLE)
        answer = alice.put_item(TableName="scores", Item=ITEM)
        alice.get_item(TableName="scores", Key=KEY)
        with pytest.raises(ClientError, match="ConditionalCheckFailed"):
            alice.delete_item(
                TableName="scores", Key=KEY, ConditionExpression="attribute_not_exists(#t)",
                ExpressionAttributeNames={"#t": "text"},
            )  # fmt: skip
        with pytest.raises(ClientError, match="AccessDenied"):
            client(endpoint, "AKIDBOB", "the-secret-of-bob").scan(TableName="scores")
        with pytest.raises(ClientError, match="InvalidSignature"):
            client(endpoint, "AKIDBOB", "not-the-secret-of-bob").scan(TableName="scores")
        with pytest.raises(ClientError, match="UnrecognizedClient"):
            client(endpoint, "AKIDNOBODY").list_tables()
    alice_is = {
        "key": "AKIDALICE",
        "account": ACCOUNT,
        "arn": f"arn:aws:iam::{ACCOUNT}:user/alice",
        "verified": True,
    }
    on = [{"table": "scores", "keys": [hashed(KEY)]}]
    found = requests(path)
    seen = [(e["operation"], e["on"], e["decision"], e["result"]) for e in found]
    assert seen == [
        ("CreateTable", [{"table": "scores", "keys": []}], "allowed", "ok"),
        ("PutItem", on, "allowed", "ok"),
        ("GetItem", on, "allowed", "ok"),
        ("DeleteItem", on, "allowed", "ConditionalCheckFailedException"),
        ("Scan", [{"table": "scores", "keys": []}], "denied", "AccessDeniedException"),
        ("Scan", [], "denied", "InvalidSignatureException"),
        ("ListTables", [], "denied", "UnrecognizedClientException"),
    ]
    assert [entry["who"] for entry in found[:4]] == [alice_is] * 4
    assert found[4]["who"]["arn"] == f"arn:aws:iam::{ACCOUNT}:user/bob"
    assert found[5]["who"] == {"key": "AKIDBOB", "account": "", "verified": False}
    assert {entry["source"] for entry in found} == {"127.0.0.1"}
    assert found[1]["request_id"] == answer["ResponseMetadata"]["RequestId"]
    text = path.read_text()
    for secret in (SECRET, "the-secret-of", "Signature="):
        assert secret not in text
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("auth", ["off", "soft"])
def test_who_is_not_verified(tmp_path: Path, auth: str) -> None:
    path = tmp_path / "audit.jsonl"
    with audited(path, auth) as endpoint:
        client(endpoint, "AKIDNOBODY", "anything").list_tables()
    (entry,) = requests(path)
    assert entry["who"] == {"key": "AKIDNOBODY", "account": "000000000000", "verified": False}
    assert (entry["decision"], entry["result"]) == ("unsigned", "ok")


def test_the_keys_of_all_kinds_of_requests(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    others = [KEY | {"number": {"N": str(number)}} for number in (1, 2)]
    with audited(path, "off") as endpoint:
        dynamodb = client(endpoint)
        dynamodb.create_table(**TABLE)
        puts = [{"PutRequest": {"Item": ITEM | key}} for key in others]
        dynamodb.batch_write_item(RequestItems={"scores": [*puts, {"DeleteRequest": {"Key": KEY}}]})
        dynamodb.batch_get_item(RequestItems={"scores": {"Keys": others}})
        update = {"TableName": "scores", "Key": KEY, "UpdateExpression": "SET a = :a"}
        update["ExpressionAttributeValues"] = {":a": {"S": SECRET}}
        put = {"TableName": "scores", "Item": ITEM | others[0]}
        dynamodb.transact_write_items(TransactItems=[{"Put": put}, {"Update": update}])
        dynamodb.query(
            TableName="scores",
            KeyConditionExpression="#u = :u",
            ExpressionAttributeNames={"#u": "user"},
            ExpressionAttributeValues={":u": {"S": SECRET}},
        )
        dynamodb.execute_statement(Statement=f"SELECT * FROM scores WHERE \"user\" = '{SECRET}'")
        dynamodb.put_item(TableName="scores", Item=ITEM | {"text": {"S": "x" * 200_000}})  # on a thread
        dynamodb.get_item(TableName="scores", Key=KEY | {"number": {"N": "007.0"}})
        with pytest.raises(ClientError, match="ValidationException"):
            dynamodb.put_item(TableName="scores", Item={"user": {"N": "1"}})
        with pytest.raises(ClientError, match="ResourceNotFound"):
            dynamodb.put_item(TableName="nowhere", Item=ITEM)
    keys = [entry["on"][0]["keys"] for entry in requests(path)]
    first, second = map(hashed, others)
    assert keys == [
        [],
        [first, second, hashed(KEY)],
        [first, second],
        [first, hashed(KEY)],
        [hashed({"user": {"S": SECRET}})],
        [],
        [hashed(KEY)],
        [hashed(KEY)],
        [hashed({"user": {"N": "1"}})],
        [],
    ]
    assert SECRET not in path.read_text()


def test_requests_that_are_no_requests(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with audited(path, "off") as endpoint:
        connection = http.client.HTTPConnection(urlsplit(endpoint).netloc)
        headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "DynamoDB_20120810.GetItem"}
        for method, target, body in (
            ("GET", "/", ""),
            ("POST", "/", '{"TableName": 5}'),
            ("POST", "/", "no JSON"),
            ("POST", "/elsewhere", "{}"),
        ):
            connection.request(method, target, body, headers)
            connection.getresponse().read()
        connection.close()
    found = [(entry["operation"], entry["decision"], entry["result"]) for entry in requests(path)]
    assert found == [
        ("GetItem", "denied", "MissingAuthenticationTokenException"),
        ("GetItem", "unsigned", "SerializationException"),
        ("GetItem", "unsigned", "UnknownOperationException"),
    ]


def test_changes_on_the_admin_plane(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    token = "0123456789abcdef"
    admin = bind_admin(0, token=token)
    with audited(path, "off", admin) as _:
        connection = http.client.HTTPConnection("127.0.0.1", admin.port)
        body = orjson.dumps({"rule": "PutItem nth=1 throttle"})
        for given, path_, method in ((token, "/v1/faults", "POST"), ("wrong", "/v1/faults", "POST")):
            headers = {"Authorization": f"Bearer {given}", "Content-Type": "application/json"}
            connection.request(method, path_, body, headers)
            connection.getresponse().read()
        connection.request("GET", "/v1/faults", headers={"Authorization": f"Bearer {token}"})
        connection.getresponse().read()
        connection.close()
    found = [entry for entry in entries(path) if entry["event"] == "admin"]
    assert [(e["operation"], e["who"]["verified"], e["decision"], e["result"]) for e in found] == [
        ("POST /v1/faults", True, "allowed", 200),
        ("POST /v1/faults", False, "denied", 401),
    ]
    assert {entry["source"] for entry in found} == {"127.0.0.1"}
    assert token not in path.read_text()


# -- Files and starts --------------------------------------------------------------------------------------


def numbers(log_: AuditLog, *values: int) -> None:
    for value in values:
        log_.event(event="number", value=value)


def test_the_log_goes_on_over_files_and_starts(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    for start in range(6):
        held = opened(path, audit_log_bytes=250)
        numbers(held, start)
        held.close()
    files = sorted(tmp_path.iterdir(), reverse=True)
    assert [file.name for file in files] == ["audit.jsonl.2", "audit.jsonl.1", "audit.jsonl"]
    assert all(file.stat().st_size <= 250 for file in files)
    found = [entry for file in files for entry in entries(file)]
    whole = [
        (event, start if event == "number" else None)
        for start in range(6)
        for event in ("started", "number", "stopped")
    ]
    assert [(entry["event"], entry.get("value")) for entry in found] == whole[-len(found) :]
    assert not any("unclean" in entry for entry in found)


def test_a_file_is_closed_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows renames no open file."""
    path = tmp_path / "audit.jsonl"
    held = opened(path, audit_log_bytes=150)
    replace = os.replace

    def replaced(source: Path, target: Path) -> None:
        assert held._file is None
        replace(source, target)

    monkeypatch.setattr(os, "replace", replaced)
    numbers(held, *range(5))
    held.close()
    assert held.problem == ""
    assert (tmp_path / "audit.jsonl.1").exists()


def test_a_start_after_a_kill_says_that_lines_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    opened(path).close()
    whole = path.read_bytes()
    started, stopped = whole.splitlines(keepends=True)
    begun = []
    for left in (whole, started, whole + b'{"time":"2026', b'{"ti', b""):
        path.write_bytes(left)
        opened(path).close()
        assert path.read_bytes().startswith(left[: left.rfind(b"\n") + 1])
        begun.append(entries(path)[-2].get("unclean", False))
    assert begun == [False, True, True, True, False]
    path.write_bytes(b"")
    (tmp_path / "audit.jsonl.1").write_bytes(stopped)
    opened(path).close()
    assert entries(path)[0]["unclean"]


def test_lines_that_waited_for_a_full_disk_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    monkeypatch.setattr(log, "_RETRY_SECONDS", 0.001)
    held = opened(path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full_disk)
        numbers(held, 1, 2, 3)
        while not held.problem:
            pass
        left = path.read_bytes()  # what is there if the server is killed now
    held.close()
    path.write_bytes(left)
    opened(path).close()
    assert [(entry["event"], entry.get("unclean")) for entry in entries(path)] == [
        ("started", None), ("started", True), ("stopped", None),
    ]  # fmt: skip


def full_disk(descriptor: int, text: Any) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_another_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "novel.txt"
    for text in ("once upon a time", "once\nupon a time"):
        path.write_text(text)
        with pytest.raises(AuditError, match="move the file away"):
            opened(path)
        assert path.read_text() == text


def test_two_servers_do_not_share_a_file(tmp_path: Path) -> None:
    held = opened(tmp_path / "audit.jsonl")
    with pytest.raises(AuditError, match="another server writes to"):
        opened(tmp_path / "audit.jsonl")
    held.close()


# -- A disk that takes nothing, and a queue that is full ---------------------------------------------------


def test_what_the_disk_did_not_take_is_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audit.jsonl"
    monkeypatch.setattr(log, "_RETRY_SECONDS", 0.001)
    write = os.write
    tries: list[int] = []

    def full(descriptor: int, text: Any) -> int:
        tries.append(len(text))
        if len(tries) % 2:
            return write(descriptor, text[:7])
        if len(tries) < 8:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, text)

    held = opened(path)
    monkeypatch.setattr(os, "write", full)
    numbers(held, 1, 2, 3)
    while len(tries) < 6:
        pass
    assert "No space left on device" in held.problem
    while held.problem:
        pass
    monkeypatch.undo()
    held.close()
    assert [entry.get("value") for entry in entries(path)] == [None, 1, 2, 3, None]
    assert held.lost == 0


def test_what_has_no_room_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audit.jsonl"
    held = opened(path)
    monkeypatch.setattr(log, "ENTRIES_MAX", 0)
    numbers(held, 1, 2)
    monkeypatch.undo()
    numbers(held, 3)
    held.close()
    assert held.lost == 2
    found = entries(path)
    assert [entry["lost"] for entry in found if entry["event"] == "lost"] == [2]


def test_operators_see_that_the_log_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = bind_admin(0)

    def ask(at: str) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", admin.port)
        connection.request("GET", at)
        try:
            return connection.getresponse().read()
        finally:
            connection.close()

    with Database.in_memory() as database:
        audit = opened(tmp_path / "audit.jsonl", database)
        with running(database, audit=audit, admin=admin) as endpoint:
            assert orjson.loads(ask("/health"))["status"] == "ok"
            assert b"hashrange_audit_failing 0" in ask("/metrics")
            audit.problem, audit.lost = "no room", 7
            shown = orjson.loads(ask("/health"))
            assert shown["status"] == "degraded"
            assert shown["audit"] == {"problem": "no room", "lost_entries": 7, "incomplete_entries": 0}
            text = ask("/metrics")
            assert b"hashrange_audit_failing 1" in text
            assert b"hashrange_audit_lost_total 7" in text
            assert client(endpoint).list_tables()["TableNames"] == []
            audit.problem = ""
        audit.close()


# -- The command line --------------------------------------------------------------------------------------


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["audit", *arguments])


def test_the_hash_of_a_key(tmp_path: Path) -> None:
    assert run("hash", '{"user": {"S": "rosebud"}, "number": {"N": "7"}}').output.strip() == hashed(KEY)
    assert run("hash", '{"user": "rosebud", "number": 7}').output.strip() == hashed(KEY)
    assert "is not JSON" in run("hash", "{").output
    assert "'5' is not a key" in run("hash", "5").output


def test_the_server_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with serving("--memory", "--audit-log", str(path)) as server:
        client(server.endpoint).list_tables()
    assert [entry["event"] for entry in entries(path)] == ["started", "request", "stopped"]
    outcome = CliRunner().invoke(main, ["serve", "--memory", "--port", "0", "--audit-log", str(tmp_path)])
    assert outcome.exit_code == 2


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("Query", {"TableName": "t", "IndexName": ["x"]}),
    ("ImportTable", {"TableCreationParameters": {"TableName": [None]}}),
    ("GetItem", {"TableName": "t", "Key": {"\u0000": {"S": "x"}}}),
    ("BatchGetItem", {"RequestItems": {"t": {"Keys": [[None]]}}}),
    ("ExecuteStatement", {"Statement": [None]}),
]


@pytest.mark.parametrize("auth", [[], ["--auth", "soft"], ["--auth", "strict"]])
def test_a_malformed_request_has_its_line_and_the_server_goes_on(tmp_path: Path, auth: list[str]) -> None:
    path, users = tmp_path / "audit.jsonl", tmp_path / "users.json"
    users.write_bytes(orjson.dumps(USERS))
    given = [*auth, "--users", str(users)] if auth else []
    with serving("--memory", "--audit-log", str(path), *given) as server:
        for operation, request in WRONG:
            assert status_of(server.endpoint, operation, request) == 400
        assert status_of(server.endpoint, "ListTables", {}) == (400 if "strict" in auth else 200)
    found = requests(path)
    assert [entry["operation"] for entry in found] == [*[operation for operation, _ in WRONG], "ListTables"]
    assert not any("incomplete" in entry for entry in found)


def status_of(endpoint: str, operation: str, request: dict[str, Any]) -> int:
    """The status of a request of a user without rights."""
    headers = {"X-Amz-Target": f"DynamoDB_20120810.{operation}", "Content-Type": "application/x-amz-json-1.0"}
    asked = AWSRequest("POST", endpoint, headers, orjson.dumps(request))
    SigV4Auth(Credentials("AKIDBOB", "the-secret-of-bob"), "dynamodb", "us-east-1").add_auth(asked)
    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=30)
    connection.request("POST", "/", asked.body, dict(asked.headers.items()))
    try:
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_line_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    held = opened(path)
    held.event(event="admin", operation="\ud800")
    numbers(held, 1)
    held.close()
    found = entries(path)
    assert [entry["event"] for entry in found] == ["started", "admin", "number", "stopped"]
    assert found[1]["incomplete"] == "TypeError"
    assert held.incomplete == 1


def test_the_thread_of_the_log_outlives_what_nothing_foresees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    monkeypatch.setattr(log, "_RETRY_SECONDS", 0.001)
    held = opened(path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda descriptor: 1 // 0)
        numbers(held, 1)
        while not held.problem:
            pass
    held.close()
    assert [entry["event"] for entry in entries(path)] == ["started", "number", "stopped"]


def test_a_server_does_not_start_without_its_log(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "audit.jsonl"
    outcome = CliRunner().invoke(main, ["serve", "--memory", "--port", "0", "--audit-log", str(path)])
    assert outcome.exit_code == 1
    assert "cannot be written: [Errno 2]" in outcome.output
