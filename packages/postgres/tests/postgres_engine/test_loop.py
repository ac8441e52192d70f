"""The engine over PostgreSQL: statements that its event loop waits for, and how few there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import islice
from typing import Any

import psycopg
import pytest

import pgbouncer
import postgres
from hashrange.storage.api import Reader, Transaction
from hashrange_engine_tests.loops import Loop
from hashrange_engine_tests.records import Outcomes, P, Q, get, put
from hashrange_postgres import PostgresEngine
from hashrange_postgres.wire import connections


@pytest.fixture
def name() -> str:
    """The name of the test's schema."""
    return postgres.new_schema()


@pytest.fixture
def open_engine(postgres_url: str, name: str) -> Iterator[Callable[[], PostgresEngine]]:
    """Opens engines over one store."""
    with ExitStack() as stack:

        def opener() -> PostgresEngine:
            engine = PostgresEngine(postgres_url, schema=name)
            stack.callback(engine.close)
            return engine

        yield opener


Opener = Callable[[], PostgresEngine]


def on_loop(engine: PostgresEngine, submit: Callable[[Callable[[Any], Any], Any], None], body: Any) -> Any:
    """The result of a body that an event loop submits."""
    loop, outcomes = Loop(engine), Outcomes(1)
    submit(body, outcomes)
    loop.run(lambda: bool(outcomes.results))
    outcomes.wait()
    return outcomes.results[0]


def test_a_page_of_one_partition_is_one_statement(open_engine: Opener) -> None:
    engine = open_engine()
    for n in range(200):
        put(engine, 7, P, b"%03d" % n, b"value %d" % n)
    put(engine, 7, Q, b"", b"another partition")
    put(engine, 0, P, b"table", b"")

    def page(reader: Reader, low: bytes, high: bytes | None, records: int, reverse: bool) -> list[bytes]:
        assert reader.get(0, P, b"table") == b""
        scan = reader.scan(7, P, low, high, reverse=reverse, likely=records)
        return [sort for sort, _ in islice(scan, records)]

    page_of_ten = partial(page, low=b"150", high=None, records=10, reverse=False)
    on_loop(engine, engine.submit_read, page_of_ten)  # it has the catalog now, and a connection
    cases = [
        (b"150", None, 10, False, [b"%03d" % n for n in range(150, 160)]),
        (b"", b"100", 10, True, [b"%03d" % n for n in range(99, 89, -1)]),
        (b"195", None, 10, False, [b"%03d" % n for n in range(195, 200)]),
        (b"", b"002", 10, True, [b"001", b"000"]),
        (b"300", None, 10, False, []),
        (b"5", b"2", 10, False, []),
    ]
    for low, high, records, reverse, expected in cases:
        body = partial(page, low=low, high=high, records=records, reverse=reverse)
        for run in (partial(on_loop, engine, engine.submit_read), engine.read):
            before = engine.counts()["fetches"]
            assert run(body) == expected
            assert engine.counts()["fetches"] - before <= 1
    assert engine.counts()["direct_reads"] == 0
    whole = partial(page, low=b"", high=None, records=200, reverse=False)
    assert len(on_loop(engine, engine.submit_read, whole)) == len(engine.read(whole)) == 200
    assert engine.counts()["direct_reads"] == 2, "long ranges are read in a transaction of their own"


def test_a_loop_that_runs_no_longer_keeps_nobody_waiting(open_engine: Opener) -> None:
    """It has sent a commit and a fetch, and takes no answer: threads of the engine do, after a second."""
    engine = open_engine()
    put(engine, 7, P, b"a", b"old")
    ended, first, outcomes = Loop(engine), Outcomes(1), Outcomes(2)
    engine.submit_read(lambda reader: reader.get(7, P, b"a"), first)
    ended.run(lambda: bool(first.results))  # it has the connections that it waits on now
    engine.submit(lambda txn: txn.put(7, P, b"b", b"sent"), outcomes)
    engine.submit_read(lambda reader: reader.get(7, P, b"a"), outcomes)
    while ended.soon:
        ended.round()
    assert engine.write(lambda txn: txn.get(7, P, b"b")) == b"sent"
    assert get(engine, 7, P, b"b") == b"sent"
    while len(outcomes.results) < 2:
        ended.handed.get(timeout=30)()
    outcomes.wait()


