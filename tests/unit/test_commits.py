"""Commits that fail, or whose outcome is unknown: what requests, clients and background work do then."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from endpoints import connection
from hashrange.clock import ManualClock
from hashrange.database import Background, Database, Settings
from hashrange.errors import InternalServerError
from hashrange.server import running
from hashrange.storage import drafts
from hashrange.storage.api import Engine, Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.failures import CommitFailed, CommitUnknown, Moment
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.inspection.check import check
from hashrange_engine_tests import faults
from hashrange_engine_tests.reruns import Reruns
from worlds import create, expiry_of, new_index

NOW = 1_700_000_000
DAY = 24 * 3600
MOMENTS: tuple[Moment, ...] = ("before", "after")
KEY = {"p": {"S": "a"}}
ADD = {"TableName": "table", "Key": KEY, "UpdateExpression": "ADD n :one"}
ONE = {"ExpressionAttributeValues": {":one": {"N": "1"}}}


@pytest.fixture(params=["memory", "embedded", "memory with reruns"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    inner: Engine = EmbeddedEngine(tmp_path / "data") if request.param == "embedded" else MemoryEngine()
    engine = Reruns(inner, alone=True) if request.param.endswith("reruns") else inner
    yield engine
    engine.close()


def count(database: Database) -> int:
    item = database.execute("GetItem", {"TableName": "table", "Key": KEY, "ProjectionExpression": "n"})
    return int(item.get("Item", {}).get("n", {"N": "0"})["N"])


def settled(engine: Engine) -> None:
    while engine.refusing():
        pass


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("unknown", [False, True])
def test_the_request_is_a_server_error(
    engine: Engine, moment: Moment, unknown: bool, caplog: pytest.LogCaptureFixture
) -> None:
    database = Database(engine)
    create(database, "table", "p")
    with faults.failing(engine, moment, unknown=unknown), pytest.raises(InternalServerError) as caught:
        database.execute("UpdateItem", ADD | ONE)
    assert isinstance(caught.value.__cause__, CommitUnknown if unknown else CommitFailed)
    settled(engine)
    assert count(database) == (unknown and moment == "after")
    # Only the engine logs it.
    assert {record.name.rpartition(".")[0] for record in caplog.records} <= {"hashrange.storage.embedded"}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_draft_is_committed_once(engine: Engine, moment: Moment) -> None:
    """A long write whose outcome is unknown is not run again: only its client may repeat it."""

    def body(txn: Transaction) -> None:
        txn.put(9, b"p", b"", b"%d" % (int(txn.get(9, b"p", b"") or b"0") + 1))

    with faults.failing(engine, moment, unknown=True, commits_max=1), pytest.raises(CommitUnknown):
        drafts.write_aside(engine, body)
    settled(engine)
    stands = engine.read(lambda reader: reader.get(9, b"p", b""))
    assert stands == (b"1" if moment == "after" else None)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_transaction_with_a_token_is_repeated_by_the_client(tmp_path: Path, moment: Moment) -> None:
    """boto3 gives each transaction a token and repeats it after a server error: it takes effect once."""
    engine = EmbeddedEngine(tmp_path / "data")
    database = Database(engine)
    create(database, "table", "p")
    database.sweep()  # so that the server has nothing to commit that would meet the fault
    with running(database) as endpoint:
        patient = Config(retries={"mode": "standard", "max_attempts": 5})
        client = boto3.client("dynamodb", **(connection(endpoint) | {"config": patient}))
        update: Any = {"Update": ADD | ONE}
        once = Config(retries={"total_max_attempts": 1})
        impatient = boto3.client("dynamodb", **(connection(endpoint) | {"config": once}))
        with faults.failing(engine, moment, unknown=True, commits_max=1):
            answer = client.transact_write_items(TransactItems=[update])
        assert answer["ResponseMetadata"]["RetryAttempts"] >= 1
        assert count(database) == 1
        with (
            faults.failing(engine, moment, unknown=True, commits_max=1),
            pytest.raises(ClientError, match="InternalServerError") as caught,
        ):
            impatient.update_item(**ADD, **ONE)  # type: ignore[arg-type]
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
        settled(engine)
        assert count(database) == 1 + (moment == "after")
        client.close()
        impatient.close()
    database.close()


def test_the_background_work_goes_on_after_any_failure(engine: Engine) -> None:
    """Each second commit fails, or its outcome is unknown: in the end all work is done, and done once."""
    clock = ManualClock(NOW)
    steady = [0.0]
    database = Database(engine, clock=clock, settings=Settings(gsi_delay_seconds=1.0, update_seconds=1.0))
    database.background = Background(lambda: steady[0])
    create(database, "table", "p", stream="KEYS_ONLY")
    for number in range(150):
        item = {"p": {"S": f"{number}"}, "g": {"S": f"g{number % 3}"}, "t": {"N": f"{NOW + 50 + number % 2}"}}
        database.execute("PutItem", {"TableName": "table", "Item": item})
    database.execute("UpdateTable", new_index("table", "by-g", "g"))
    database.execute("UpdateTimeToLive", expiry_of("table", "t"))

    failures = cycle(
        [None, ("before", False), None, ("after", True), None, ("before", True), None, ("after", False)]
    )
    current: Any = None

    def fault(moment: Moment) -> None:
        nonlocal current
        if moment == "before":
            current = next(failures)
        if current is not None and current[0] == moment:
            raise CommitUnknown("lost") if current[1] else OSError("failed")

    def settle() -> None:
        for _ in range(200):
            settled(engine)
            steady[0] += 1_000.0
            if database.sweep() > 0 and not database.background.failing:
                return
        raise AssertionError(f"the work does not end: {database.background.failing}")

    ask = partial(database.execute, "Scan", {"TableName": "table", "Select": "COUNT"})
    by_index = partial(database.execute, "Scan", {"TableName": "table", "IndexName": "by-g"})
    engine.commit_fault = fault
    for seconds in (2, 2, 60, 2, DAY + 1, DAY):
        settle()
        clock.advance(seconds)
        if seconds == 60:
            assert ask()["Count"] == by_index()["Count"] == 150
    settle()
    engine.commit_fault = None
    settled(engine)
    assert database.background.failures >= 4
    assert ask()["Count"] == by_index()["Count"] == 0
    assert list(check(engine)) == []
