"""Requests to other services than DynamoDB in a block: which of them leave this machine, and how signed.

A request that gets past the handlers raises, so that none leaves this machine here either.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import botocore.httpsession
import botocore.session
import moto
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.stub import Stubber

import hashrange
from hashrange.testing import RequestStopped, mock_aws, scopes

CREDENTIALS = """
[default]
aws_access_key_id = AKIADEVELOPER
aws_secret_access_key = secret
[prod]
aws_access_key_id = AKIAPRODUCTION
aws_secret_access_key = secret
[assumed]
role_arn = arn:aws:iam::123456789012:role/admin
source_profile = prod
region = us-east-1
"""


class LeftThisMachine(Exception):
    """A request was about to be sent."""


@pytest.fixture(autouse=True)
def developer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine of a developer, with credentials that work, and without a network."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    (tmp_path / "credentials").write_text(CREDENTIALS)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    def send(self: object, request: Any) -> None:
        raise LeftThisMachine(request.url, request.headers.get("Authorization"))

    monkeypatch.setattr(botocore.httpsession.URLLib3Session, "send", send)


def deleting(client: Any) -> Callable[[], Any]:
    return partial(client.delete_object, Bucket="precious", Key="everything")


def emptying(resource: Any) -> Callable[[], Any]:
    return partial(resource.Bucket("precious").delete_objects, Delete={"Objects": [{"Key": "everything"}]})


MAKERS: dict[str, Callable[[], Callable[[], Any]]] = {
    "client": lambda: deleting(s3()),
    "resource": lambda: emptying(boto3.resource("s3")),
    "client of a session with a profile": lambda: deleting(boto3.Session(profile_name="prod").client("s3")),
    "resource of a session with a profile": lambda: emptying(
        boto3.Session(profile_name="prod").resource("s3")
    ),
    "client of a profile with a role": lambda: deleting(boto3.Session(profile_name="assumed").client("s3")),
    "client with a key": lambda: deleting(s3(aws_access_key_id="AKIAMINE", aws_secret_access_key="secret")),
    "unsigned client": lambda: deleting(s3(config=Config(signature_version=UNSIGNED))),
    "client of botocore": lambda: deleting(botocore.session.get_session().create_client("s3", "us-east-1")),
}


def s3(**options: Any) -> Any:
    return boto3.client("s3", region_name="us-east-1", **options)


def refuses() -> Any:
    return hashrange.local(other_services="refuse")


@pytest.mark.parametrize("block", [mock_aws, refuses])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_nothing_reaches_another_service(make: Callable[[], Callable[[], Any]], block: Any) -> None:
    before = make()
    with pytest.raises(LeftThisMachine):
        before()  # so the credentials have been found when the block begins
    with block():
        for call in (before, make()):
            with pytest.raises(RequestStopped, match=r"amazonaws\.com .*other_services"):
                call()
    with pytest.raises(LeftThisMachine):
        before()


@pytest.mark.parametrize(
    ("service", "call"),
    [
        ("sqs", "list_queues"),
        ("kms", "list_keys"),
        ("lambda", "list_functions"),
        ("iam", "list_users"),
    ],
)
@mock_aws
def test_no_service_but_dynamodb_is_reached(service: Any, call: str) -> None:
    with pytest.raises(RequestStopped):
        getattr(boto3.client(service, region_name="us-east-1"), call)()
    assert boto3.client("dynamodb", region_name="us-east-1").list_tables()["TableNames"] == []


def test_the_credentials_of_mock_aws_are_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAENVIRONMENT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    assert access_key(boto3) == "AKIAENVIRONMENT"  # the default session has found it now
    default = boto3.DEFAULT_SESSION
    with mock_aws():
        assert access_key(boto3) == access_key(boto3.Session()) == "testing"
        with mock_aws():
            assert access_key(boto3) == "testing"
        assert access_key(boto3) == "testing"
        assert os.environ["AWS_SESSION_TOKEN"] == "testing"
        assert access_key(boto3.Session(profile_name="prod")) == "AKIAPRODUCTION"
    assert boto3.DEFAULT_SESSION is default
    assert os.environ["AWS_ACCESS_KEY_ID"] == "AKIAENVIRONMENT"
    assert os.environ["AWS_SESSION_TOKEN"] == "token"


def test_a_default_session_that_is_made_in_mock_aws_does_not_outlive_it() -> None:
    with mock_aws():
        assert access_key(boto3) == "testing"
    assert access_key(boto3) == "AKIADEVELOPER"
    assert "AWS_ACCESS_KEY_ID" not in os.environ


def test_blocks_of_mock_aws_end_in_any_order() -> None:
    first, second = mock_aws(), mock_aws()
    first.start()
    second.start()
    first.stop()
    assert access_key(boto3) == "testing"
    second.stop()
    assert access_key(boto3) == "AKIADEVELOPER"


def access_key(session: Any) -> str:
    """The key with which a new client of `session` signs."""
    url = session.client("s3", region_name="us-east-1").generate_presigned_url(
        "get_object", Params={"Bucket": "b", "Key": "k"}
    )
    query = dict(pair.split("=") for pair in url.split("?")[1].split("&"))
    return str(query.get("AWSAccessKeyId") or query["X-Amz-Credential"].split("%2F")[0])


@pytest.mark.parametrize("order", ["moto first", "moto last"])
def test_what_moto_answers_passes(order: str) -> None:
    theirs, ours = moto.mock_aws(), mock_aws()
    outer, inner = (theirs, ours) if order == "moto first" else (ours, theirs)
    with outer, inner:
        s3().create_bucket(Bucket="mocked")
        assert [one["Name"] for one in s3().list_buckets()["Buckets"]] == ["mocked"]
        assert boto3.client("dynamodb", region_name="us-east-1").list_tables()["TableNames"] == []


@mock_aws
def test_what_a_stub_answers_passes() -> None:
    client = s3()
    with Stubber(client) as stub:
        stub.add_response("list_buckets", {"Buckets": [{"Name": "stubbed"}]})
        assert client.list_buckets()["Buckets"][0]["Name"] == "stubbed"


@pytest.mark.parametrize("order", ["moto first", "moto last"])
def test_what_moto_answers_for_sts_passes(order: str) -> None:
    theirs, ours = moto.mock_aws(), mock_aws()
    outer, inner = (theirs, ours) if order == "moto first" else (ours, theirs)
    with outer, inner:
        assert "moto" in boto3.client("sts", region_name="us-east-1").get_caller_identity()["Arn"]


@mock_aws
def test_requests_to_this_machine_pass() -> None:
    with pytest.raises(LeftThisMachine, match="localhost:4566"):
        s3(endpoint_url="http://localhost:4566").list_buckets()


def test_other_services_may_be_allowed() -> None:
    with mock_aws(other_services="allow"), pytest.raises(LeftThisMachine, match="Credential=testing/"):
        s3().list_buckets()
    with mock_aws(), hashrange.local(other_services="allow"), pytest.raises(LeftThisMachine):
        s3().list_buckets()


def test_an_inner_block_does_not_take_the_refusal_away() -> None:
    with mock_aws(), hashrange.local(), pytest.raises(RequestStopped):
        s3().list_buckets()
    assert scopes.other_services() == "allow"


def test_a_misspelt_choice_is_refused() -> None:
    block = hashrange.local(other_services="refused")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="'refused', and must be one of: stop, refuse, allow"), block:
        pass