def test_a_loop_gets_what_does_not_fit_into_a_socket(open_engine: Opener) -> None:
    engine = open_engine()
    put(engine, 7, P, b"%02000d" % 5, b"found")

    def look(reader: Reader) -> list[bytes | None]:
        return reader.get_many([(7, P, b"%02000d" % n) for n in range(1_250)])

    def write(txn: Transaction) -> None:
        txn.put(7, P, b"large", bytes(2_000_000))

    for _ in range(2):  # for the first time a thread fetches, and makes the loop's connection
        found = on_loop(engine, engine.submit_read, look)
        assert [n for n, value in enumerate(found) if value is not None] == [5]
    on_loop(engine, engine.submit, write)
    assert get(engine, 7, P, b"large") == bytes(2_000_000)


@pytest.mark.parametrize("acts", ["deletes", "puts", "deletes and puts", "only reads"])
@pytest.mark.parametrize("other_acts", ["changes", "deletes"])
def test_what_another_engine_changed_is_noticed_however_it_is_written(
    open_engine: Opener, acts: str, other_acts: str
) -> None:
    one, other = open_engine(), open_engine()
    for engine in (one, other):
        put(engine, 7, P, b"a", b"old")
        put(engine, 7, P, b"b", b"old")

    def act(txn: Transaction) -> bytes | None:
        value = txn.get(7, P, b"a")
        if value == b"old":
            if "deletes" in acts:
                txn.delete(7, P, b"a")
            if acts == "puts":
                txn.put(7, P, b"a", b"of one")
            if acts == "deletes and puts":
                txn.put(7, P, b"b", (txn.get(7, P, b"b") or b"") + b", put")
            if acts == "only reads":
                txn.put(7, P, b"b", b"of one")
        return value

    assert one.write(lambda txn: [txn.get(7, P, b"a"), txn.get(7, P, b"b")]) == [b"old", b"old"]
    if other_acts == "changes":
        put(other, 7, P, b"a", b"new")
    else:
        other.write(lambda txn: txn.delete(7, P, b"a"))
    expected = b"new" if other_acts == "changes" else None
    assert one.write(act) == expected
    assert (get(other, 7, P, b"a"), get(other, 7, P, b"b")) == (expected, b"old")


def test_a_commit_of_an_epoch_that_is_over_does_not_come_to_pass(
    open_engine: Opener, postgres_url: str, name: str
) -> None:
    """It may still be on its way when its engine has connected again, and looked up what became of it."""
    engine = open_engine()
    ways: list[Callable[[Any], Any]] = [engine.write, partial(on_loop, engine, engine.submit)]
    for reconnections, write in enumerate(ways, 1):
        write(lambda txn: txn.put(7, P, b"a", b"before"))
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"UPDATE {name}.server SET epoch = epoch + 1")
        write(lambda txn: txn.put(7, P, b"a", b"after"))
        assert get(engine, 7, P, b"a") == b"after"
        assert engine.counts()["reconnections"] == reconnections


def test_statements_are_prepared_where_no_pooler_is_between(
    postgres_url: str, pooler: pgbouncer.Pooler
) -> None:
    for url, direct in ((postgres_url, True), (pooler.url, False)):
        connection = connections.connect(url)
        assert connections.is_direct(connection) == direct
        connection.close()


