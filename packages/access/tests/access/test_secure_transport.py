"""A policy may ask for TLS."""

from __future__ import annotations

from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

import certificates
from hashrange.clock import SystemClock
from hashrange.database import Database
from hashrange.server import running
from hashrange_access.judging.gate import Gate
from hashrange_access.judging.judging import guard
from hashrange_access.users import read


@pytest.mark.parametrize("secure", [True, False])
def test_policies_see_the_transport(tmp_path: Path, secure: bool) -> None:
    policy = {
        "Statement": {
            "Effect": "Allow",
            "Action": "*",
            "Resource": "*",
            "Condition": {"Bool": {"aws:SecureTransport": "true"}},
        }
    }
    keys = [{"id": "AKIDALICE", "secret": "the-secret-of-alice"}]
    users = read({"accounts": {"123456789012": {"users": {"alice": {"policies": [policy], "keys": keys}}}}})
    files = certificates.make(tmp_path)
    with Database.in_memory() as database:
        guard(database, Gate(users, SystemClock().now, strict=True, secure=secure))
        with running(database, certificates=files.certificates() if secure else None) as endpoint:
            alice = boto3.client(
                "dynamodb",
                endpoint_url=endpoint,
                region_name="us-east-1",
                aws_access_key_id="AKIDALICE",
                aws_secret_access_key="the-secret-of-alice",
                verify=str(files.ca),
                config=Config(retries={"total_max_attempts": 1}),
            )
            if secure:
                assert alice.list_tables()["TableNames"] == []
            else:
                with pytest.raises(ClientError, match="AccessDeniedException"):
                    alice.list_tables()
            alice.close()
