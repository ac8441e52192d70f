"""Requests as code that makes them: boto3, the AWS CLI, the AWS SDK for JavaScript."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Callable
from typing import Any, Final

import orjson

from hashrange.shapes.streams import OPERATIONS as STREAM_OPERATIONS
from hashrange_console.values import Raw, literal

_ANY_SECRET: Final = "any"
"""A secret key: the server checks none."""


def snippets(
    operation: str, request: dict[str, Any], endpoint: str, scope: str = ""
) -> list[tuple[str, str]]:
    """The languages' names and the code of a request. `scope` is that of its table: the account is the access
    key then, and the region is given."""
    return [
        ("boto3 (Python)", boto3(operation, request, endpoint, scope)),
        ("AWS CLI", aws_cli(operation, request, endpoint, scope)),
        ("AWS SDK for JavaScript v3", javascript(operation, request, endpoint, scope)),
    ]


def _service(operation: str) -> str:
    """The name of the service of an operation, in Python and on the command line."""
    return "dynamodbstreams" if operation in STREAM_OPERATIONS else "dynamodb"


def boto3(operation: str, request: dict[str, Any], endpoint: str, scope: str = "") -> str:
    """Python code of a request, for the client of boto3."""
    words = ("True", "False", "None")
    sent = _with_binary(request, lambda text: Raw(repr(base64.b64decode(text))))
    rows = [f"    {name}={literal(value, words=words, indent=4)},\n" for name, value in sent.items()]
    account, region = _parted(scope)
    given = {"endpoint_url": endpoint}
    if region:
        given["region_name"] = region
    if account:
        given |= {"aws_access_key_id": account, "aws_secret_access_key": _ANY_SECRET}
    arguments = ", ".join(f"{name}={literal(value, words=words)}" for name, value in given.items())
    return (
        "import boto3\n\n"
        f'client = boto3.client("{_service(operation)}", {arguments})\n'
        f"answer = client.{_snake(operation)}(\n{''.join(rows)})"
    )


def aws_cli(operation: str, request: dict[str, Any], endpoint: str, scope: str = "") -> str:
    """A command line of a request."""
    name = _snake(operation).replace("_", "-")
    sent = shlex.quote(orjson.dumps(request).decode())
    account, region = _parted(scope)
    secrets = f"AWS_ACCESS_KEY_ID={shlex.quote(account)} AWS_SECRET_ACCESS_KEY={_ANY_SECRET} \\\n"
    place = f" --region {shlex.quote(region)}" if region else ""
    return (
        f"{secrets if account else ''}aws {_service(operation)} {name} \\\n"
        f"  --endpoint-url {shlex.quote(endpoint)}{place} \\\n  --cli-input-json {sent}"
    )


def javascript(operation: str, request: dict[str, Any], endpoint: str, scope: str = "") -> str:
    """JavaScript code of a request."""
    words = ("true", "false", "null")
    sent = _with_binary(request, lambda text: Raw(f'Buffer.from("{text}", "base64")'))
    account, region = _parted(scope)
    client, package = "DynamoDBClient", "dynamodb"
    if operation in STREAM_OPERATIONS:
        client, package = "DynamoDBStreamsClient", "dynamodb-streams"
    given = [f"endpoint: {literal(endpoint, words=words)}"]
    if region:
        given.append(f"region: {literal(region, words=words)}")
    if account:
        secret = literal(_ANY_SECRET, words=words)
        key = literal(account, words=words)
        given.append(f"credentials: {{ accessKeyId: {key}, secretAccessKey: {secret} }}")
    return (
        f'import {{ {client}, {operation}Command }} from "@aws-sdk/client-{package}";\n\n'
        f"const client = new {client}({{ {', '.join(given)} }});\n"
        f"const answer = await client.send(new {operation}Command({literal(sent, words=words)}));"
    )


def _parted(scope: str) -> tuple[str, str]:
    """The account and the region of a scope, "" for what all share."""
    account, _, region = scope.replace("*", "").partition("/")
    return account, region


def _snake(operation: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()


def _with_binary(value: Any, made: Callable[[str], Raw]) -> Any:
    """A request whose binary values, which JSON has in base64, are what `made` makes of them. A map cannot
    be taken for a binary value, because its members are objects."""
    match value:
        case {"B": str(text)} if len(value) == 1:
            return {"B": made(text)}
        case {"BS": [str(), *_] as texts} if len(value) == 1:
            return {"BS": [made(str(text)) for text in texts]}
        case dict():
            return {name: _with_binary(content, made) for name, content in value.items()}
        case list():
            return [_with_binary(content, made) for content in value]
        case _:
            return value
