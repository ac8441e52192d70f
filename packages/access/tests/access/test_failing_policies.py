"""Where policies only look on, requests go on when judging fails; where policies refuse, requests fail."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from hashrange.clock import SystemClock
from hashrange.database import Database
from hashrange.server import running
from hashrange_access.judging import judge, judging
from hashrange_access.judging.gate import Gate
from hashrange_access.judging.judging import guard
from hashrange_access.signatures import Verifier
from hashrange_access.users import read
from watched import fail

USER = {"keys": [{"id": "AKIDU", "secret": "secret-of-u"}]}
USERS = read({"accounts": {"000000000000": {"users": {"u": USER}}}})


@pytest.mark.parametrize(
    ("holder", "part"), [(Verifier, "verify"), (judging, "acts"), (judge, "evaluate")]
)
@pytest.mark.parametrize(("strict", "status"), [(False, 200), (True, 500)])
def test_policies_that_only_look_on_refuse_nothing_when_they_fail(
    holder: object,
    part: str,
    strict: bool,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Database.in_memory() as database:
        guard(database, Gate(USERS, SystemClock().now, strict=strict))
        monkeypatch.setattr(holder, part, fail)
        with running(database) as endpoint:
            assert status_of(endpoint) == status
    assert "ZeroDivisionError" in caplog.text


def status_of(endpoint: str) -> int:
    """The status of a proper request that is signed genuinely."""
    client: Any = boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="AKIDU",
        aws_secret_access_key="secret-of-u",
        config=Config(retries={"total_max_attempts": 1}),
    )
    try:
        status: int = client.describe_limits()["ResponseMetadata"]["HTTPStatusCode"]
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    client.close()
    return status
