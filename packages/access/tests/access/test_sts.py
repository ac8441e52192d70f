"""STS on the port of the data: boto3's own client over HTTP, with and without users."""

from __future__ import annotations

import http.client
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import boto3
import orjson
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from hashrange.clock import SystemClock
from hashrange.database import Database
from hashrange.server import running
from hashrange.settings import Settings
from hashrange_access.directory import Directory
from hashrange_access.judging.gate import Gate
from hashrange_access.judging.judging import guard
from hashrange_access.keys import sealing
from hashrange_access.keys.keyring import Keyring
from hashrange_access.keys.sealing import Vault
from hashrange_access.policies.errors import PolicyError
from hashrange_access.sts import tokens
from hashrange_access.sts.tokens import Tokens
from hashrange_access.users import read

ACCOUNT, OTHER = "123456789012", "210987654321"
ROLE = f"arn:aws:iam::{ACCOUNT}:role"


def allow(*actions: str, resource: str = "*", **more: Any) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": resource, **more}
    return {"Version": "2012-10-17", "Statement": statement}


def trust(principal: str, *actions: str, **condition: Any) -> dict[str, Any]:
    statement: dict[str, Any] = {"Effect": "Allow", "Principal": {"AWS": principal}}
    statement["Action"] = list(actions or ("sts:AssumeRole",))
    return {"Version": "2012-10-17", "Statement": statement | ({"Condition": condition} if condition else {})}


def key(name: str) -> dict[str, Any]:
    return {"keys": [{"id": f"AKID{name.upper()}", "secret": f"the-secret-of-{name}"}]}


USERS: dict[str, Any] = {
    "accounts": {
        ACCOUNT: {
            "policies": {"list-only": allow("dynamodb:ListTables")},
            "users": {
                "alice": {"policies": [allow("sts:*", "dynamodb:*")], **key("alice")},
                "bob": key("bob"),
            },
            "roles": {
                # The account: its users need a policy of their own.
                "worker": {"policies": [allow("*")], "trust": trust(ACCOUNT), "tags": {"team": "red"}},
                # A user by his ARN needs none.
                "for-bob": {
                    "policies": [allow("dynamodb:*")],
                    "trust": trust(f"arn:aws:iam::{ACCOUNT}:user/bob"),
                    "max_session_duration": "7200",
                },
                "with-id": {
                    "trust": trust(ACCOUNT, StringEquals={"sts:ExternalId": "the-id"}),
                },
                "tagged": {
                    "policies": [
                        allow("*", Condition={"StringEquals": {"aws:PrincipalTag/team": "blue"}})
                    ],
                    "trust": trust(
                        ACCOUNT,
                        "sts:AssumeRole",
                        "sts:TagSession",
                        StringEquals={"aws:RequestTag/team": ["blue", "green"]},
                    ),
                },
                "untaggable": {"trust": trust(ACCOUNT)},
                "chained": {"policies": [allow("*")], "trust": trust(f"{ROLE}/worker")},
                "nobodys": {"policies": [allow("*")]},
                "not-me": {
                    "trust": {
                        "Statement": [
                            trust(ACCOUNT)["Statement"],
                            {
                                "Effect": "Deny",
                                "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:user/alice"},
                                "Action": "*",
                            },
                        ]
                    }
                },
                "abroad": {"policies": [allow("*")], "trust": trust(OTHER)},
            },
            "root": key("root"),
        },
        OTHER: {
            "users": {
                "carol": {"policies": [allow("sts:AssumeRole")], **key("carol")},
                "dave": key("dave"),
            }
        },
    }
}


class Site:
    """A server with users. `later` is how far its time is ahead of the machine's."""

    def __init__(self, vault: Vault, database: Database, *, strict: bool = True, users: Any = USERS) -> None:
        self.later = 0.0
        self.directory = Directory(read(users))
        now = SystemClock().now
        tokens = Tokens(vault, self.directory)
        self.keyring = Keyring(database.engine, vault, self.directory, now)
        self.gate = Gate(
            self.directory, lambda: now() + self.later, strict=strict, tokens=tokens, keyring=self.keyring
        )
        guard(database, self.gate)
        self.url = ""


