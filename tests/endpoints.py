"""Which DynamoDB the black-box tests run against, and how boto3 reaches it.

`HASHRANGE_TEST_ENDPOINT=http://host:port` names another implementation, `HASHRANGE_TEST_ENDPOINT=aws` the
real one, in the region and with the credentials that the environment gives.
"""

from __future__ import annotations

import os
from typing import Any

from botocore.config import Config

REGION = "us-east-1"
OTHER_ENDPOINT = os.environ.get("HASHRANGE_TEST_ENDPOINT")
ON_AWS = OTHER_ENDPOINT == "aws"
SOON: Any = {} if OTHER_ENDPOINT else {"Delay": 0.05, "MaxAttempts": 1200}
"""How often waiters ask: for a minute, or others as the SDK does."""


def connection(endpoint: str) -> dict[str, Any]:
    """The arguments of `boto3.client` and `boto3.resource` that reach `endpoint`.

    One attempt only, so that a test sees the answer that the server gave; on AWS the usual retries.
    """
    if ON_AWS:
        return {"endpoint_url": endpoint, "region_name": os.environ["AWS_DEFAULT_REGION"]}
    return {
        "endpoint_url": endpoint,
        "region_name": REGION,
        "aws_access_key_id": "any",
        "aws_secret_access_key": "any",
        "config": Config(retries={"total_max_attempts": 1}, max_pool_connections=64),
    }
