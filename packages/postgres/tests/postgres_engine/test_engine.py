"""The engine over PostgreSQL: several engines on one store, how bodies run, wrong databases."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from threading import Barrier, Thread
from typing import Any

import orjson
import psycopg
import pytest

import postgres
from hashrange import pace
from hashrange.database import Database
from hashrange.storage.api import Reader, Totals, Transaction
from hashrange.storage.failures import CommitFailed, Stopped, StorageError
from hashrange_engine_tests import faults
from hashrange_engine_tests.loops import Interrupted, Loop
from hashrange_engine_tests.records import Outcomes, P, Q, get, put, rows
from hashrange_postgres import PostgresEngine
from hashrange_postgres.groups import Group
from hashrange_postgres.turns import ALWAYS, NEVER
from hashrange_postgres.wire.statements import Arguments
from hashrange_postgres.writer import Writer
from list_append import SPACE, Run
from worlds import create, expiry_of


@pytest.fixture
def name() -> str:
    """The name of the test's schema."""
    return postgres.new_schema()


@pytest.fixture
def open_engine(postgres_url: str, name: str) -> Iterator[Callable[[], PostgresEngine]]:
    """Opens engines over one store."""
    with ExitStack() as stack:

        def opener(**options: Any) -> PostgresEngine:
            engine = PostgresEngine(postgres_url, schema=name, **options)
            stack.callback(engine.close)
            return engine

        yield opener


Opener = Callable[[], PostgresEngine]


def test_what_one_engine_wrote_the_other_one_sees(open_engine: Opener) -> None:
    one, other = open_engine(), open_engine()
    for n in range(5):
        engine, looking = (one, other) if n % 2 else (other, one)
        value = b"%d" % n
        put(engine, 7, P, b"a", value)
        # Both have the record in their caches by now, one of them an old one.
        assert get(looking, 7, P, b"a") == value
        assert looking.write(lambda txn: txn.get(7, P, b"a")) == value
        assert looking.write(lambda txn: list(txn.scan(7, P))) == [(b"a", value)]


def test_the_catalog_is_never_stale(open_engine: Opener) -> None:
    one, other = open_engine(), open_engine()

    def use(txn: Any) -> tuple[bytes | None, bytes | None]:
        return txn.get(0, P, b"table"), txn.get(7, P, b"a")

    def copy(txn: Transaction) -> None:
        txn.put(8, P, b"copied", txn.get(0, P, b"table") or b"")

    assert other.read(use) == other.write(use) == (None, None)
    for n in range(3):
        put(one, 0, P, b"table", b"%d" % n)
        assert other.write(use)[0] == b"%d" % n
        put(one, 0, P, b"table", b"again %d" % n)
        other.write(copy)
        assert get(one, 8, P, b"copied") == b"again %d" % n
        assert other.read(use)[0] == b"again %d" % n
        assert other.read(lambda reader: reader.get(0, P, b"table")) == b"again %d" % n
    one.write(lambda txn: txn.delete_space(7))
    assert other.write(use) == other.read(use) == (b"again 2", None)


def test_counters_of_two_engines_are_exact(open_engine: Opener) -> None:
    engines = [open_engine(), open_engine()]
    barrier = Barrier(4)
    seen: list[int] = []

    def add(txn: Transaction) -> int:
        value = int(txn.get(7, P, b"n") or b"0") + 1
        txn.put(7, P, b"n", b"%d" % value)
        txn.append(8, P, b"%d" % value)
        txn.count(7, 1, 1)
        return value

    def work(engine: PostgresEngine) -> None:
        barrier.wait()
        seen.extend([engine.write(add) for _ in range(60)])

    threads = [Thread(target=work, args=(engine,)) for engine in engines * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(1, 241))
    for engine in engines:
        assert get(engine, 7, P, b"n") == b"240"
        assert engine.read(lambda reader: reader.totals(7)) == Totals(240, 240)
        log = engine.read(lambda reader: [value for _, value in reader.scan(8, P)])
        assert log == [b"%d" % n for n in range(1, 241)]