@contextmanager
def site(vault: Vault | None = None, *, strict: bool = True, users: Any = USERS) -> Iterator[Site]:
    with Database.in_memory(settings=Settings(separate_accounts=True)) as database:
        made = Site(vault or sealing.in_memory(os.urandom), database, strict=strict, users=users)
        with running(database) as url:
            made.url = url
            yield made


@pytest.fixture
def server() -> Iterator[Site]:
    with site() as made:
        yield made


def client(service: Any, url: str, credentials: Any) -> Any:
    """A boto3 client of a user, or with the credentials that STS gave away."""
    if isinstance(credentials, str):
        credentials = {
            "AccessKeyId": f"AKID{credentials.upper()}",
            "SecretAccessKey": f"the-secret-of-{credentials}",
        }
    return boto3.client(
        service,
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=credentials["AccessKeyId"],
        aws_secret_access_key=credentials["SecretAccessKey"],
        aws_session_token=credentials.get("SessionToken"),
        config=Config(retries={"total_max_attempts": 1}, parameter_validation=False),
    )


def assume(server: Site, who: Any, role: str, **more: Any) -> Any:
    arn = role if role.startswith("arn:") else f"{ROLE}/{role}"
    sts = client("sts", server.url, who)
    return sts.assume_role(RoleArn=arn, **{"RoleSessionName": "test", **more})["Credentials"]


def refusal(call: Any, *given: Any, **named: Any) -> tuple[str, str, int]:
    with pytest.raises(ClientError) as raised:
        call(*given, **named)
    error, metadata = raised.value.response["Error"], raised.value.response["ResponseMetadata"]
    return error["Code"], error["Message"], metadata["HTTPStatusCode"]


def may_not_assume(who: str, role: str, action: str = "AssumeRole") -> tuple[str, str, int]:
    return (
        "AccessDenied",
        f"User: arn:aws:iam::{who} is not authorized to perform: sts:{action} on resource: {ROLE}/{role}",
        403,
    )


def test_who_am_i(server: Site) -> None:
    def who(credentials: Any) -> dict[str, Any]:
        answer = client("sts", server.url, credentials).get_caller_identity()
        assert answer.pop("ResponseMetadata")["RequestId"]
        return dict(answer)

    arn = f"arn:aws:iam::{ACCOUNT}"
    assert who("alice") == {"UserId": "alice", "Account": ACCOUNT, "Arn": f"{arn}:user/alice"}
    assert who("root") == {"UserId": ACCOUNT, "Account": ACCOUNT, "Arn": f"{arn}:root"}
    assert who(assume(server, "alice", "worker")) == {
        "UserId": "worker:test",
        "Account": ACCOUNT,
        "Arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/worker/test",
    }


@pytest.mark.parametrize(
    ("credentials", "code", "text", "status"),
    [
        ("nobody", "InvalidClientTokenId", "The security token included in the request is invalid.", 403),
        (
            {"AccessKeyId": "AKIDALICE", "SecretAccessKey": "wrong"},
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided.",
            403,
        ),
    ],
)
def test_wrong_credentials(server: Site, credentials: Any, code: str, text: str, status: int) -> None:
    error = refusal(client("sts", server.url, credentials).get_caller_identity)
    assert (error[0], error[2]) == (code, status)
    assert error[1].startswith(text)


