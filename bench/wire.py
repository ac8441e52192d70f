"""One DynamoDB request over HTTP: as bytes for the load generator, and as a blocking call for checks.

Knows the wire form (target header, JSON 1.0, an Authorization header of the right form) and nothing of the
contents. The signature is made up, except within `signed_by`: nearly all servers measured here accept any
credentials by default, and spend no time on verifying one.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

HOST = "127.0.0.1"
CALL_TIMEOUT_SECONDS = 30.0

_STREAMS = frozenset({"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"})

_HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=" + "0123456789abcdef" * 4
    ),
}


class CallError(Exception):
    """The server answered with an error, or not in JSON; `str()` holds the start of the answer."""


Sign = Callable[[str, dict[str, str], bytes], dict[str, str]]
"""The headers with their signature, from the host, the headers and the body: `bench.signing.signed`."""

_signs: dict[int, Sign] = {}


@contextmanager
def signed_by(port: int, sign: Sign | None) -> Iterator[None]:
    """Within the block `sign` makes true signatures for all requests to the server on a port."""
    if sign is not None:
        _signs[port] = sign
    try:
        yield
    finally:
        _signs.pop(port, None)


@dataclass(frozen=True, slots=True)
class Request:
    """One call: an operation's name and its request."""

    operation: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """A 200 answer: its JSON, and how many bytes it took on the wire, headers included."""

    body: dict[str, Any]
    wire_bytes: int


def target(operation: str) -> str:
    """The value of X-Amz-Target; streams have a service name of their own."""
    service = "DynamoDBStreams" if operation in _STREAMS else "DynamoDB"
    return f"{service}_20120810.{operation}"


def render(request: Request, port: int) -> bytes:
    """The whole HTTP/1.1 request, ready to be written to a socket."""
    body = json.dumps(request.body, separators=(",", ":")).encode()
    headers = {"X-Amz-Target": target(request.operation)} | _HEADERS
    sign = _signs.get(port)
    if sign is not None:
        headers = sign(f"{HOST}:{port}", headers, body)
    head = [
        "POST / HTTP/1.1",
        f"Host: {HOST}:{port}",
        *(f"{name}: {value}" for name, value in headers.items()),
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def call(port: int, request: Request) -> Answer:
    """Send one request on a connection of its own and wait for the answer.

    Raises CallError for an error answer and OSError where nobody answers.
    """
    connection = http.client.HTTPConnection(HOST, port, timeout=CALL_TIMEOUT_SECONDS)
    try:
        headers = _HEADERS | {"X-Amz-Target": target(request.operation)}
        body = json.dumps(request.body, separators=(",", ":")).encode()
        sign = _signs.get(port)
        if sign is not None:
            headers = sign(f"{HOST}:{port}", headers, body)
        connection.request("POST", "/", body, headers)
        response = connection.getresponse()
        raw = response.read()
        # Status line, "name: value" lines with their CRLFs, and the blank line.
        head_bytes = 13 + len(response.reason) + 2
        head_bytes += sum(len(name) + len(value) + 4 for name, value in response.getheaders())
    except http.client.HTTPException as error:
        raise CallError(f"{request.operation}: {error!r}") from error
    finally:
        connection.close()
    if response.status != 200:
        raise CallError(f"{request.operation}: {response.status} {raw[:300].decode(errors='replace')}")
    try:
        body = json.loads(raw)
    except ValueError as error:
        raise CallError(f"{request.operation}: not JSON: {raw[:100]!r}") from error
    return Answer(body=body, wire_bytes=head_bytes + len(raw))
