"""Fixtures for what observes requests: a database, and clients that reach it in process and over HTTP."""

from __future__ import annotations

import logging
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import boto3
import botocore.endpoint
import botocore.retries.bucket
import pytest
from botocore.config import Config

from endpoints import REGION
from hashrange import client as in_process
from hashrange.clock import VirtualClock
from hashrange.database import Database
from hashrange.server import running
from worlds import table_of

Clients = Callable[..., Any]
"""`clients()` makes a client that sends each request once, `clients(attempts=3)` a client that retries,
`clients(service="dynamodbstreams")` a client for streams."""


def create(client: Any, name: str) -> None:
    """Make a table with the key `pk` (text) and `sk` (number), a stream and an index by `date`."""
    client.create_table(**table_of(name, "pk, sk:N", indexes={"by-date": "date"}, stream="NEW_IMAGE"))


@pytest.fixture(autouse=True)
def _retry_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let botocore's retries not wait, nor those of the adaptive mode before they send a request."""
    monkeypatch.setattr(botocore.endpoint, "time", types.SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setattr(botocore.retries.bucket.TokenBucket, "acquire", lambda *_, **__: True)


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.in_memory(clock=VirtualClock(1_767_225_600.0, frozen=True)) as database:
        yield database


@pytest.fixture(params=["in-process", "http"])
def clients(request: pytest.FixtureRequest, database: Database) -> Iterator[Clients]:
    with ExitStack() as stack:
        endpoint = stack.enter_context(running(database)) if request.param == "http" else None

        def make(attempts: int = 1, service: Any = "dynamodb", mode: Any = "standard") -> Any:
            config = Config(retries={"total_max_attempts": attempts, "mode": mode})
            if endpoint is None:
                return in_process.connect(database, service=service, region=REGION, config=config)
            client = boto3.client(
                service,
                endpoint_url=endpoint,
                region_name=REGION,
                aws_access_key_id="any",
                aws_secret_access_key="any",
                config=config,
            )
            stack.callback(client.close)
            return client

        yield make


@pytest.fixture
def client(clients: Clients) -> Any:
    """A client that sends each request once, and a table "orders" with an index "by-date"."""
    client = clients()
    create(client, "orders")
    return client


def fail(*given: Any, **named: Any) -> Any:
    """What takes the place of a function that is to fail."""
    raise ZeroDivisionError("secretly")


ITEM = {"pk": {"S": "ada"}, "sk": {"N": "1"}}


def expect_no_change(database: Database, client: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Send nine requests to a database, one of whose observers fails: they are answered as ever, the failure
    is logged once, and counted."""
    for _ in range(3):
        puts = {"orders": [{"PutRequest": {"Item": ITEM}}]}
        assert not client.batch_write_item(RequestItems=puts)["UnprocessedItems"]
        assert client.get_item(TableName="orders", Key=ITEM)["Item"] == ITEM
        with pytest.raises(client.exceptions.ResourceNotFoundException):
            client.get_item(TableName="missing", Key=ITEM)
    told = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.getMessage() for record in told] == ["an observer of requests failed"]
    assert database.observers.failures >= 3
    assert "ZeroDivisionError" in str(database.observers.failing)
