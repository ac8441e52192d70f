"""What looks at requests may fail: the requests go on, and the failure is told once, in the log and in the
health, and counted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import boto3
import orjson
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from hashrange import pace
from hashrange.cli.admin import bind_admin
from hashrange.clock import SystemClock
from hashrange.costs.ledger import Costs
from hashrange.database import Caller, Database
from hashrange.faults.armed import Faults
from hashrange.pace.turns import STEPS_TOGETHER
from hashrange.server import REQUESTS_LOGGER, running, trace
from hashrange.watching.sights import Sight
from hashrange_access.judging import judge
from hashrange_access.judging.gate import Gate
from hashrange_access.judging.judging import guard
from hashrange_access.signatures import Verifier
from hashrange_access.users import read
from hashrange_lab.behaviour.throttling import Throttling
from hashrange_lab.recordings import reader
from hashrange_lab.recordings.recording import Tape, recording
from hashrange_lab.recordings.writer import Writer

ITEM = {"pk": {"S": "ada"}, "sk": {"N": "1"}}
BATCH = {"orders": [{"PutRequest": {"Item": ITEM}}]}
Put = pytest.MonkeyPatch


def fail(*given: Any, **named: Any) -> Any:
    raise ZeroDivisionError("secretly")


class Broken:
    """An onlooker that fails."""

    see = fail


def _onlooker(database: Database, tmp_path: Path, patch: Put) -> None:
    database.observers.observe(Broken())


def _recorder(database: Database, tmp_path: Path, patch: Put) -> None:
    patch.setattr(Costs, "add", fail)
    database.costs().__enter__()


def _line(database: Database, tmp_path: Path, patch: Put) -> None:
    patch.setattr(Costs, "line", fail)
    database.costs().__enter__()


def _places(database: Database, tmp_path: Path, patch: Put) -> None:
    patch.setattr("hashrange.observing.noting.places", fail)
    database.costs().__enter__()


def _record(database: Database, tmp_path: Path, patch: Put) -> None:
    patch.setattr("hashrange.observing.noting.scans", fail)
    database.costs().__enter__()


def _items(database: Database, tmp_path: Path, patch: Put) -> None:
    patch.setattr("hashrange.observing.noting.items", fail)
    database.costs().__enter__()


def _tape(database: Database, tmp_path: Path, patch: Put) -> None:
    patch.setattr(Tape, "take", fail)
    recording(database, tmp_path / "load").begin()


def _sent(database: Database, tmp_path: Path, patch: Put) -> None:
    patch.setattr(Tape, "sent", fail)
    recording(database, tmp_path / "load").begin()


def _rules(database: Database, tmp_path: Path, patch: Put) -> None:
    patch.setattr(Faults, "decide", fail)
    database.faults.add("* nth=9 throttle")


def _lab(database: Database, tmp_path: Path, patch: Put) -> None:
    patch.setattr(Throttling, "left", fail)
    database.lab.throttling.set(True)


def _charge(database: Database, tmp_path: Path, patch: Put) -> None:
    database.charge = fail


OBSERVERS: list[Callable[[Database, Path, Put], None]] = [
    _onlooker, _recorder, _line, _places, _record, _items, _tape, _sent, _rules, _lab, _charge,
]  # fmt: skip


@pytest.mark.parametrize("begin", OBSERVERS)
def test_an_observer_that_fails_changes_no_answer_and_is_told_once(
    database: Database,
    client: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    begin: Callable[[Database, Path, Put], None],
) -> None:
    begin(database, tmp_path, monkeypatch)
    for _ in range(3):
        assert not client.batch_write_item(RequestItems=BATCH)["UnprocessedItems"]
        assert client.get_item(TableName="orders", Key=ITEM)["Item"] == ITEM
        with pytest.raises(client.exceptions.ResourceNotFoundException):
            client.get_item(TableName="missing", Key=ITEM)
    told = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.getMessage() for record in told] == ["an observer of requests failed"]
    assert database.observers.failures >= 3
    assert "ZeroDivisionError" in str(database.observers.failing)
    tape = database.interest.tape
    if tape is not None:
        tape.end()
        with reader.open(tape.path) as opened:
            recorded = list(opened.entries())
            assert len(recorded) + opened.dropped == 9
            assert opened.end is not None


class Slow:
    """An onlooker that looks for so long that a body would be stopped."""

    def __init__(self) -> None:
        self.seen: list[Sight] = []

    def see(self, sight: Sight) -> None:
        self.seen.append(sight)
        pace.before(STEPS_TOGETHER)


@pytest.mark.parametrize("key", ["pk", "missed"])
def test_a_request_is_not_done_again_because_an_onlooker_takes_long(
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
        task = database.submit("UpdateItem", sent, Caller(), lambda _, e: outcomes.append(e), orjson.dumps)
        assert task is None
    counted = database.execute("GetItem", {"TableName": "orders", "Key": dict(ITEM)})
    assert orjson.loads(orjson.dumps(counted))["Item"]["n"] == {"N": "1" if key == "pk" else "2"}
    assert len(outcomes) == 2
    assert len(slow.seen) == 3
    assert database.observers.failures == 0


def test_a_request_that_cannot_be_written_is_missing_and_counted(
    database: Database, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recording(database, tmp_path / "load"):
        client.get_item(TableName="orders", Key=ITEM)
        with monkeypatch.context() as patched:
            tape = database.interest.tape
            assert tape is not None
            assert tape.writer is not None
            patched.setattr(Writer, "_add_request", fail)
            client.get_item(TableName="orders", Key=ITEM)
            tape.writer.close()
    with reader.open(tmp_path / "load") as opened:
        recorded = list(opened.entries())
        assert (len(recorded) + opened.dropped, opened.dropped >= 1) == (2, True)
        assert opened.end is not None
        assert opened.end.why == "stopped"


USER = {"keys": [{"id": "AKIDU", "secret": "secret-of-u"}]}
USERS = read({"accounts": {"000000000000": {"users": {"u": USER}}}})


def status_of(endpoint: str) -> int:
    """The status of a proper request that is signed genuinely."""
    client: Any = boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="AKIDU",
        aws_secret_access_key="secret-of-u",
        config=Config(retries={"total_max_attempts": 1}),
    )
    try:
        status: int = client.describe_limits()["ResponseMetadata"]["HTTPStatusCode"]
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    client.close()
    return status


@pytest.mark.parametrize("part", ["verify", "acts", "evaluate"])
@pytest.mark.parametrize(("strict", "status"), [(False, 200), (True, 500)])
def test_policies_that_only_look_on_refuse_nothing_when_they_fail(
    part: str, strict: bool, status: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Database.in_memory() as database:
        guard(database, Gate(USERS, SystemClock().now, strict=strict))
        monkeypatch.setattr(Verifier if part == "verify" else judge, part, fail)
        with running(database) as endpoint:
            assert status_of(endpoint) == status
    assert "ZeroDivisionError" in caplog.text


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
        database.observers.observe(Broken())
        assert status_of(endpoint) == 200
        assert status_of(endpoint) == 200
        health = orjson.loads(urlopen(f"{admin.url}/health").read())
        assert health["status"] == "degraded"
        assert health["observers"] == [{"observer": "Broken", "error": "ZeroDivisionError('secretly')"}]
        metrics = urlopen(f"{admin.url}/metrics").read().decode()
        assert "hashrange_observer_failures_total 2\n" in metrics