def test_a_body_of_many_records_fetches_twice(open_engine: Opener) -> None:
    """It finds out by its second miss what else it will ask for."""
    engine = open_engine()

    def body(txn: Transaction, space: int) -> None:
        for n in range(10):
            if txn.get(space, P, b"%d" % n) is None:
                txn.put(space, P, b"%d" % n, b"")

    before = engine.counts()["fetches"]
    engine.write(partial(body, space=7))
    assert engine.counts()["fetches"] - before == 2
    outcomes = Outcomes(1)
    engine.submit(partial(body, space=8), outcomes)
    outcomes.wait()
    assert engine.counts()["fetches"] - before == 4
    # What is known is not fetched.
    engine.write(partial(body, space=7))
    assert engine.counts()["fetches"] - before == 4
    assert len(rows(engine, 7)) == len(rows(engine, 8)) == 10


class Discovered:
    """A body that misses three records, one after the other, and does something in its third run, which is
    for nothing: two before have missed records."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act
        self.runs = 0

    def __call__(self, txn: Transaction) -> str:
        self.runs += 1
        for n in range(3):
            txn.get(7, P, b"%d" % n)
        if self.runs == 3:
            self._act()
        txn.put(7, P, b"3", b"")
        return "done"


@pytest.mark.once
@pytest.mark.parametrize("submitted", [False, True])
def test_a_run_that_is_for_nothing_keeps_nobody_waiting(open_engine: Opener, submitted: bool) -> None:
    engine = open_engine()
    done: list[bool] = []

    def meanwhile() -> None:
        thread = Thread(target=put, args=(engine, 8, P, b"", b""), daemon=True)
        thread.start()
        thread.join(10)
        done.append(not thread.is_alive())

    outcomes = Outcomes(1)
    if submitted:
        engine.submit(Discovered(meanwhile), outcomes)
    else:
        outcomes(engine.write(Discovered(meanwhile)), None)
    outcomes.wait()
    assert outcomes.results == ["done"]
    assert done == [True], "the write had to wait for the run"


def raising(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


@pytest.mark.once
@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(1), MemoryError(), Interrupted()], ids=repr
)
def test_what_ends_a_run_that_is_for_nothing_is_not_swallowed(
    open_engine: Opener, error: BaseException
) -> None:
    engine, outcomes = open_engine(), Outcomes(1)
    with pytest.raises(type(error)):
        engine.write(Discovered(raising(error)))
    engine.submit(Discovered(raising(error)), outcomes)
    outcomes.wait()
    assert [type(one) for one in outcomes.errors] == [Stopped]
    assert engine.write(Discovered(lambda: None)) == "done"


@pytest.mark.once
def test_what_a_run_for_nothing_comes_to_by_mistake_is_none(open_engine: Opener) -> None:
    for error in (ValueError("by mistake"), pace.TurnOver()):
        assert open_engine().write(Discovered(raising(error))) == "done"


def test_a_long_queue_without_a_loop(open_engine: Callable[..., PostgresEngine]) -> None:
    engine = open_engine(batch_bodies_max=500)
    outcomes = Outcomes(4_000)

    def write(txn: Transaction, number: int) -> None:
        txn.put(7, P, b"%d" % number, b"")

    for n in range(4_000):
        engine.submit(partial(write, number=n), outcomes)
    outcomes.wait()
    assert len(outcomes.results) == len(rows(engine, 7)) == 4_000


def test_submitted_bodies_that_lose_run_again(open_engine: Opener) -> None:
    """On an event loop: each round, another engine is faster with some of the records."""
    one, other = open_engine(), open_engine()
    loop = Loop(one)

    def add(txn: Transaction, key: bytes) -> int:
        value = int(txn.get(7, P, key) or b"0") + 1
        txn.put(7, P, key, b"%d" % value)
        return value

    for turn in range(1, 6):
        other.write(lambda txn: [add(txn, key) for key in (b"a", b"c")])
        outcomes = Outcomes(6)
        for key in (b"a", b"b", b"c", b"d", b"a", b"b"):
            one.submit(partial(add, key=key), outcomes)
        loop.run(lambda: len(outcomes.results) == 6)  # noqa: B023
        outcomes.wait()
        # a: two after one; b: two; c: one after one; d: one.
        expected = [3 * turn - 1, 3 * turn, 2 * turn - 1, 2 * turn, 2 * turn, turn]
        assert sorted(outcomes.results) == sorted(expected)
    assert one.counts()["lost_commits"] == 4


def test_bodies_that_come_while_others_wait_for_locks_share_their_commit(
    open_engine: Opener, postgres_url: str, name: str
) -> None:
    engine = open_engine()
    put(engine, 7, P, b"n", b"0")
    engine._turns.lock_first_share = ALWAYS

    def add(txn: Transaction) -> int:
        value = int(txn.get(7, P, b"n") or b"0") + 1
        txn.put(7, P, b"n", b"%d" % value)
        return value

    outcomes = Outcomes(21)
    with psycopg.connect(postgres_url) as holder, psycopg.connect(postgres_url, autocommit=True) as watcher:
        holder.execute(f"UPDATE {name}.records SET version = 1, value = '100' WHERE space = 7")
        engine.submit(add, outcomes)
        blocked = "SELECT 1 FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
        while watcher.execute(blocked, (holder.info.backend_pid,)).fetchone() is None:
            pass
        commits = engine.counts()["commits"]
        for _ in range(20):
            engine.submit(add, outcomes)
    outcomes.wait()
    assert outcomes.results == list(range(101, 122))
    assert engine.counts()["commits"] == commits + 1


def test_a_body_that_needs_other_records_after_it_has_waited_runs_again(
    open_engine: Opener, postgres_url: str, name: str
) -> None:
    """One record says which other one the body changes. That is another one when the first is locked."""
    engine = open_engine()
    for sort, value in ((b"which", b"a"), (b"a", b"0"), (b"b", b"0")):
        put(engine, 7, P, sort, value)
    engine._turns.lock_first_share = ALWAYS

    def add(txn: Transaction) -> bytes:
        which = txn.get(7, P, b"which") or b""
        txn.put(7, P, which, b"%d" % (int(txn.get(7, P, which) or b"0") + 1))
        return which

    outcomes = Outcomes(2)
    with psycopg.connect(postgres_url) as holder, psycopg.connect(postgres_url, autocommit=True) as watcher:
        holder.execute(f"UPDATE {name}.records SET version = 1, value = 'b' WHERE sort = 'which'")
        engine.submit(add, outcomes)
        engine.submit(lambda txn: txn.get(7, P, b"which"), outcomes)
        blocked = "SELECT 1 FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
        while watcher.execute(blocked, (holder.info.backend_pid,)).fetchone() is None:
            pass
    outcomes.wait()
    assert outcomes.results == [b"b", b"b"]
    assert [get(engine, 7, P, sort) for sort in (b"a", b"b")] == [b"0", b"1"]


def test_an_absent_record_stays_absent_for_who_read_it(open_engine: Opener) -> None:
    """Write skew by absence: of two records, the one may be made only while the other one is not there."""
    engines = [open_engine(), open_engine()]

    def make(txn: Transaction, number: int, mine: bytes, others: bytes) -> bool:
        if txn.get(7, others, b"%d" % number) is not None:
            return False
        txn.put(7, mine, b"%d" % number, b"")
        return True

    made: dict[bytes, list[bool]] = {P: [], Q: []}
    barrier = Barrier(2)

    def work(engine: PostgresEngine, mine: bytes, others: bytes) -> None:
        for number in range(60):
            barrier.wait()
            made[mine].append(engine.write(partial(make, number=number, mine=mine, others=others)))

    threads = [Thread(target=work, args=pair) for pair in ((engines[0], P, Q), (engines[1], Q, P))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one + other for one, other in zip(made[P], made[Q], strict=True)] == [1] * 60


@pytest.mark.parametrize("locks_first", [True, False])
def test_nobody_makes_a_record_while_a_commit_relies_on_its_absence(
    open_engine: Opener, postgres_url: str, name: str, locks_first: bool
) -> None:
    one, other = open_engine(), open_engine()
    for engine in (one, other):
        engine.write(lambda txn: [txn.get(7, P, b"a"), txn.get(7, P, b"b")])
        engine._turns.lock_first_share = ALWAYS if locks_first else NEVER

    def make(txn: Transaction, mine: bytes, others: bytes) -> bool:
        if txn.get(7, P, others) is not None:
            return False
        txn.put(7, P, mine, b"")
        return True

    made = Outcomes(1)
    blocked = (
        "SELECT 1 FROM pg_stat_activity WHERE query LIKE %s AND cardinality(pg_blocking_pids(pid)) > 0"
    )
    with psycopg.connect(postgres_url, autocommit=True) as watcher:

        def meanwhile() -> None:
            other.submit(partial(make, mine=b"b", others=b"a"), made)
            while not made.results and watcher.execute(blocked, (f"%{name}.%",)).fetchone() is None:
                assert made.errors == []

        with faults.at(one, "after", meanwhile):
            assert one.write(partial(make, mine=b"a", others=b"b"))
    made.wait()
    assert made.results == [False]
    assert len(rows(one, 7)) == 1


@pytest.mark.parametrize("deleted_is_there", [True, False])
@pytest.mark.parametrize("meanwhile", ["nothing", "changed", "deleted", "made"])
def test_a_record_that_is_deleted_unread_beside_one_that_was_read(
    open_engine: Opener, monkeypatch: pytest.MonkeyPatch, meanwhile: str, deleted_is_there: bool
) -> None:
    """The store's lock is taken only if the record is not there: nothing else keeps others from making it."""
    engine, other = open_engine(), open_engine()
    exclusive: list[bool] = []
    arguments = Writer._arguments

    def noted(writer: Writer, group: Group) -> Arguments:
        made = arguments(writer, group)
        exclusive.append(made.exclusive_ms > 0)
        return made

    if meanwhile != "made":
        put(engine, 7, P, b"a", b"1")
    assert engine.write(lambda txn: txn.get(7, P, b"a")) == (None if meanwhile == "made" else b"1")
    if deleted_is_there:
        put(other, 7, P, b"b", b"1")
    if meanwhile == "deleted":
        other.write(lambda txn: txn.delete(7, P, b"a"))
    elif meanwhile != "nothing":
        put(other, 7, P, b"a", b"2")

    def body(txn: Transaction) -> None:
        txn.put(7, P, b"a", (txn.get(7, P, b"a") or b"") + b"+")
        txn.delete(7, P, b"b")
        txn.delete(7, P, b"c")

    put(other, 7, P, b"c", b"1")
    monkeypatch.setattr(Writer, "_arguments", noted)
    engine.write(body)
    left = {"nothing": b"1+", "changed": b"2+", "deleted": b"+", "made": b"2+"}
    assert rows(engine, 7) == rows(other, 7) == [(P, b"a", left[meanwhile])]
    assert any(exclusive) is not deleted_is_there


