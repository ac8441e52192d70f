"""A log line for each request: what it says of every kind of request, and what it must never say."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from hashrange.database import Database
from hashrange.server import REQUESTS_LOGGER, running
from hashrange.storage.memory import MemoryEngine
from worlds import table_of

SECRET = "rosebud"
KEY = {"pk": {"S": SECRET}}
ITEM = KEY | {SECRET: {"S": SECRET}}
UPDATE = {"UpdateExpression": f"SET {SECRET} = :v", "ExpressionAttributeValues": {":v": {"S": SECRET}}}
UNITS = {"ReturnConsumedCapacity": "TOTAL"}
WRITES = {"TransactItems": [{"Put": {"TableName": "events", "Item": ITEM}}]}
CREATE = table_of("events", "pk")
HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/dynamodb/aws4_request, "
    f"SignedHeaders=host, Signature={SECRET}",
}
# operation, request, then what its line says: table, status, error, units
REQUESTS: list[tuple[str, Any, str, int, str, object]] = [
    ("CreateTable", CREATE, "events", 200, "", ""),
    ("PutItem", {"TableName": "events", "Item": ITEM} | UNITS, "events", 200, "", 1.0),
    ("PutItem", {"TableName": "events", "Item": {"pk": {"S": ""}}}, "events", 400, "ValidationException", ""),
    ("GetItem", {"TableName": "events", "Key": KEY} | UNITS, "events", 200, "", 0.5),
    ("GetItem", {"TableName": "nowhere", "Key": KEY}, "nowhere", 400, "ResourceNotFoundException", ""),
    ("GetItem", {"TableName": [SECRET]}, "", 400, "SerializationException", ""),
    ("UpdateItem", {"TableName": "events", "Key": KEY, **UPDATE}, "events", 200, "", ""),
    ("BatchGetItem", {"RequestItems": {"events": {"Keys": [KEY]}}} | UNITS, "events", 200, "", 0.5),
    ("BatchGetItem", {"RequestItems": [SECRET]}, "", 400, "SerializationException", ""),
    ("TransactWriteItems", WRITES, "events", 200, "", ""),
    ("TransactWriteItems", {"TransactItems": [SECRET]}, "", 400, "SerializationException", ""),
    ("ExecuteStatement", {"Statement": f"SELECT * FROM events WHERE pk = '{SECRET}'"}, "", 200, "", ""),
    ("ExecuteStatement", {"Statement": f"{SECRET}"}, "", 400, "ValidationException", ""),
]  # fmt: skip


@pytest.fixture
def endpoint(caplog: pytest.LogCaptureFixture) -> Iterator[str]:
    caplog.set_level(logging.DEBUG, REQUESTS_LOGGER)
    with running(Database(MemoryEngine())) as url:
        yield urlsplit(url).netloc


def ask(endpoint: str, operation: str, body: bytes) -> str:
    """Send a request; the id of its answer."""
    connection = HTTPConnection(endpoint, timeout=10)
    connection.request("POST", "/", body, HEADERS | {"X-Amz-Target": f"DynamoDB_20120810.{operation}"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.getheader("x-amzn-RequestId") or ""


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [record.__dict__["fields"] for record in caplog.records if record.name == REQUESTS_LOGGER]


def test_each_request_has_its_line_without_values(endpoint: str, caplog: pytest.LogCaptureFixture) -> None:
    for operation, request, table, status, error, units in REQUESTS:
        answered = ask(endpoint, operation, orjson.dumps(request))
        line = lines(caplog)[-1]
        assert line.pop("ms") > 0
        assert line == {
            "operation": operation,
            "table": table,
            "status": status,
            "error": error,
            "units": units,
            "request_id": answered,
        }
    assert len(lines(caplog)) == len(REQUESTS)
    assert not any(
        SECRET in str(record.__dict__) for record in caplog.records if record.name == REQUESTS_LOGGER
    )


def test_what_reaches_no_operation_has_its_line_too(endpoint: str, caplog: pytest.LogCaptureFixture) -> None:
    answered = ask(endpoint, "Eat", b"{}")
    (line,) = lines(caplog)
    assert (line["status"], line["error"], line["request_id"]) == (400, "UnknownOperationException", answered)