def test_an_engine_whose_prepared_statements_are_gone_goes_on(open_engine: Opener) -> None:
    engine = open_engine()

    def add(txn: Transaction) -> None:
        txn.put(7, P, b"n", (txn.get(7, P, b"n") or b"") + b"1")

    def read(reader: Reader) -> bytes | None:
        return reader.get(7, P, b"n")

    on_loop(engine, engine.submit, add)
    assert on_loop(engine, engine.submit_read, read) == b"1"
    for connection, prepared in ((engine._writer._connection, 3), (engine._fetching._connection, 3)):
        assert connection is not None
        assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (prepared,)
        connection.execute("DEALLOCATE ALL")
    on_loop(engine, engine.submit, add)
    assert on_loop(engine, engine.submit_read, read) == b"11"
    assert engine.counts()["reconnections"] == 1


class Pair:
    """A read body that gets two records, and counts its runs. `between` is done once, between the two."""

    def __init__(self, between: Callable[[], object] = lambda: None) -> None:
        self.runs = 0
        self._between: Callable[[], object] | None = between

    def __call__(self, reader: Reader) -> tuple[bytes | None, bytes | None]:
        self.runs += 1
        first = reader.get(7, P, b"a")
        between, self._between = self._between, None
        if between is not None:
            between()
        return first, reader.get(7, P, b"b")


def write_pair(engine: PostgresEngine, value: bytes | None) -> None:
    def body(txn: Transaction) -> None:
        for sort in (b"a", b"b"):
            if value is None:
                txn.delete(7, P, sort)
            else:
                txn.put(7, P, sort, value)

    engine.write(body)


@pytest.mark.parametrize("submitted", [False, True])
def test_a_read_of_what_is_known_runs_once_and_is_verified(open_engine: Opener, submitted: bool) -> None:
    one, other = open_engine(), open_engine()

    def read() -> tuple[Any, int, int]:
        """What is read, how many times the body runs, and how many statements that takes."""
        pair, before = Pair(), one.counts()["fetches"]
        found = on_loop(one, one.submit_read, pair) if submitted else one.read(pair)
        return found, pair.runs, one.counts()["fetches"] - before

    write_pair(one, b"1")
    assert read() == ((b"1", b"1"), 1, 1)
    write_pair(other, b"2")
    assert read() == ((b"2", b"2"), 2, 1)
    assert read() == ((b"2", b"2"), 1, 1), "what has changed is known from then on"
    write_pair(other, None)
    assert read() == ((None, None), 2, 1)
    assert read() == ((None, None), 1, 1), "also that there is no record"
    put(other, 7, P, b"b", b"3")
    assert read() == ((None, b"3"), 2, 1)
    assert read() == ((None, b"3"), 1, 1)


@pytest.mark.parametrize("cached", [(b"a", b"b"), (b"a",), (b"b",), ()], ids=repr)
@pytest.mark.parametrize("after", [b"2", None], ids=repr)
def test_a_read_sees_one_moment_whatever_is_known(
    open_engine: Opener, cached: tuple[bytes, ...], after: bytes | None
) -> None:
    one, other = open_engine(), open_engine()
    write_pair(other, b"1")
    for sort in cached:
        get(one, 7, P, sort)
    pair = Pair(lambda: write_pair(other, after))
    assert one.read(pair) == (after, after)
    assert pair.runs <= 4
    assert one.counts()["direct_reads"] == 0


def test_a_space_that_another_engine_deletes_is_gone_for_a_read_under_way(open_engine: Opener) -> None:
    one, other = open_engine(), open_engine()
    write_pair(one, b"1")
    pair = Pair(lambda: other.write(lambda txn: txn.delete_space(7)))
    assert one.read(pair) == (None, None)
    assert pair.runs == 2


def test_an_error_over_what_has_changed_is_none(open_engine: Opener) -> None:
    one, other = open_engine(), open_engine()
    put(one, 7, P, b"a", b"bad")

    def body(reader: Reader) -> bytes | None:
        value = reader.get(7, P, b"a")
        if value == b"bad":
            raise ValueError(value)
        return value

    with pytest.raises(ValueError, match="bad"):
        one.read(body)
    put(other, 7, P, b"a", b"good")
    assert one.read(body) == b"good"
