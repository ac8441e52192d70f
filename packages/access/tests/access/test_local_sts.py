"""STS in a block of a test: `hashrange.local` and `mock_aws` answer who asks, and give roles away."""

from __future__ import annotations

import os
from typing import Any

import boto3
import botocore.httpsession
import pytest
from botocore.exceptions import ClientError

import hashrange
from hashrange.testing import mock_aws


class LeftThisMachine(Exception):
    """A request was about to be sent."""


@pytest.fixture(autouse=True)
def _stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials that work, and no network."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIADEVELOPER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")

    def send(self: object, request: Any) -> None:
        raise LeftThisMachine(request.url)

    monkeypatch.setattr(botocore.httpsession.URLLib3Session, "send", send)


def refuses() -> Any:
    return hashrange.local(other_services="refuse")


def sts(access_key: str = "any") -> Any:
    """A client of STS."""
    return boto3.client(
        "sts", region_name="us-east-1", aws_access_key_id=access_key, aws_secret_access_key="any"
    )


@pytest.mark.parametrize("block", [hashrange.local, refuses, mock_aws])
def test_who_asks_is_answered_here(block: Any) -> None:
    with block():
        identity = sts("123456789012").get_caller_identity()
        assert (identity["Account"], identity["Arn"]) == ("123456789012", "arn:aws:iam::123456789012:root")
    with block(), hashrange.local(other_services="allow"), pytest.raises(LeftThisMachine):
        sts().get_caller_identity()


@pytest.mark.parametrize("block", [refuses, mock_aws])
def test_a_block_that_refuses_other_services_gives_roles_away(block: Any) -> None:
    role = "arn:aws:iam::210987654321:role/reader"
    with block():
        assumed = sts().assume_role(RoleArn=role, RoleSessionName="test")
        assert assumed["AssumedRoleUser"]["Arn"] == "arn:aws:sts::210987654321:assumed-role/reader/test"
        with pytest.raises(ClientError, match="InvalidAction"):
            sts().get_federation_token(Name="test")
    # Otherwise the role may be needed for a service that may be reached.
    with hashrange.local(), pytest.raises(LeftThisMachine):
        sts().assume_role(RoleArn=role, RoleSessionName="test")


def test_sts_needs_no_credentials_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    with hashrange.local():
        client = boto3.client("sts", region_name="us-east-1")
        assert client.get_caller_identity()["Account"] == "000000000000"
