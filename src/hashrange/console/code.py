"""Requests as code that makes them: boto3, the AWS CLI, the AWS SDK for JavaScript."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Callable
from typing import Any

import orjson

from hashrange.console.shown import Raw, literal


def snippets(operation: str, request: dict[str, Any], endpoint: str) -> list[tuple[str, str]]:
    """The languages' names and the code of a request."""
    return [
        ("boto3 (Python)", boto3(operation, request, endpoint)),
        ("AWS CLI", aws_cli(operation, request, endpoint)),
        ("AWS SDK for JavaScript v3", javascript(operation, request, endpoint)),
    ]


def boto3(operation: str, request: dict[str, Any], endpoint: str) -> str:
    """Python code of a request, for the client of boto3."""
    words = ("True", "False", "None")
    sent = _with_binary(request, lambda text: Raw(repr(base64.b64decode(text))))
    rows = [f"    {name}={literal(value, words=words, indent=4)},\n" for name, value in sent.items()]
    return (
        "import boto3\n\n"
        f"client = boto3.client(\"dynamodb\", endpoint_url={literal(endpoint, words=words)})\n"
        f"answer = client.{_snake(operation)}(\n{''.join(rows)})"
    )


def aws_cli(operation: str, request: dict[str, Any], endpoint: str) -> str:
    """A command line of a request."""
    name = _snake(operation).replace("_", "-")
    sent = shlex.quote(orjson.dumps(request).decode())
    return f"aws dynamodb {name} \\\n  --endpoint-url {shlex.quote(endpoint)} \\\n  --cli-input-json {sent}"


def javascript(operation: str, request: dict[str, Any], endpoint: str) -> str:
    """JavaScript code of a request."""
    words = ("true", "false", "null")
    sent = _with_binary(request, lambda text: Raw(f'Buffer.from("{text}", "base64")'))
    return (
        f'import {{ DynamoDBClient, {operation}Command }} from "@aws-sdk/client-dynamodb";\n\n'
        f"const client = new DynamoDBClient({{ endpoint: {literal(endpoint, words=words)} }});\n"
        f"const answer = await client.send(new {operation}Command({literal(sent, words=words)}));"
    )


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
            return {name: _with_binary(one, made) for name, one in value.items()}
        case list():
            return [_with_binary(one, made) for one in value]
        case _:
            return value
