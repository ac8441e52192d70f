"""What looks at requests may fail: the requests go on, and the failure is told once, in the log and in the
health, and counted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

import boto3
import orjson
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from hashrange import pace
from hashrange.cli.admin import bind_admin
from hashrange.costs.ledger import Costs
from hashrange.database import Caller, Database
from hashrange.faults.armed import Faults
from hashrange.observing.observer import ObservedRequest, Observer
from hashrange.operations.execution import Asked
from hashrange.pace.turns import STEPS_TOGETHER
from hashrange.server import REQUESTS_LOGGER, running, trace
from watched import ITEM, Clients, expect_no_change, fail

Put = pytest.MonkeyPatch


def _broken(method: str, *, fails_closed: bool = False) -> Observer:
    """An observer one of whose methods fails."""
    made: Observer = type("Broken", (Observer,), {method: fail, "fails_closed": fails_closed})()
    return made


def _begins(database: Database, patch: Put) -> None:
    database.observers.observe(_broken("begins"))


def _decides(database: Database, patch: Put) -> None:
    database.observers.observe(_broken("decides"))


def _settles(database: Database, patch: Put) -> None:
    database.observers.observe(_broken("settles"))


def _ended(database: Database, patch: Put) -> None:
    database.observers.observe(_broken("ended"))


def _ledger(database: Database, patch: Put) -> None:
    patch.setattr(Costs, "add", fail)
    database.costs().__enter__()


def _places(database: Database, patch: Put) -> None:
    patch.setattr("hashrange.observing.noting.places", fail)
    database.costs().__enter__()


def _record(database: Database, patch: Put) -> None:
    patch.setattr("hashrange.observing.noting.scans", fail)
    database.costs().__enter__()


def _items(database: Database, patch: Put) -> None:
    patch.setattr("hashrange.observing.noting.items", fail)
    database.costs().__enter__()


def _rules(database: Database, patch: Put) -> None:
    patch.setattr(Faults, "decide", fail)
    database.faults.add("* nth=9 throttle")


OBSERVERS: list[Callable[[Database, Put], None]] = [
    _begins, _decides, _settles, _ended, _ledger, _places, _record, _items, _rules,
]  # fmt: skip


@pytest.mark.parametrize("begin", OBSERVERS)
def test_an_observer_that_fails_changes_no_answer_and_is_told_once(
    database: Database,
    client: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    begin: Callable[[Database, Put], None],
) -> None:
    begin(database, monkeypatch)
    expect_no_change(database, client, caplog)


@pytest.mark.parametrize("method", ["begins", "decides", "wraps"])
def test_an_observer_that_fails_closed_fails_the_request(
    database: Database, clients: Clients, method: str
) -> None:
    client = clients()
    database.observers.observe(_broken(method, fails_closed=True))
    with pytest.raises((ClientError, ZeroDivisionError)) as raised:
        client.list_tables()
    if isinstance(raised.value, ClientError):
        assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500


class Slow(Observer):
    """An observer that looks for so long that a body would be stopped."""

    def __init__(self) -> None:
        self.seen = 0

    def ended(self, seen: ObservedRequest) -> None:
        self.seen += 1
        pace.before(STEPS_TOGETHER)


@pytest.mark.parametrize("key", ["pk", "missed"])
def test_a_request_is_not_done_again_because_an_observer_takes_long(
    database: Database, client: Any, key: str
) -> None:
    """The turn of its body is over when it has its outcome."""
    slow = Slow()
    database.observers.observe(slow)
    outcomes: list[Exception | None] = []
    request = {
        "TableName": "orders",
        "Key": ITEM,
        "UpdateExpression": "ADD n :one",
        "ConditionExpression": f"attribute_not_exists({key})",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    for _ in range(2):
        sent: Any = orjson.loads(orjson.dumps(request))
        asked = Asked("UpdateItem", sent, Caller(), lambda _, e: outcomes.append(e), orjson.dumps)
        task = database.submit(asked)
        assert task is None
    counted = database.execute("GetItem", {"TableName": "orders", "Key": dict(ITEM)})
    assert orjson.loads(orjson.dumps(counted))["Item"]["n"] == {"N": "1" if key == "pk" else "2"}
    assert len(outcomes) == 2
    assert slow.seen == 3
    assert database.observers.failures == 0


def status_of(endpoint: str) -> int:
    """The status of a proper request."""
    client: Any = boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(retries={"total_max_attempts": 1}),
    )
    try:
        status: int = client.describe_limits()["ResponseMetadata"]["HTTPStatusCode"]
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    client.close()
    return status


@pytest.mark.parametrize("part", ["_note", "_request", "_response"])
def test_requests_that_cannot_be_logged_are_answered(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace.Tracer, part, fail)
    logging.getLogger(REQUESTS_LOGGER).setLevel(logging.DEBUG)
    try:
        with Database.in_memory() as database, running(database) as endpoint:
            assert status_of(endpoint) == 200
            assert status_of(endpoint + "/nowhere") == 404
            assert list(database.observers.failing) == ["request log"]
    finally:
        logging.getLogger(REQUESTS_LOGGER).setLevel(logging.NOTSET)


def test_the_admin_plane_tells_who_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = bind_admin(0)
    with Database.in_memory() as database, running(database, admin=admin) as endpoint:
        database.observers.observe(_broken("ended"))
        assert status_of(endpoint) == 200
        assert status_of(endpoint) == 200
        health = orjson.loads(urlopen(f"{admin.url}/health").read())
        assert health["status"] == "degraded"
        assert health["observers"] == [{"observer": "Broken", "error": "ZeroDivisionError('secretly')"}]
        metrics = urlopen(f"{admin.url}/metrics").read().decode()
        assert "hashrange_observer_failures_total 2\n" in metrics