def test_a_role_is_assumed_and_used(server: Site) -> None:
    sts = client("sts", server.url, "alice")
    answer = sts.assume_role(RoleArn=f"{ROLE}/worker", RoleSessionName="me@work")
    assert answer["AssumedRoleUser"] == {
        "AssumedRoleId": "worker:me@work",
        "Arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/worker/me@work",
    }
    credentials = answer["Credentials"]
    assert credentials["AccessKeyId"].startswith("ASIA")
    left = (credentials["Expiration"] - datetime.now(UTC)).total_seconds()
    assert 3_500 < left <= 3_600
    assert client("dynamodb", server.url, credentials).list_tables()["TableNames"] == []
    # The key is of no use without its token, or with another one.
    del credentials["SessionToken"]
    unknown = "UnrecognizedClientException"
    assert refusal(client("dynamodb", server.url, credentials).list_tables)[0] == unknown
    credentials["SessionToken"] = assume(server, "alice", "worker")["SessionToken"]
    assert refusal(client("dynamodb", server.url, credentials).list_tables)[0] == unknown


def test_who_may_assume_a_role(server: Site) -> None:
    assume(server, "bob", "for-bob")
    bob, alice = f"{ACCOUNT}:user/bob", f"{ACCOUNT}:user/alice"
    assert refusal(assume, server, "bob", "worker") == may_not_assume(bob, "worker")
    assert refusal(assume, server, "alice", "for-bob") == may_not_assume(alice, "for-bob")
    assert refusal(assume, server, "alice", "nobodys") == may_not_assume(alice, "nobodys")
    assert refusal(assume, server, "alice", "not-there") == may_not_assume(alice, "not-there")
    assert refusal(assume, server, "alice", "not-me") == may_not_assume(alice, "not-me")
    root = ("AccessDenied", "Roles may not be assumed by root accounts.", 403)
    assert refusal(assume, server, "root", "worker") == root


def test_a_role_of_another_account(server: Site) -> None:
    credentials = assume(server, "carol", "abroad")
    who = client("sts", server.url, credentials).get_caller_identity()
    assert who["Account"] == ACCOUNT
    # Both sides must allow it: Dave has no policy, and the other roles do not trust Carol's account.
    assert refusal(assume, server, "dave", "abroad") == may_not_assume(f"{OTHER}:user/dave", "abroad")
    assert refusal(assume, server, "carol", "worker") == may_not_assume(f"{OTHER}:user/carol", "worker")


def test_an_external_id(server: Site) -> None:
    assume(server, "alice", "with-id", ExternalId="the-id")
    refused = may_not_assume(f"{ACCOUNT}:user/alice", "with-id")
    assert refusal(assume, server, "alice", "with-id") == refused
    assert refusal(assume, server, "alice", "with-id", ExternalId="another") == refused


def test_session_tags(server: Site) -> None:
    alice = f"{ACCOUNT}:user/alice"
    tags = [{"Key": "team", "Value": "blue"}, {"Key": "floor", "Value": ""}]
    blue = assume(server, "alice", "tagged", Tags=tags)
    client("dynamodb", server.url, blue).list_tables()
    green = assume(server, "alice", "tagged", Tags=[{"Key": "team", "Value": "green"}])
    assert refusal(client("dynamodb", server.url, green).list_tables)[0] == "AccessDeniedException"
    refused = may_not_assume(alice, "tagged")
    assert refusal(assume, server, "alice", "tagged", Tags=[{"Key": "team", "Value": "red"}]) == refused
    assert refusal(assume, server, "alice", "tagged") == refused
    untaggable = may_not_assume(alice, "untaggable", "TagSession")
    assert refusal(assume, server, "alice", "untaggable", Tags=tags) == untaggable
    twice = [{"Key": "team", "Value": "blue"}, {"Key": "TEAM", "Value": "blue"}]
    assert refusal(assume, server, "alice", "tagged", Tags=twice)[0] == "InvalidParameterValue"


