"""boto3 clients of a server, or of AWS, and what their errors mean. Works on AWS too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError  # noqa: A004
from botocore.parsers import ResponseParserError

_TEXT_MAX: Final = 500
SERVICE_ERRORS: Final = (BotoCoreError, ClientError, ResponseParserError)
"""The exceptions of boto3 for a service that refuses a request, cannot be reached, or is none."""

INVENTED: Final = ("hashrange", "hashrange")
"""Credentials for servers that accept any."""

# Temporary errors: the service is busy, or cannot be reached.
_TRANSIENT: Final = {
    "InternalServerError",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "Throttling",
    "ThrottlingException",
}


@dataclass(frozen=True, slots=True)
class Clients:
    """boto3 clients of the two services: ``dynamodb`` and ``dynamodbstreams``."""

    dynamodb: Any
    streams: Any


def connect(
    endpoint_url: str | None = None,
    region: str | None = None,
    *,
    profile: str | None = None,
    credentials: tuple[str, str] | None = None,
    only_aws: bool = False,
) -> Clients:
    """Clients of a server at `endpoint_url`, or of AWS; region and credentials as boto3 finds them.

    `profile` names a profile of the AWS CLI; `credentials` are an access key and its secret. With `only_aws`
    the endpoints in the environment and in the profile are ignored. If boto3 finds no credentials, a server
    at `endpoint_url` gets invented ones, because it accepts any. Raises the errors of `SERVICE_ERRORS`.
    """
    session = boto3.Session(region_name=region, profile_name=profile)
    settings: dict[str, Any] = {"retries": {"mode": "standard", "total_max_attempts": 4}}
    if only_aws:
        settings["ignore_configured_endpoint_urls"] = True
    options: dict[str, Any] = {"config": Config(max_pool_connections=64, **settings)}
    if endpoint_url is not None:
        options["endpoint_url"] = endpoint_url
        options["region_name"] = session.region_name or "us-east-1"
        if credentials is None and session.get_credentials() is None:
            credentials = INVENTED
    if credentials is not None:
        options["aws_access_key_id"], options["aws_secret_access_key"] = credentials
    return Clients(session.client("dynamodb", **options), session.client("dynamodbstreams", **options))


def is_transient(error: Exception) -> bool:
    """Whether the request may succeed if it is repeated later."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or error_code(error) in _TRANSIENT
    return isinstance(error, ConnectionError | HTTPClientError)


def error_code(error: Exception) -> str:
    """The code of an error answer of the service; "" for other errors."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""


def explain(error: Exception) -> str:
    """One line about an error."""
    if isinstance(error, ClientError):
        answered = error.response.get("Error", {})
        return f"{answered.get('Code', 'error')}: {answered.get('Message', '')}".rstrip(": ")
    return str(error)[:_TEXT_MAX] or type(error).__name__
