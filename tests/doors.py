"""The two ways of a request's bytes to a database: over HTTP, and in process as botocore sends them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import orjson
from botocore.awsrequest import AWSPreparedRequest

from hashrange.client.transport import answer
from hashrange.database import Caller, Database
from hashrange.limits import MESSAGE_CHARS_MAX

Door = Callable[[str, bytes], tuple[int, bytes]]

ENVELOPE_BYTES = 1_000
STREAMS_OPERATIONS = frozenset(("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"))


def target_of(operation: str) -> str:
    """The X-Amz-Target of an operation."""
    service = "DynamoDBStreams" if operation in STREAMS_OPERATIONS else "DynamoDB"
    return f"{service}_20120810.{operation}"


def over_http(endpoint: str) -> Door:
    def send(operation: str, body: bytes) -> tuple[int, bytes]:
        address = urlsplit(endpoint)
        assert address.hostname is not None
        connection = HTTPConnection(address.hostname, address.port)
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": target_of(operation),
            "X-Amz-Date": "20260101T000000Z",
            "Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, "
            "SignedHeaders=host, Signature=0a",
        }
        connection.request("POST", "/", body, headers)
        response = connection.getresponse()
        answered = response.status, response.read()
        connection.close()
        return answered

    return send


def in_process(database: Database) -> Door:
    transport = partial(answer, database, caller=Caller())

    def send(operation: str, body: bytes) -> tuple[int, bytes]:
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": target_of(operation),
        }
        request = AWSPreparedRequest("POST", "http://hashrange.invalid/", headers, body, False)  # type: ignore[arg-type]
        answers = []

        def work() -> None:
            answered = transport(request)
            answers.append((answered.status_code, bytes(answered.content)))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return answers[0]

    return send


def outcome(door: Door, operation: str, request: Any) -> str:
    """The error's code and text, or "OK"."""
    body = request if isinstance(request, bytes) else written(request)
    status, answer = door(operation, body)
    assert status in (200, 400), answer[:200]
    assert len(answer) <= len(body) + MESSAGE_CHARS_MAX + ENVELOPE_BYTES
    if status == 200:
        return "OK"
    error = orjson.loads(answer)
    return f"{error['__type'].partition('#')[2]}: {error.get('message', error.get('Message'))}"


def written(value: Any) -> bytes:
    """`value` as JSON, however deep; a string of bytes in it is JSON already."""
    match value:
        case bytes():
            return value
        case dict():
            members = [orjson.dumps(name) + b":" + written(member) for name, member in value.items()]
            return b"{" + b",".join(members) + b"}"
        case list():
            return b"[" + b",".join(map(written, value)) + b"]"
    return orjson.dumps(value)