def test_a_range_stays_as_who_read_it_saw_it(open_engine: Opener) -> None:
    """Each body counts the records of a partition, and adds one that says how many there were."""
    engines = [open_engine(), open_engine()]
    barrier = Barrier(4)

    def add(txn: Transaction, by: bytes) -> None:
        there = sum(1 for _ in txn.scan(7, P))
        txn.put(7, P, b"%05d" % there, by)

    def put_by_get(txn: Transaction, by: bytes) -> None:
        at = int(txn.get(8, P, b"") or b"0")
        while txn.get(7, P, b"%05d" % at) is not None:
            at += 1
        txn.put(7, P, b"%05d" % at, by)
        txn.put(8, P, b"", b"%d" % at)

    def work(engine: PostgresEngine, by: bytes, body: Callable[..., None]) -> None:
        barrier.wait()
        for _ in range(15):
            engine.write(partial(body, by=by))

    pairs = [(engines[0], add), (engines[1], add), (engines[0], put_by_get), (engines[1], put_by_get)]
    threads = [Thread(target=work, args=(one, b"%d" % n, body)) for n, (one, body) in enumerate(pairs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = rows(engines[0], 7)
    assert [sort for _, sort, _ in found] == [b"%05d" % n for n in range(60)]
    assert sorted(value for _, _, value in found) == sorted([b"0", b"1", b"2", b"3"] * 15)


@pytest.mark.parametrize("lists", [2, 8])
def test_histories_are_strictly_serializable(open_engine: Opener, lists: int) -> None:
    engines = [open_engine(), open_engine()]
    run = Run(engines, lists=lists, seed=lists, transactions=40)
    run.run(threads_per_engine=3)
    assert len(run.history) == 240
    assert all(one.status == "ok" for one in run.history)
    final = run.final(engines[0])
    assert run.anomalies() == []
    values = sum(map(len, final.values()))
    assert engines[1].read(lambda reader: reader.totals(SPACE)) == Totals(values, 4 * values)


def test_a_commit_that_postgres_refuses(
    open_engine: Opener, postgres_url: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As where its disk is full: the bodies fail, none of their writes is there, and later bodies run."""
    caplog.set_level(logging.CRITICAL)
    engine = open_engine()
    put(engine, 7, P, b"a", b"before")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            f"CREATE FUNCTION {name}.refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$"
        )
        connection.execute(
            f"CREATE TRIGGER refuse BEFORE INSERT ON {name}.log EXECUTE FUNCTION {name}.refuse()"
        )

        def write(txn: Transaction) -> None:
            txn.put(7, P, b"a", b"after")
            txn.append(8, P, b"")

        with pytest.raises(CommitFailed, match="no space left"):
            engine.write(write)
        assert engine.refusing() is None
        assert rows(engine, 7) == [(P, b"a", b"before")]
        put(engine, 7, P, b"b", b"without a log")
        connection.execute(f"DROP TRIGGER refuse ON {name}.log")
    engine.write(write)
    assert rows(engine, 7) == [(P, b"a", b"after"), (P, b"b", b"without a log")]


def test_a_deleted_space_is_cleared(open_engine: Opener, postgres_url: str, name: str) -> None:
    engine = open_engine()

    def fill(txn: Transaction) -> None:
        for n in range(500):
            txn.put(7, P, b"%d" % n, b"")
            txn.put(8, P, b"%d" % n, b"")

    engine.write(fill)
    engine.write(lambda txn: txn.delete_space(7))
    assert rows(engine, 7) == []
    engine.upkeep()
    engine.close()  # waits for what upkeep began
    with psycopg.connect(postgres_url) as connection:
        left = connection.execute(f"SELECT space, count(*) FROM {name}.records GROUP BY space").fetchall()
        cleared = connection.execute(f"SELECT count(*) FROM {name}.cleared").fetchall()
    assert left == [(8, 500)]
    assert cleared == [(0,)]


def test_long_reads_are_of_one_moment(open_engine: Opener) -> None:
    """A body whose scan takes several statements does not see what is written meanwhile."""
    engine, other = open_engine(), open_engine()

    def fill(txn: Transaction) -> None:
        for n in range(200):
            txn.put(7, P, b"%04d" % n, b"old")

    engine.write(fill)

    def renew(txn: Transaction) -> None:
        for n in range(100, 300):
            txn.put(7, P, b"%04d" % n, b"new")

    def look(reader: Reader) -> list[bytes]:
        found: list[bytes] = []
        for sort, value in reader.scan(7, P, likely=150):  # more than is fetched at first
            if not found:
                other.write(renew)
            found.append(value)
            assert reader.get(7, P, sort) == value
        return found

    assert engine.read(look) == [b"old"] * 200


# What is not a store, or cannot be used as one.


def test_an_unknown_database_is_refused(postgres_url: str, name: str) -> None:
    with pytest.raises(StorageError, match=r"no database 'nothing-there'. Make it, by CREATE DATABASE"):
        PostgresEngine(postgres_url.replace("dbname=postgres", "dbname=nothing-there"), schema=name)
    with pytest.raises(StorageError, match="does not answer"):
        PostgresEngine("host=/nowhere/at/all user=postgres", schema=name)
    with pytest.raises(StorageError, match=r"not a URL of PostgreSQL.*postgresql://user@host"):
        PostgresEngine("this is no url", schema=name)
    with pytest.raises(StorageError, match="refuses the user nobody_at_all"):
        PostgresEngine(postgres_url.replace("user=postgres", "user=nobody_at_all"), schema=name)


@pytest.mark.parametrize(
    "url",
    [
        "postgres:/user:secret@host",
        "postgresql://user:secret@127.0.0.1:1/none",
        "host=127.0.0.1 port=1 password = secret",
        "host=127.0.0.1 port=1 password='secret' x",
        "password=secret nonsense",
    ],
)
def test_no_password_is_shown(url: str) -> None:
    with pytest.raises(StorageError, match=r"does not answer|not a URL") as raised:
        PostgresEngine(url)
    assert "secret" not in str(raised.value)


def test_items_expire_by_the_clock_of_postgres(open_engine: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's clock is ten minutes ahead, and deletes nothing that is due in five."""
    now = time.time()
    monkeypatch.setattr("hashrange.clock.time.time", lambda: now + 600)
    with Database(open_engine()) as database:

        def run(operation: str, **request: Any) -> Any:
            return database.execute(operation, {"TableName": "events", **request})

        create(database, "events", "pk")
        database.settle()
        run("UpdateTimeToLive", **expiry_of("events", "end"))
        for name, end in (("soon", now + 300), ("over", now - 300)):
            run("PutItem", Item={"pk": {"S": name}, "end": {"N": str(int(end))}})
        database.settle()
        assert [item["pk"] for item in decoded(run("Scan"))["Items"]] == [{"S": "soon"}]


def decoded(answer: Any) -> Any:
    return orjson.loads(orjson.dumps(answer))
