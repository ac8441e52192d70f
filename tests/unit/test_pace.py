"""Turns: a body that takes long is stopped, runs again elsewhere, and has one effect."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import orjson
import pytest

from hashrange import pace, values
from hashrange.database import Caller, Database
from hashrange.operations import REGISTRY
from hashrange.operations.context import Context
from hashrange.operations.execution import Asked
from hashrange.operations.writes import batch_write_item, transact_write_items
from hashrange.pace import turns
from hashrange.pace.workers import Workers
from hashrange.settings import Settings
from hashrange.storage import drafts
from hashrange.storage.api import Engine, Reader, Totals, Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange.values import Item
from worlds import table_of

P, Q = b"p" * 24, b"q" * 24


@pytest.fixture(params=["memory", "embedded"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    engine: Engine = MemoryEngine() if request.param == "memory" else EmbeddedEngine(tmp_path / "data")
    yield engine
    engine.close()


@pytest.fixture
def no_time() -> Iterator[pace.Turn]:
    """The turn of this thread, which is over from the start."""
    turn = pace.turn()
    turn.begin(-1.0)
    yield turn
    turn.end()


def look() -> None:
    """Look at the turn now, however short ago it was looked at."""
    turns._watch.due = 0.0
    pace.point()


def test_a_turn_ends_the_work_of_its_own_thread_only(no_time: pace.Turn) -> None:
    with pytest.raises(pace.TurnOver):
        look()
    passed = Event()

    def other() -> None:
        look()
        passed.set()

    thread = Thread(target=other)
    thread.start()
    thread.join()
    assert passed.is_set()
    no_time.end()
    look()


def test_a_body_that_is_stopped_leaves_nothing(engine: Engine, no_time: pace.Turn) -> None:
    def body(txn: Transaction) -> None:
        txn.put(1, P, b"a", b"x")
        txn.append(2, P, b"x")
        txn.count(1, 1, 1)
        look()

    for run in (engine.write, lambda body: engine.submit(body, lambda *_: None)):
        with pytest.raises(pace.TurnOver):
            run(body)
    no_time.end()
    assert engine.read(lambda reader: reader.get(1, P, b"a")) is None
    assert engine.read(lambda reader: list(reader.scan(2, P))) == []
    assert engine.read(lambda reader: reader.totals(1)) == Totals(0, 0)
    no_time.begin(-1.0)
    for read in (engine.read, lambda body: engine.submit_read(body, lambda *_: None)):
        with pytest.raises(pace.TurnOver):
            read(lambda reader: look())


def test_a_thread_with_a_turn_waits_for_no_lock(no_time: pace.Turn) -> None:
    taken = Lock()
    pace.acquire(taken)
    with pytest.raises(pace.TurnOver):
        pace.acquire(taken)
    taken.release()
    pace.acquire(taken)


# -- Drafts -----------------------------------------------------------------------------------------------


def counting(before: Callable[[], None] = lambda: None) -> Callable[[Transaction], int]:
    """A body that adds one to a counter, and does `before` between reading and writing it."""

    def body(txn: Transaction) -> int:
        value = int(txn.get(1, P, b"n") or b"0") + 1
        before()
        txn.put(1, P, b"n", b"%d" % value)
        assert txn.get(1, P, b"n") == b"%d" % value
        txn.append(2, P, b"%d" % value)
        txn.count(1, 1, 2)
        txn.delete(1, P, b"gone")
        return value

    return body


def test_a_draft_is_committed_as_the_body_would_be(engine: Engine) -> None:
    engine.write(lambda txn: txn.put(1, P, b"gone", b""))
    assert [drafts.write_aside(engine, counting()) for _ in range(3)] == [1, 2, 3]
    assert engine.read(lambda reader: reader.get(1, P, b"gone")) is None
    assert engine.read(lambda reader: reader.totals(1)) == Totals(3, 6)
    assert engine.read(lambda reader: [value for _, value in reader.scan(2, P)]) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("times", [1, drafts.ATTEMPTS_MAX - 1, drafts.ATTEMPTS_MAX])
def test_a_draft_that_is_overtaken_runs_again(engine: Engine, times: int) -> None:
    """Another write of what the body read, between its reading and its commit: the counter stays exact."""
    left = times

    def overtake() -> None:
        nonlocal left
        if left:
            left -= 1
            engine.write(counting())

    assert on_a_worker(lambda: drafts.write_aside(engine, counting(overtake))) == times + 1
    assert engine.read(lambda reader: reader.get(1, P, b"n")) == b"%d" % (times + 1)


@pytest.mark.once
def test_a_draft_is_stamped_when_it_is_committed(engine: Engine) -> None:
    """What was stamped later and committed earlier stays before it."""

    def stamping(stamp: int, before: Callable[[], None] = lambda: None) -> Callable[[Transaction], None]:
        def body(txn: Transaction) -> None:
            txn.append(2, P, b"%b %d" % (stamp.to_bytes(8), stamp), 0)
            before()

        return body

    on_a_worker(lambda: drafts.write_aside(engine, stamping(3, lambda: engine.write(stamping(5)))))
    engine.write(stamping(4))
    drafts.write_aside(engine, stamping(6))
    found = engine.read(lambda reader: [value for _, value in reader.scan(2, P)])
    assert found == [bytes(7) + value for value in (b"\5 5", b"\5 3", b"\5 4", b"\6 6")]


def on_a_worker(work: Callable[[], Any]) -> Any:
    """What `work` gives on a worker thread; what it raises is raised here."""
    outcomes: list[tuple[Any, BaseException | None]] = []

    def run() -> None:
        try:
            outcomes.append((work(), None))
        except BaseException as error:
            outcomes.append((None, error))
        ended.set()

    ended = Event()
    workers = Workers()
    workers.start(run)
    assert ended.wait(30)
    workers.close()
    [(result, error)] = outcomes
    if error is not None:
        raise error
    return result


def test_a_body_that_gets_many_records_sees_its_own_among_them(engine: Engine) -> None:
    engine.write(lambda txn: txn.put(1, P, b"a", b"1"))

    def body(txn: Transaction) -> Any:
        txn.put(1, P, b"b", b"2")
        return txn.get_many([(1, P, b"b"), (1, P, b"a"), (1, P, b"c"), (2, P, b"a")])

    assert drafts.write_aside(engine, body) == [b"2", b"1", None, None]


def test_a_body_that_scans_runs_as_any_write(engine: Engine) -> None:
    engine.write(lambda txn: txn.put(1, P, b"a", b"1"))

    def body(txn: Transaction) -> Any:
        txn.put(1, P, b"b", b"2")
        return list(txn.scan(1, P)), list(txn.scan_space(1)), txn.totals(1), txn.position(1) > 0

    rows = [(b"a", b"1"), (b"b", b"2")]
    assert drafts.write_aside(engine, body) == (rows, [(P, *row) for row in rows], (0, 0), True)
    drafts.write_aside(engine, lambda txn: txn.delete_space(1))
    assert engine.read(lambda reader: list(reader.scan_space(1))) == []


def test_a_draft_lets_errors_pass(engine: Engine) -> None:
    def body(txn: Transaction) -> None:
        txn.put(1, P, b"a", b"1")
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        drafts.write_aside(engine, body)
    assert engine.read(lambda reader: reader.get(1, P, b"a")) is None


# -- Reading on a thread ----------------------------------------------------------------------------------


@pytest.mark.once
def test_a_read_on_a_thread_is_of_one_moment(engine: Engine) -> None:
    """Whatever is written between its steps, a body on a worker thread sees the store as it began."""

    def fill(txn: Transaction) -> None:
        for n in range(0, 1000, 2):
            txn.put(1, P, b"%04d" % n, b"old")
            txn.put(1, Q, b"%04d" % n, b"old")
        txn.put(3, P, b"", b"dropped")
        txn.count(1, 1000, 1)

    def change(txn: Transaction) -> None:
        for n in range(1000):
            if n % 3 == 0:
                txn.delete(1, P, b"%04d" % n)
            else:
                txn.put(1, P, b"%04d" % n, b"new")
        txn.put(2, P, b"", b"new")
        txn.delete_space(3)
        txn.count(1, 5, 5)

    engine.write(fill)
    expected = [(b"%04d" % n, b"old") for n in range(0, 1000, 2)]

    def body(reader: Reader) -> None:
        scan = reader.scan(1, P)
        seen = [next(scan) for _ in range(100)]
        engine_write()
        seen += scan
        assert seen == expected
        assert list(reader.scan(1, P, reverse=True)) == expected[::-1]
        assert list(reader.scan(1, P, b"0100", b"0200")) == expected[50:100]
        assert [row[1:] for row in reader.scan_space(1)] == expected * 2
        assert reader.get(1, P, b"0001") is None
        assert reader.get_many([(1, P, b"0000"), (1, P, b"0003"), (2, P, b"")]) == [b"old", None, None]
        assert reader.get(3, P, b"") == b"dropped"
        assert list(reader.scan_space(3)) == [(P, b"", b"dropped")]
        assert reader.totals(1) == Totals(1000, 1)

    def engine_write() -> None:
        other = Thread(target=lambda: engine.write(change))
        other.start()
        other.join()

    on_a_worker(lambda: engine.read(body))
    assert engine.read(lambda reader: reader.get(2, P, b"")) == b"new"


MANY: Item = {f"a{number}": {"S": "x"} for number in range(1_000)}


@pytest.mark.parametrize("walk", [values.admit_members, values.check_names, values.item_size])
def test_a_walk_over_the_attributes_of_an_item_can_be_stopped(
    walk: Callable[[Item], Any], no_time: pace.Turn
) -> None:
    turns._watch.due = 0.0
    with pytest.raises(pace.TurnOver):
        walk(MANY)


# -- Workers ----------------------------------------------------------------------------------------------


def test_abandoned_work_ends(engine: Engine) -> None:
    workers = Workers()
    began, outcome = Event(), []

    def work() -> None:
        began.set()
        try:
            while True:
                look()
        except pace.Abandoned:
            outcome.append("abandoned")
            raise

    task = workers.start(work)
    assert began.wait(30)
    task.abandon()
    workers.close()
    assert outcome == ["abandoned"]
    assert not workers.tasks
    with pytest.raises(RuntimeError):
        workers.start(work)


# -- The database -----------------------------------------------------------------------------------------

CALLER = Caller()
PUT = {"PutRequest": {"Item": {"p": {"S": "a"}}}}
TABLE_PUT = {"Put": {"TableName": "table", "Item": {"p": {"S": "a"}}}}


@pytest.mark.parametrize(
    ("prepare", "request_"),
    [
        (batch_write_item.prepare, {"RequestItems": {"table": [PUT, PUT]}}),
        (transact_write_items.prepare, {"TransactItems": [TABLE_PUT, TABLE_PUT]}),
    ],
)
def test_others_run_between_the_items_of_a_batch(
    prepare: Callable[..., Any], request_: dict[str, Any]
) -> None:
    """16 MB of tiny attributes take a tenth of a second to validate. A task that is abandoned ends at the
    first point, which a few steps are not."""
    workers, ended, outcome = Workers(), Event(), list[str]()

    def work() -> None:
        task = pace.turn().task
        assert task is not None
        task.abandon()
        turns._watch.due, turns._watch.steps = 0.0, turns.STEPS
        try:
            prepare(request_, Context(CALLER, 0.0, Settings(), str))
        except pace.Abandoned:
            outcome.append("abandoned")
        finally:
            ended.set()

    workers.start(work)
    assert ended.wait(30)
    workers.close()
    assert outcome == ["abandoned"]


CREATE = table_of("table", "p")
LONG_REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("PutItem", {"TableName": "table", "Item": {"p": {"S": "a"}, "n": {"N": "1"}}}),
    (
        "UpdateItem",
        {
            "TableName": "table",
            "Key": {"p": {"S": "a"}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
            "ReturnValues": "ALL_NEW",
        },
    ),
    ("Scan", {"TableName": "table", "FilterExpression": "attribute_exists(n)"}),
    ("ListTables", {}),
    ("UpdateTable", {"TableName": "table", "DeletionProtectionEnabled": True}),
    ("DeleteItem", {"TableName": "table", "Key": {"p": {"S": "a"}}, "ReturnValues": "ALL_OLD"}),
    ("PutItem", {"TableName": "nowhere", "Item": {"p": {"S": "a"}}}),
    ("ExecuteStatement", {"Statement": f"INSERT INTO \"table\" VALUE {{'p': 'b', 'l': {[1] * 99}}}"}),
    ("ExecuteStatement", {"Statement": f"SELECT * FROM \"table\" WHERE p = 'b' AND l = {[1] * 99}"}),
    ("ExecuteStatement", {"Statement": f"SELECT * FROM \"table\" WHERE p = {[1] * 99} AND"}),
    ("BatchExecuteStatement", {"Statements": [{"Statement": "SELECT * FROM \"table\" WHERE p IN [1]"}] * 2}),
    (
        "TransactWriteItems",
        {
            "ClientRequestToken": "token",
            "TransactItems": [
                {
                    "Update": {
                        "TableName": "table",
                        "Key": {"p": {"S": "a"}},
                        "UpdateExpression": "SET " + ", ".join(f"a{n} = :v" for n in range(99)),
                        "ExpressionAttributeValues": {":v": {"N": "1.0"}},
                    }
                }
            ],
        },
    ),
]


def test_requests_whose_turn_is_over_are_answered_all_the_same(engine: Engine) -> None:
    """Every request is stopped at its first point, also while it is prepared, and gives what it gives on a
    database of its own."""
    plain, hurried = Database(MemoryEngine()), Database(engine)
    hurried.deliver_on(lambda callback: callback())
    for database in (plain, hurried):
        database.execute("CreateTable", dict(CREATE), CALLER)
    hurried.turn_seconds = -1.0
    tasks = unprepared = 0
    for operation, request in LONG_REQUESTS:
        outcomes: list[tuple[Any, Exception | None]] = []
        answered = Event()

        def done(
            answer: Any, error: Exception | None, outcomes: list[Any] = outcomes, answered: Event = answered
        ) -> None:
            outcomes.append((answer, error))
            answered.set()

        turns._watch.due = 0.0
        try:
            task = hurried.submit(Asked(operation, deepcopy(request), CALLER, done, shown))
        except pace.TurnOver:
            assert not outcomes
            unprepared += 1
            again = partial(hurried.run_aside, Asked(operation, deepcopy(request), CALLER, done, shown))
            task = hurried.start_aside(again)
        tasks += task is not None
        assert answered.wait(30)
        expected: tuple[str | None, str]
        try:
            expected = (shown(plain.execute(operation, deepcopy(request), CALLER)), repr(None))
        except Exception as error:
            expected = (None, repr(error))
        [(answer, raised)] = outcomes
        assert (answer, repr(raised)) == expected
    assert tasks > unprepared >= 4
    hurried.close()


KEYS: list[Item] = [{"p": {"S": "a"}}, {"p": {"S": "b"}}]
SELECTS = [{"Statement": f"SELECT * FROM \"table\" WHERE p = '{name}'"} for name in "ab"]
BATCHES: list[tuple[str, dict[str, Any]]] = [
    ("BatchGetItem", {"RequestItems": {"table": {"Keys": KEYS}}}),
    ("TransactGetItems", {"TransactItems": [{"Get": {"TableName": "table", "Key": key}} for key in KEYS]}),
    ("BatchExecuteStatement", {"Statements": SELECTS}),
    ("ExecuteTransaction", {"TransactStatements": SELECTS}),
    ("BatchWriteItem", {"RequestItems": {"table": [{"PutRequest": {"Item": key}} for key in KEYS]}}),
    ("TransactWriteItems", {"TransactItems": [{"Put": {"TableName": "table", "Item": key}} for key in KEYS]}),
]


@pytest.mark.parametrize(("operation", "request_"), BATCHES)
def test_a_batch_can_be_stopped_between_its_items(
    engine: Engine, no_time: pace.Turn, operation: str, request_: dict[str, Any]
) -> None:
    """25 items of 400 KB take 40 ms to read."""
    no_time.end()
    Database(engine).execute("CreateTable", dict(CREATE), CALLER)
    entry = REGISTRY[operation]
    body = entry.prepare(request_, Context(CALLER, 0.0, Settings(), str))
    run = engine.write if entry.is_write(request_) else engine.read
    no_time.begin(-1.0)
    turns._watch.due = 0.0
    with pytest.raises(pace.TurnOver):
        run(body)


def shown(answer: dict[str, Any]) -> str:
    text = orjson.dumps(answer, option=orjson.OPT_SORT_KEYS).decode()
    return re.sub(r'"(TableId|[A-Za-z]*DateTime)":[^,}]+', "", text)
