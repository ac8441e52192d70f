"""Two engines over PostgreSQL that change the same few hundred records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from random import Random

import pytest

import postgres
from hashrange.storage.api import Transaction
from hashrange_engine_tests.loops import Loop
from hashrange_engine_tests.records import Outcomes, P
from hashrange_postgres import PostgresEngine
from hashrange_postgres.commits import Commits
from hashrange_postgres.groups import Group, State

SPACE = 7
COUNTERS = [b"%04d" % number for number in range(500)]
GROUP = 16

Add = Callable[[PostgresEngine, Sequence[bytes]], None]


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


def test_few_groups_are_refused_because_records_are_locked_first(
    engines: list[PostgresEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(1)
    groups = 300
    refused: list[None] = []
    try_again = Commits._try_again

    def note(commits: Commits, group: Group, state: State) -> None:
        refused.append(None)
        try_again(commits, group, state)

    monkeypatch.setattr(Commits, "_try_again", note)
    for turn in range(groups):
        add(engines[turn % 2], chance.sample(COUNTERS, GROUP))
    assert sum_of(engines[0]) == groups * GROUP
    assert losses(engines) > 0.3 * groups, "the bodies of many groups run again under locks"
    assert 0 < len(refused) < 0.1 * groups


def test_engines_that_seldom_meet_lock_nothing_first(engines: list[PostgresEngine]) -> None:
    chance = Random(1)
    own = COUNTERS[:250], COUNTERS[250:]
    for turn in range(200):
        meets = COUNTERS[turn // 24] if turn % 24 < 2 else own[turn % 2][0]
        add(engines[turn % 2], [meets, *chance.sample(own[turn % 2][10:], GROUP - 1)])
        assert not any(engine._turns.locks_first for engine in engines)
    assert 0 < losses(engines) < 0.1 * 200
    assert sum_of(engines[0]) == 200 * GROUP
