"""The engine over PostgreSQL: several engines on one store, connections that are cut, wrong databases."""

from __future__ import annotations

import logging
import math
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
from hashrange.database import Database
from hashrange.storage.api import (
    CommitFailed,
    CommitUnknown,
    Reader,
    StorageError,
    Totals,
    Transaction,
)
from hashrange.storage.contract import faults
from hashrange.storage.contract.loops import Loop
from hashrange.storage.contract.records import Outcomes, P, Q, get, put, rows
from hashrange.storage.postgres import PostgresEngine, connections, writer
from list_append import SPACE, Run


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


def cut_connections(url: str, schema: str) -> None:
    """Cut the connections on which the engines of a test commit, as an administrator does; not those of other
    tests, which use the same PostgreSQL at the same time."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND backend_type = 'client backend' AND query LIKE %s",
            (f"%{schema}.commit_group%",),
        )


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
    # After two losses the records are contended, and locked before their bodies run.
    assert one.counts()["lost_commits"] == 2


def test_bodies_that_come_while_others_wait_for_locks_share_their_commit(
    open_engine: Opener, postgres_url: str, name: str
) -> None:
    engine = open_engine()
    put(engine, 7, P, b"n", b"0")
    engine._commits._contention.keys[7, P, b"n"] = math.inf

    def add(txn: Transaction) -> int:
        value = int(txn.get(7, P, b"n") or b"0") + 1
        txn.put(7, P, b"n", b"%d" % value)
        return value

    outcomes = Outcomes(21)
    with psycopg.connect(postgres_url) as holder, psycopg.connect(postgres_url, autocommit=True) as watcher:
        holder.execute(f"SELECT 1 FROM {name}.records WHERE space = 7 FOR UPDATE")
        engine.submit(add, outcomes)
        blocked = "SELECT 1 FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
        while watcher.execute(blocked, (holder.info.backend_pid,)).fetchone() is None:
            pass
        commits = engine.counts()["commits"]
        for _ in range(20):
            engine.submit(add, outcomes)
    outcomes.wait()
    assert outcomes.results == list(range(1, 22))
    assert engine.counts()["commits"] == commits


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


def test_histories_with_cut_connections(
    open_engine: Opener, postgres_url: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Connections are cut while commits are under way; each outcome is found out, and nothing is lost."""
    caplog.set_level(logging.CRITICAL)
    engines = [open_engine(), open_engine()]
    run = Run(engines, lists=4, seed=4, transactions=60)
    before = [engine.counts()["reconnections"] for engine in engines]

    def meanwhile() -> None:
        while len(run.history) < 300 and not run.surprises:
            cut_connections(postgres_url, name)

    run.run(threads_per_engine=3, meanwhile=meanwhile)
    final = run.final(engines[0])
    assert [engine.counts()["reconnections"] for engine in engines] > before
    assert run.anomalies() == []
    values = sum(map(len, final.values()))
    assert engines[1].read(lambda reader: reader.totals(SPACE)) == Totals(values, 4 * values)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_connection_cut_around_a_commit(
    open_engine: Opener, postgres_url: str, name: str, moment: Any
) -> None:
    """What became of the commit is found out; the body is not applied twice."""
    engine = open_engine()

    def add(txn: Transaction) -> int:
        value = int(txn.get(7, P, b"n") or b"0") + 1
        txn.put(7, P, b"n", b"%d" % value)
        txn.append(8, P, b"%d" % value)
        return value

    engine.write(add)
    cuts: list[None] = []

    def cut() -> None:
        if not cuts:
            cuts.append(None)
            cut_connections(postgres_url, name)

    with faults.at(engine, moment, cut):
        assert engine.write(add) == 2
    assert len(cuts) == 1
    assert engine.write(add) == 3
    assert [value for _, _, value in rows(engine, 8)] == [b"1", b"2", b"3"]


