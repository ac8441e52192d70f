"""The engine over PostgreSQL: numbers and stamps of commits that are under way at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import psycopg
import pytest

import postgres
from hashrange.storage.api import Reader, Transaction
from hashrange_engine_tests import faults
from hashrange_engine_tests.records import Outcomes, P, rows
from hashrange_postgres import PostgresEngine, schema

LOGS: Final = (8, 9)
KEPT: Final = 10


class Store:
    """Two engines on a store with two spaces for logs, and a connection that looks at it."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        self.schema = postgres.new_schema()
        self.one, self.other = [PostgresEngine(url, schema=self.schema) for _ in range(2)]
        for engine in (self.one, self.other):
            stack.callback(engine.close)
        self.connection = stack.enter_context(psycopg.connect(url, autocommit=True))
        self.one.write(lambda txn: [txn.position(space) for space in LOGS])

    def while_under_way(self, body: Callable[[Transaction], Any], act: Callable[[], None]) -> None:
        """Do `act` while the first engine has committed a body but for the end of its transaction."""
        outcomes = Outcomes(1)
        with faults.at(self.one, "after", act):
            self.one.submit(body, outcomes)
            outcomes.wait()
        assert outcomes.errors == []

    def log(self, space: int) -> list[bytes]:
        """The records of a space's logs, as a reader sees them."""

        def look(reader: Reader) -> list[bytes]:
            found = {place: value for _, place, value in reader.scan_space(space)}
            return [found[place] for place in sorted(found)]

        return self.other.read(look)

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of a statement about the store."""
        return self.connection.execute(statement.format(schema=self.schema), values).fetchall()


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    with ExitStack() as stack:
        yield Store(postgres_url, stack)


def keeping(name: bytes, *spaces: int) -> Callable[[Transaction], None]:
    """A body that writes a record, keeps one under its stamp, and appends to logs."""

    def body(txn: Transaction) -> None:
        txn.put(7, P, name, b"")
        txn.keep(KEPT, P, b"k", name, 1_000)
        for space in spaces:
            txn.append(space, P, b"<" + (5).to_bytes(8) + b">" + name, 1)

    return body


def names(values: list[bytes]) -> list[bytes]:
    return [value[10:] for value in values]


def test_commits_on_different_records_do_not_wait_for_each_other(store: Store) -> None:
    """They keep records and append to the same log; readers see the log up to the first one."""
    seen: list[list[list[bytes]]] = []

    def act() -> None:
        outcomes = Outcomes(2)
        store.other.submit(keeping(b"second", *LOGS), outcomes)
        store.other.submit(keeping(b"third", LOGS[1]), outcomes)
        outcomes.wait()  # forever, if the second engine waited for the first one
        assert outcomes.errors == []
        seen.append([names(store.log(space)) for space in LOGS])

    store.while_under_way(keeping(b"first", LOGS[0]), act)
    seen.append([names(store.log(space)) for space in LOGS])
    # A log that the first commit does not write is read to its end meanwhile.
    assert seen[0] == [[], [b"second", b"third"]]
    assert seen[1] == [[b"first", b"second"], [b"second", b"third"]]
    kept = [(sort, value) for _, sort, value in rows(store.one, KEPT)]
    assert [value for _, value in sorted(kept)] == [b"first", b"second", b"third"]


def test_a_commit_that_fails_stops_no_reader(store: Store) -> None:
    def act() -> None:
        store.other.write(keeping(b"second", LOGS[0]))
        raise OSError(faults.CAUSE)

    outcomes = Outcomes(1)
    with faults.at(store.one, "after", act):
        store.one.submit(keeping(b"first", LOGS[0]), outcomes)
        outcomes.wait()
    assert len(outcomes.errors) == 1
    assert names(store.log(LOGS[0])) == [b"second"]


def test_a_stamp_that_is_asked_for_waits_for_commits_under_way(store: Store) -> None:
    asked = Outcomes(1)

    def act() -> None:
        store.other.submit(lambda txn: txn.stamp(1), asked)
        waiting = (
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'ExclusiveLock' AND classid = %s"
        )
        while store.ask(waiting, schema._LOCK) == [(0,)]:
            assert not asked.has(1)

    store.while_under_way(keeping(b"first"), act)
    asked.wait()
    [(_, sort, _)] = rows(store.one, KEPT)
    assert asked.results[0] > int.from_bytes(sort[1:])


def test_what_was_settled_is_read_also_with_older_marks(store: Store) -> None:
    """As where a shard was closed after a reader asked how far it may read: it would never come back."""
    [marks] = store.ask("SELECT mark_space, mark FROM {schema}.marks()")

    def scanned() -> list[bytes]:
        found = store.ask(
            "SELECT sort, value FROM {schema}.scan(%s, '', '', NULL, NULL, false, 10, 1000, %s, %s)",
            LOGS[0],
            *marks,
        )
        return [value for sort, value in found if sort is not None]

    store.one.write(keeping(b"first", LOGS[0]))
    assert names(scanned()) == []
    store.other.write(lambda txn: txn.position(LOGS[0]))
    assert names(scanned()) == [b"first"]


def test_drawing_keeps_no_lock_that_others_wait_for(store: Store) -> None:
    with store.connection.transaction():
        store.connection.execute(f"SET LOCAL search_path = {store.schema}")
        for _ in range(2):
            store.ask("SELECT {schema}.draw(1, 0, 1, 0)")
        mine = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'"
        assert store.ask(mine) == [(0,)]
        store.one.write(keeping(b"first", LOGS[0]))
    key = schema.text_of("{drawing}", store.schema)
    with psycopg.connect(store.connection.info.dsn) as holder, store.connection.transaction():
        holder.execute(f"SELECT pg_advisory_xact_lock({key})")
        store.connection.execute("SET LOCAL statement_timeout = 10")
        with pytest.raises(psycopg.errors.QueryCanceled), store.connection.transaction():
            store.ask("SELECT {schema}.draw(1, 0, 1, 0)")
        holder.rollback()
        assert store.ask(mine) == [(0,)]
    store.other.write(keeping(b"second", LOGS[0]))
    assert names(store.log(LOGS[0])) == [b"first", b"second"]


def test_the_first_log_of_a_space_is_made_alone(store: Store) -> None:
    """So readers know the space as one with logs, also two engines that begin it at the same time."""
    outcomes = Outcomes(20)
    for n in range(10):
        for engine in (store.one, store.other):
            engine.submit(keeping(b"%d" % n, 11), outcomes)
    outcomes.wait()
    assert outcomes.errors == []
    assert store.ask("SELECT last > 0 FROM {schema}.log WHERE space = 11") == [(True,)]
    assert len(store.log(11)) == 20


def test_a_store_of_format_5_goes_on(postgres_url: str) -> None:
    """Format 5 had rows in the place of the sequences."""
    name = postgres.new_schema()
    engine = PostgresEngine(postgres_url, schema=name)
    engine.write(keeping(b"before", *LOGS))
    engine.close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for statement in (
            "DROP SEQUENCE {0}.log_number, {0}.log_stamp, {0}.body_stamp",
            "CREATE TABLE {0}.log_stamp (space bigint, partition bytea, stamp bytea)",
            "CREATE TABLE {0}.clock (single boolean PRIMARY KEY DEFAULT true, stamp numeric(20) NOT NULL)",
            "INSERT INTO {0}.clock (stamp) VALUES (18446744073709551000)",
            "UPDATE {0}.log SET last = 70 WHERE space = 8",
            "DELETE FROM {0}.server",
            "ALTER TABLE {0}.server ALTER id ADD GENERATED ALWAYS AS IDENTITY",
            "ALTER TABLE {0}.store DROP needs",
            "UPDATE {0}.store SET format = 5",
        ):
            connection.execute(statement.format(name))
    engine = PostgresEngine(postgres_url, schema=name)
    engine.write(keeping(b"after", *LOGS))
    found = [(int.from_bytes(sort[1:]), value) for _, sort, value in rows(engine, KEPT)]
    assert sorted(found)[1] == (18446744073709551001, b"after")
    for space in LOGS:
        numbers = [int.from_bytes(sort) for _, sort, _ in rows(engine, space)]
        assert len(numbers) == 2
        assert numbers[1] > 70
    engine.close()
