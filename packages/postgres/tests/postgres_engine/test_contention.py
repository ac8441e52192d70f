"""Two engines over PostgreSQL that change the same few hundred records. Time stands still where records count
as contended for a while, so the counts of lost groups do not depend on the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from random import Random

import pytest

import postgres
from hashrange.storage.api import Transaction
from hashrange.storage.contract.loops import Loop
from hashrange.storage.contract.records import Outcomes, P
from hashrange_postgres import PostgresEngine, waiting

SPACE = 7
COUNTERS = [b"%04d" % number for number in range(500)]
GROUP = 16

Add = Callable[[PostgresEngine, Sequence[bytes]], None]


class Clock:
    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(waiting, "monotonic", clock)
    return clock


@pytest.fixture
def engines(postgres_url: str) -> Iterator[list[PostgresEngine]]:
    with ExitStack() as stack:
        schema = postgres.new_schema()
        engines = [PostgresEngine(postgres_url, schema=schema) for _ in range(2)]
        for engine in engines:
            stack.callback(engine.close)
        engines[0].write(fill)
        yield engines


def fill(txn: Transaction) -> None:
    for name in COUNTERS:
        txn.put(SPACE, P, name, b"0")


def add_one(txn: Transaction, name: bytes) -> None:
    txn.put(SPACE, P, name, b"%d" % (int(txn.get(SPACE, P, name) or b"0") + 1))


def add(engine: PostgresEngine, names: Sequence[bytes]) -> None:
    """Have an event loop add one to each of these counters."""
    loop, outcomes = Loop(engine), Outcomes(len(names))
    for name in names:
        engine.submit(partial(add_one, name=name), outcomes)
    loop.run(partial(outcomes.has, len(names)))
    assert outcomes.errors == []


def sum_of(engine: PostgresEngine) -> int:
    return engine.read(lambda reader: sum(int(value) for _, value in reader.scan(SPACE, P)))


def losses(engines: Sequence[PostgresEngine]) -> int:
    return sum(engine.counts()["lost_commits"] for engine in engines)


def test_few_groups_are_lost_to_the_other_engine(engines: list[PostgresEngine], clock: Clock) -> None:
    chance = Random(1)
    groups = 300
    for turn in range(groups):
        add(engines[turn % 2], chance.sample(COUNTERS, GROUP))
    assert sum_of(engines[0]) == groups * GROUP
    assert losses(engines) <= 0.2 * groups
    # After a while each engine finds out whether it is still so.
    clock.seconds += waiting.CONTENDED_SECONDS + 1
    before = losses(engines)
    for turn in range(groups):
        add(engines[turn % 2], chance.sample(COUNTERS, GROUP))
    assert 0 < losses(engines) - before <= 0.2 * groups


def test_engines_that_do_not_meet_take_no_locks(engines: list[PostgresEngine], clock: Clock) -> None:
    """One engine alone, two with records of their own, and two that seldom meet."""
    chance = Random(1)
    own = COUNTERS[:250], COUNTERS[250:]
    for turn in range(100):
        add(engines[turn % 2], chance.sample(own[turn % 2], GROUP))
    assert losses(engines) == 0
    for turn in range(200):
        meets = COUNTERS[turn // 24] if turn % 24 < 2 else own[turn % 2][0]
        add(engines[turn % 2], [meets, *chance.sample(own[turn % 2][10:], GROUP - 1)])
    assert 0 < losses(engines) < waiting.LOST_SHARE_MAX * 200
    assert [engine._turns.contention.is_general for engine in engines] == [False, False]
    assert sum_of(engines[0]) == 300 * GROUP