def test_a_commit_whose_acknowledgement_is_lost(open_engine: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit came to pass, and nobody heard of it: it is found out, and not done again."""
    engine = open_engine()
    losses: list[str] = []

    def call(connection: Any, statement: str, values: Any = ()) -> Any:
        found = connections.call(connection, statement, values)
        if len(losses) < 2 and ("commit_group" in statement if not losses else statement == "COMMIT"):
            losses.append(statement)
            connection.close()
            raise connections.Lost("the test cut the connection")
        return found

    monkeypatch.setattr(writer, "call", call)

    def add(txn: Transaction) -> int:
        value = int(txn.get(7, P, b"n") or b"0") + 1
        txn.put(7, P, b"n", b"%d" % value)
        txn.append(8, P, b"%d" % value)
        return value

    def add_alone(txn: Transaction) -> int:
        assert len(list(txn.scan(8, P))) == 1
        return add(txn)

    assert engine.write(add) == 1
    assert engine.write(add_alone) == 2
    assert len(losses) == 2
    assert engine.counts()["reconnections"] == 2
    assert engine.write(add) == 3
    assert [value for _, _, value in rows(engine, 8)] == [b"1", b"2", b"3"]


def servers(url: str, name: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute(f"SELECT id FROM {name}.server ORDER BY id")]


def grow_old(url: str, name: str, id_: int) -> None:
    """Let an engine have committed nothing for longer than any engine does that goes on."""
    with psycopg.connect(url) as connection:
        connection.execute(
            f"UPDATE {name}.server SET seen = seen - 2 * %s::interval WHERE id = %s",
            (writer.ABSENT_AFTER, id_),
        )


def test_the_rows_of_engines_long_gone_are_removed(open_engine: Opener, postgres_url: str, name: str) -> None:
    first, second = open_engine(), open_engine()
    put(first, 7, P, b"a", b"1")
    put(second, 7, P, b"b", b"1")
    gone, ended = servers(postgres_url, name)
    first.close()
    second.close()
    grow_old(postgres_url, name, gone)
    third = open_engine()
    assert servers(postgres_url, name)[:-1] == [ended]
    put(third, 7, P, b"a", b"2")
    assert get(third, 7, P, b"a") == b"2"
    assert max(servers(postgres_url, name)) > ended  # no number is given twice: it is a part of versions


def test_an_engine_whose_row_was_removed_goes_on(open_engine: Opener, postgres_url: str, name: str) -> None:
    engine = open_engine()
    put(engine, 7, P, b"n", b"0")
    add = adding(8)
    for count, body in enumerate((add, alone(add)), 1):
        before = servers(postgres_url, name)
        grow_old(postgres_url, name, engine._writer.server)
        open_engine()
        assert set(servers(postgres_url, name)).isdisjoint(before[-1:])
        assert engine.write(body) == count
        assert engine._writer.server in servers(postgres_url, name)
    assert [value for _, _, value in rows(engine, 8)] == [b"1", b"2"]


@pytest.mark.parametrize("is_alone", [False, True])
def test_nobody_takes_a_new_row_for_the_outcome_of_an_old_commit(
    open_engine: Opener, postgres_url: str, name: str, is_alone: bool
) -> None:
    """A commit's connection was cut, and the machine of its engine then stood still for days."""
    engine = open_engine()
    body = alone(adding(8)) if is_alone else adding(8)
    cuts: list[None] = []

    def stand_still() -> None:
        if not cuts:
            cuts.append(None)
            cut_connections(postgres_url, name)
            with psycopg.connect(postgres_url) as connection:
                connection.execute(f"DELETE FROM {name}.server")

    with faults.at(engine, "after", stand_still), pytest.raises(CommitUnknown, match="for so long"):
        engine.write(body)
    assert engine.write(body) == 1  # the cut came before PostgreSQL had committed
    assert [value for _, _, value in rows(engine, 8)] == [b"1"]


def adding(log: int) -> Callable[[Transaction], int]:
    """A body that adds one to a counter, and appends the sum to a log."""

    def add(txn: Transaction) -> int:
        value = int(txn.get(7, P, b"n") or b"0") + 1
        txn.put(7, P, b"n", b"%d" % value)
        txn.append(log, P, b"%d" % value)
        return value

    return add


def alone(body: Callable[[Transaction], int]) -> Callable[[Transaction], int]:
    """The body, run under the exclusive lock, because it reads a range."""

    def run(txn: Transaction) -> int:
        list(txn.scan(9, P))
        return body(txn)

    return run


def test_a_commit_that_postgres_refuses(
    open_engine: Opener, postgres_url: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As where its disk is full: the bodies hear of it, nothing of them is there, and the next ones go on."""
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


# What is no store, or cannot be used as one.


def test_an_unknown_database_is_refused(postgres_url: str, name: str) -> None:
    with pytest.raises(StorageError, match=r"does not answer.*nothing-there"):
        PostgresEngine(postgres_url.replace("dbname=postgres", "dbname=nothing-there"), schema=name)
    with pytest.raises(StorageError, match="does not answer"):
        PostgresEngine("host=/nowhere/at/all user=postgres", schema=name)
    with pytest.raises(StorageError, match="does not answer"):
        PostgresEngine("this is no url", schema=name)


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
    with pytest.raises(StorageError, match="does not answer") as raised:
        PostgresEngine(url)
    assert "secret" not in str(raised.value)


def test_items_expire_by_the_clock_of_postgres(open_engine: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's clock is ten minutes ahead, and deletes nothing that is due in five."""
    now = time.time()
    monkeypatch.setattr("hashrange.clock.time.time", lambda: now + 600)
    with Database(open_engine()) as database:

        def run(operation: str, **request: Any) -> Any:
            return database.execute(operation, {"TableName": "events", **request})

        run(
            "CreateTable",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        )
        database.settle()
        ttl = {"Enabled": True, "AttributeName": "end"}
        run("UpdateTimeToLive", TimeToLiveSpecification=ttl)
        for name, end in (("soon", now + 300), ("over", now - 300)):
            run("PutItem", Item={"pk": {"S": name}, "end": {"N": str(int(end))}})
        database.settle()
        assert [item["pk"] for item in decoded(run("Scan"))["Items"]] == [{"S": "soon"}]


def decoded(answer: Any) -> Any:
    return orjson.loads(orjson.dumps(answer))
