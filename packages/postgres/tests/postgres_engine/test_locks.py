"""The engine over PostgreSQL: groups of two engines that write the same records never wait in a circle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import product
from typing import Any, Final

import psycopg
import pytest

import postgres
from hashrange_engine_tests.records import Outcomes, P
from hashrange_postgres import PostgresEngine
from hashrange_postgres.turns import ALWAYS, NEVER

SPACE: Final = 7
FIRST, SECOND = b"c", b"p"


def update(txn: Any, sort: bytes) -> None:
    txn.put(SPACE, P, sort, (txn.get(SPACE, P, sort) or b"") + b"1")


def put(txn: Any, sort: bytes) -> None:
    txn.put(SPACE, P, sort, b"put")


def delete(txn: Any, sort: bytes) -> None:
    if txn.get(SPACE, P, sort) is not None:
        txn.delete(SPACE, P, sort)


def delete_unread(txn: Any, sort: bytes) -> None:
    txn.delete(SPACE, P, sort)


def look(txn: Any, sort: bytes) -> None:
    txn.get(SPACE, P, sort)


Act = Callable[[Any, bytes], None]

PRESENT: Final = (update, put, delete, delete_unread, look)
ABSENT: Final = (update, put, look)


class Store:
    """Two engines on a store in a database of its own, and how often groups waited in a circle there."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        self._name = postgres.new_schema()
        self._administrator = stack.enter_context(psycopg.connect(url, autocommit=True))
        self._administrator.execute(f"CREATE DATABASE {self._name}")
        stack.callback(self._administrator.execute, f"DROP DATABASE {self._name} WITH (FORCE)")
        # A circle is noticed soon. Nothing is waited for that long if there is none.
        options = "options='-c deadlock_timeout=10ms'"
        self.url = f"{url.replace('dbname=postgres', f'dbname={self._name}')} {options}"
        self.engines = [PostgresEngine(self.url, schema="store") for _ in range(2)]
        for engine in self.engines:
            stack.callback(engine.close)

    def prepare(self, records: dict[bytes, bool], lock_first: bool = False) -> None:
        """Let these records be there or not, and both engines know of them."""

        def body(txn: Any) -> None:
            for sort, is_there in records.items():
                if is_there:
                    txn.put(SPACE, P, sort, b"1")
                else:
                    txn.delete(SPACE, P, sort)

        self.engines[0].write(body)
        for engine in self.engines:
            engine.write(lambda txn: [txn.get(SPACE, P, sort) for sort in records])
            engine._turns.lock_first_share = ALWAYS if lock_first else NEVER

    def run(self, bodies: list[Callable[[Any], None]], held: list[bytes]) -> None:
        """Have each engine commit one of the bodies while others have locked some records, or make them where
        they are not there; they give up when each engine waits for something."""
        outcomes = Outcomes(len(bodies))
        waiting = (
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = %s AND cardinality(pg_blocking_pids(pid)) > 0"
        )
        with psycopg.connect(self.url) as holder:
            holder.execute("SELECT FROM store.records WHERE sort = ANY(%s) FOR UPDATE", (held,))
            holder.execute(
                "INSERT INTO store.records SELECT %s, %s, sort, 1, '' FROM unnest(%s) sort "
                "ON CONFLICT DO NOTHING",
                (SPACE, P, held),
            )
            for number, (engine, body) in enumerate(zip(self.engines, bodies, strict=True), 1):
                engine.submit(body, outcomes)
                while self._administrator.execute(waiting, (self._name,)).fetchone() != (number,):
                    assert outcomes.errors == []
            holder.rollback()
        outcomes.wait()
        assert outcomes.errors == []

    def circles(self) -> int:
        for engine in self.engines:
            engine.close()
        connected = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
        while self._administrator.execute(connected, (self._name,)).fetchone() != (0,):
            pass  # PostgreSQL counts what a connection did at its end
        counted = "SELECT deadlocks FROM pg_stat_database WHERE datname = %s"
        return int(self._administrator.execute(counted, (self._name,)).fetchall()[0][0])


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    with ExitStack() as stack:
        yield Store(postgres_url, stack)


def acting(acts: tuple[Act, Act], own: bytes, txn: Any) -> None:
    for act, sort in zip(acts, (FIRST, SECOND), strict=True):
        act(txn, sort)
    update(txn, own)


def crossings(first_is_there: bool, second_is_there: bool) -> list[tuple[tuple[Act, Act], tuple[Act, Act]]]:
    """What two groups do with two records."""
    of_first = PRESENT if first_is_there else ABSENT
    of_second = PRESENT if second_is_there else ABSENT
    if first_is_there == second_is_there:
        return [((one, other), (other, one)) for one, other in product(of_first, of_second)]
    return [((one, other), (one, another)) for one, other, another in product(of_first, of_second, of_second)]


@pytest.mark.parametrize("lock_first", [True, False])
@pytest.mark.parametrize("second_is_there", [True, False])
@pytest.mark.parametrize("first_is_there", [True, False])
def test_groups_that_cross_do_not_wait_in_a_circle(
    store: Store, first_is_there: bool, second_is_there: bool, lock_first: bool
) -> None:
    """Each group has to wait at a record of its own, between the two records or after them, which is there or
    is made."""
    for acts in crossings(first_is_there, second_is_there):
        for place, is_there in product((b"k", b"z"), (True, False)):
            owned = [place + b"1", place + b"2"]
            records = {FIRST: first_is_there, SECOND: second_is_there, **dict.fromkeys(owned, is_there)}
            store.prepare(records, lock_first)
            store.run([partial(acting, *one) for one in zip(acts, owned, strict=True)], owned)
    assert store.circles() == 0


def scan(txn: Any) -> None:
    assert list(txn.scan(SPACE + 1, P)) == []


def miss(txn: Any) -> None:
    assert txn.get(SPACE, P, b"never there") is None
    txn.put(SPACE, P, SECOND, b"made")


def test_whoever_waits_for_the_stores_lock_does_not_stop_the_others(store: Store) -> None:
    """A slow commit holds the lock that all commits share, and two bodies need it exclusively."""
    store.prepare({FIRST: True})
    one, other = store.engines
    waiting = Outcomes(2)
    with psycopg.connect(store.url) as slow:
        slow.execute("SELECT store.take_lock(0)")
        for _ in range(2):
            one.submit(scan, waiting)
        for _ in range(10):
            for engine in (one, other):
                written = Outcomes(1)
                engine.submit(partial(update, sort=FIRST), written)
                written.wait()
                assert written.errors == []
        assert waiting.results == waiting.errors == []
    waiting.wait()
    assert waiting.errors == []
    assert other.read(lambda reader: reader.get(SPACE, P, FIRST)) == b"1" * 21


@pytest.mark.parametrize("lock_first", [True, False])
def test_what_is_not_there_is_locked_without_the_stores_lock(store: Store, lock_first: bool) -> None:
    """Two engines rely on absence while a slow commit holds the lock that all commits share."""
    store.prepare({FIRST: True}, lock_first)
    with psycopg.connect(store.url) as slow:
        slow.execute("SELECT store.take_lock(0)")
        for engine in store.engines:
            written = Outcomes(1)
            engine.submit(miss, written)
            written.wait()
            assert written.errors == []
    assert store.engines[0].read(lambda reader: [sort for sort, _ in reader.scan(SPACE, P)]) == [
        FIRST,
        SECOND,
    ]
    assert sum(engine.counts()["bodies_alone"] for engine in store.engines) == 0