def test_session_policies_limit_a_session(server: Site) -> None:
    policy = orjson.dumps(allow("dynamodb:DescribeLimits")).decode()
    arns = [{"arn": f"arn:aws:iam::{ACCOUNT}:policy/list-only"}]

    def may(**limits: Any) -> list[bool]:
        dynamodb = client("dynamodb", server.url, assume(server, "alice", "worker", **limits))
        outcomes = []
        for call in (dynamodb.describe_limits, dynamodb.list_tables, dynamodb.describe_endpoints):
            try:
                call()
                outcomes.append(True)
            except ClientError as error:
                assert "because no session policy allows" in error.response["Error"]["Message"]
                outcomes.append(False)
        return outcomes

    assert may() == [True, True, True]
    assert may(Policy=policy) == [True, False, False]
    assert may(PolicyArns=arns) == [False, True, False]
    assert may(Policy=policy, PolicyArns=arns) == [True, True, False]


def test_a_session_whose_policies_have_gone_may_do_nothing(
    server: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A managed policy that is gone, or an inline one that cannot be read any more, may have had a Deny."""
    allowing = orjson.dumps(allow("*")).decode()
    arns = [{"arn": f"arn:aws:iam::{ACCOUNT}:policy/{name}"} for name in ("deny", "everything")]
    users = orjson.loads(orjson.dumps(USERS))
    deny = {"Statement": {"Effect": "Deny", "Action": "dynamodb:DeleteTable", "Resource": "*"}}
    kept = {"deny": deny, "everything": allow("*")}
    users["accounts"][ACCOUNT]["policies"].update(kept)
    server.directory.set_users(read(users))
    sessions = [
        client("dynamodb", server.url, assume(server, "alice", "worker", **limits))
        for limits in ({"PolicyArns": arns}, {"PolicyArns": arns, "Policy": allowing}, {"Policy": allowing})
    ]
    for dynamodb in sessions:
        dynamodb.list_tables()
    del users["accounts"][ACCOUNT]["policies"]["deny"]
    server.directory.set_users(read(users))
    for dynamodb in sessions[:2]:
        for call, sent in ((dynamodb.list_tables, {}), (dynamodb.delete_table, {"TableName": "none"})):
            code, text, _ = refusal(call, **sent)
            assert code == "AccessDeniedException"
            assert "with an explicit deny in a session policy" in text
    sessions[2].list_tables()

    def unreadable(document: str) -> Any:
        raise PolicyError("an element of a newer version")

    monkeypatch.setattr(tokens, "inline", unreadable)
    server.directory.set_users(read(users))  # (what was read before counts for these users no longer)
    assert refusal(sessions[2].list_tables)[0] == "AccessDeniedException"


def test_a_role_that_changes_changes_its_sessions(server: Site) -> None:
    dynamodb = client("dynamodb", server.url, assume(server, "alice", "worker"))
    dynamodb.list_tables()
    users = orjson.loads(orjson.dumps(USERS))
    users["accounts"][ACCOUNT]["roles"]["worker"]["policies"] = []
    server.directory.set_users(read(users))
    assert refusal(dynamodb.list_tables)[0] == "AccessDeniedException"
    del users["accounts"][ACCOUNT]["roles"]["worker"]
    server.directory.set_users(read(users))
    assert refusal(dynamodb.list_tables)[0] == "UnrecognizedClientException"


def test_a_role_may_assume_another_for_an_hour(server: Site) -> None:
    worker = assume(server, "alice", "worker")
    chained = assume(server, worker, "chained", DurationSeconds=3_600)
    who = client("sts", server.url, chained).get_caller_identity()
    assert who["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/chained/test"


def test_how_long_a_session_lasts(server: Site) -> None:
    bobs = assume(server, "bob", "for-bob", DurationSeconds=7_200)
    with_bob = client("dynamodb", server.url, bobs)
    with_bob.list_tables()
    code, text, _ = refusal(assume, server, "bob", "for-bob", DurationSeconds=7_201)
    assert (code, text) == (
        "ValidationError",
        "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.",
    )
    server.later = 7_201.0
    assert refusal(with_bob.list_tables)[0] == "ExpiredTokenException"
    assert refusal(client("sts", server.url, bobs).get_caller_identity)[0] == "ExpiredToken"


def test_a_chained_session_lasts_an_hour_at_most(server: Site) -> None:
    users = orjson.loads(orjson.dumps(USERS))
    users["accounts"][ACCOUNT]["roles"]["chained"]["max_session_duration"] = "7200"
    server.directory.set_users(read(users))
    worker = assume(server, "alice", "worker")
    code, text, _ = refusal(assume, server, worker, "chained", DurationSeconds=3_601)
    assert (code, text.endswith("for roles assumed by role chaining")) == ("ValidationError", True)


@pytest.mark.parametrize(
    ("given", "code", "text"),
    [
        (
            {"DurationSeconds": 899},
            "ValidationError",
            "1 validation error detected: Value '899' at 'durationSeconds' failed to satisfy constraint: "
            "Member must have value greater than or equal to 900",
        ),
        (
            {"RoleSessionName": "with space"},
            "ValidationError",
            "1 validation error detected: Value 'with space' at 'roleSessionName' failed to satisfy "
            r"constraint: Member must satisfy regular expression pattern: [\w+=,.@-]*",
        ),
        ({"RoleArn": "arn:aws:iam::1234:user/alice"}, "ValidationError", "1234:user/alice is invalid"),
        ({"Policy": "{"}, "MalformedPolicyDocument", "the session policy is not JSON"),
        ({"Policy": '{"Statement": []}'}, "MalformedPolicyDocument", "Statement must be"),
        (
            {"PolicyArns": [{"arn": f"arn:aws:iam::{ACCOUNT}:policy/none"}]},
            "ValidationError",
            f"the account {ACCOUNT} has no policy arn:aws:iam::{ACCOUNT}:policy/none",
        ),
        ({"SerialNumber": "arn:aws:iam::1:mfa/x"}, "ValidationError", "no MFA devices"),
        ({"SourceIdentity": "alice"}, "ValidationError", "no source identities"),
        ({"TransitiveTagKeys": ["team"]}, "ValidationError", "passes no tags on"),
    ],
)
def test_wrong_requests_for_a_role(server: Site, given: dict[str, Any], code: str, text: str) -> None:
    request = {"RoleArn": f"{ROLE}/worker", "RoleSessionName": "test", **given}
    error = refusal(client("sts", server.url, "alice").assume_role, **request)
    assert (error[0], error[2]) == (code, 400)
    assert text in error[1]


def test_a_user_gets_a_session_too(server: Site) -> None:
    credentials = client("sts", server.url, "alice").get_session_token(DurationSeconds=900)["Credentials"]
    dynamodb = client("dynamodb", server.url, credentials)
    dynamodb.list_tables()
    sts = client("sts", server.url, credentials)
    assert sts.get_caller_identity()["Arn"] == f"arn:aws:iam::{ACCOUNT}:user/alice"
    assert refusal(sts.get_session_token) == (
        "AccessDenied",
        "Cannot call GetSessionToken with session credentials",
        403,
    )
    server.later = 901.0
    assert refusal(dynamodb.list_tables)[0] == "ExpiredTokenException"


def test_a_session_ends_with_the_key_that_asked_for_it(server: Site) -> None:
    made, secret = server.keyring.create("alice", ACCOUNT)
    asked = {"AccessKeyId": made.id, "SecretAccessKey": secret}
    credentials = client("sts", server.url, asked).get_session_token()["Credentials"]
    dynamodb = client("dynamodb", server.url, credentials)
    dynamodb.list_tables()
    server.keyring.rotate(made.id, 600)
    dynamodb.list_tables()
    server.later = 601.0
    assert refusal(dynamodb.list_tables)[0] == "ExpiredTokenException"
    server.later = 0.0
    server.keyring.delete(made.id)
    assert refusal(dynamodb.list_tables)[0] == "UnrecognizedClientException"


def test_a_session_counts_on_all_servers_with_the_key_file(tmp_path: Path) -> None:
    path = tmp_path / "access.key"
    first, second = (sealing.in_file(path, os.urandom, may_make=True) for _ in range(2))
    with site(first) as one, site(second) as two, site() as stranger:
        credentials = assume(one, "alice", "worker")
        for server in (one, two):
            client("dynamodb", server.url, credentials).list_tables()
        error = refusal(client("dynamodb", stranger.url, credentials).list_tables)
        assert error[0] == "UnrecognizedClientException"


def test_a_server_without_a_key_file_gives_no_sessions_away() -> None:
    with site(sealing.missing("it needs --key-file")) as server:
        assert refusal(assume, server, "alice", "worker") == (
            "AccessDenied",
            "This server issues no sessions: it needs --key-file",
            403,
        )
        client("sts", server.url, "alice").get_caller_identity()


def test_a_soft_server_answers_what_strict_would_refuse(caplog: pytest.LogCaptureFixture) -> None:
    with site(strict=False) as server:
        assert client("sts", server.url, "alice").get_caller_identity()["Arn"].endswith(":user/alice")
        who = client("sts", server.url, "nobody").get_caller_identity()
        assert who["Arn"] == "arn:aws:iam::000000000000:root"
        assert "strict would refuse a request" in caplog.text
        assume(server, "bob", "worker")


@pytest.fixture
def unguarded() -> Iterator[str]:
    with Database.in_memory() as database, running(database) as url:
        yield url


def test_without_users_everybody_is_the_root_user_of_his_account(unguarded: str) -> None:
    def sts(access_key: str) -> Any:
        return client("sts", unguarded, {"AccessKeyId": access_key, "SecretAccessKey": "any"})

    assert sts("any").get_caller_identity()["Arn"] == "arn:aws:iam::000000000000:root"
    assert sts(ACCOUNT).get_caller_identity()["Arn"] == f"arn:aws:iam::{ACCOUNT}:root"
    answer = sts("any").assume_role(RoleArn=f"arn:aws:iam::{OTHER}:role/path/any", RoleSessionName="test")
    assert answer["AssumedRoleUser"]["Arn"] == f"arn:aws:sts::{OTHER}:assumed-role/any/test"
    assert client("dynamodb", unguarded, answer["Credentials"]).list_tables()["TableNames"] == []
    who = client("sts", unguarded, answer["Credentials"]).get_caller_identity()
    assert who["Account"] == OTHER
    token = sts(ACCOUNT).get_session_token()["Credentials"]
    assert client("sts", unguarded, token).get_caller_identity()["Account"] == ACCOUNT


def posted(url: str, body: bytes, **headers: str) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    kind = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    connection.request("POST", "/", body, {**kind, **headers})
    answer = connection.getresponse()
    found = answer.status, answer.getheader("Content-Type", ""), answer.read()
    connection.close()
    return found


def test_an_error_in_its_wire_form(server: Site, unguarded: str) -> None:
    form = urlencode({"Action": "GetCallerIdentity", "Version": "2011-06-15"}).encode()
    for url in (server.url, unguarded):
        status, kind, body = posted(url, form)
        assert (status, kind) == (403, "text/xml")
        assert body.startswith(b'<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error>')
        assert b"<Type>Sender</Type><Code>MissingAuthenticationToken</Code>" in body
        assert b"</Error><RequestId>" in body


def test_an_unknown_action(unguarded: str) -> None:
    form = urlencode({"Action": "GetFederationToken", "Version": "2011-06-15"}).encode()
    status, _, body = posted(unguarded, form)
    assert status == 400
    assert b"<Code>InvalidAction</Code>" in body
    assert b"Could not find operation GetFederationToken for version 2011-06-15" in body


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"Action=ListQueues&Version=2012-11-05",
        b"Version=2011-06-15",
        b"\xff\xfe",
        b"Action=GetCallerIdentity&Version=2011-06-15" + b"&a=1" * 1_000,
        b"Action=GetCallerIdentity&Version=2011-06-15&a=" + b"x" * 300_000,
    ],
)
def test_other_forms_are_refused_as_before(unguarded: str, body: bytes) -> None:
    assert posted(unguarded, body)[::2] == (404, b"<UnknownOperationException/>\n")
