"""The engine over PostgreSQL: one body's commit, and another body at each step in between.

A step is where an engine gives its lock back, and where it begins or ends a statement; the steps that every
engine has are in the contract (`hashrange_engine_tests.steps`). The other body comes at one step, from the
same engine or from another one; each test goes through all steps. At the end every addition that was
acknowledged has to be there, and the history to be serializable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count
from threading import Event, Semaphore, Thread, get_ident
from time import monotonic
from typing import Any, Final

import psycopg
import pytest

import postgres
from consistency import serializability
from consistency.serializability import Append, Read
from hashrange_engine_tests.loops import Loop
from hashrange_engine_tests.records import P, Q
from hashrange_engine_tests.steps import Steps
from hashrange_postgres import PostgresEngine, writer
from hashrange_postgres.turns import ALWAYS, NEVER
from hashrange_postgres.wire.loop_connections import LoopConnection

SPACE: Final = 7
LISTS: Final = (b"x", b"y")

WAYS: Final = ("plain", "discovered", "absent", "locked", "alone")
"""How an engine runs a body: over all that it knows; the same with records that it has to fetch, or with one
that is not there and not made; with two records, in a group that locks them first; or alone."""


class SteppedLock:
    """The lock of an engine. That it is given back is a step: others may take it then."""

    def __init__(self, lock: Any, step: Callable[[], None]) -> None:
        self._lock = lock
        self._step = step
        self.holder = 0  # the thread that has it

    def acquire(self, *how: Any) -> bool:
        acquired = bool(self._lock.acquire(*how))
        if acquired:
            self.holder = get_ident()
        return acquired

    def release(self) -> None:
        self.holder = 0
        self._lock.release()
        self._step()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Additions:
    """Bodies that append to lists of a store, and what their callers have heard. `wake` is called when one of
    them has."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self.history: list[serializability.Transaction] = []
        self._wake = wake
        self._values = count(1)

    @property
    def heard(self) -> int:
        """How many of the callers have heard."""
        return sum(made.ended < math.inf for made in self.history)

    def body(self, way: str) -> tuple[Callable[[Any], Any], Callable[[Any, Exception | None], None]]:
        """A body that an engine runs in this way, and the receiver of its outcome."""
        value = next(self._values)
        lists = LISTS if way == "locked" else LISTS[1:]
        made = serializability.Transaction([Append(one, value) for one in lists], monotonic())
        self.history.append(made)

        def body(txn: Any) -> list[Read]:
            if way == "alone":
                assert list(txn.scan(9, P)) == []
            if way == "absent":
                assert txn.get(8, Q, b"%d" % value) is None
            if way == "discovered":
                for n in range(3):  # none of them is known, so the second miss discovers the third record
                    txn.get(8, P, b"%d %d" % (value, n))
            seen: list[Read] = []
            for one in lists:
                before = txn.get(SPACE, P, one) or b""
                txn.put(SPACE, P, one, before + b"%d," % value)
                seen.append(Read(one, values_of(before)))
            return seen

        def done(result: Any, error: Exception | None) -> None:
            if error is None:
                made.steps = [*result, *made.steps]
                made.status = "ok"
            else:
                made.error = repr(error)
            made.ended = monotonic()
            self._wake()

        return body, done

    def submit(self, engine: PostgresEngine, way: str) -> serializability.Transaction:
        body, done = self.body(way)
        made = self.history[-1]
        engine.submit(body, done)
        return made

    def write(self, engine: PostgresEngine, way: str) -> None:
        """Have a thread write with a body, as a worker of a server does; returns when the body has run."""
        body, done = self.body(way)
        ran = Event()

        def work() -> None:
            try:
                done(engine.write(signalling), None)
            except Exception as error:
                done(None, error)

        def signalling(txn: Any) -> Any:
            try:
                return body(txn)
            finally:
                ran.set()

        Thread(target=work).start()
        ran.wait()

    def check(self, engine: PostgresEngine) -> None:
        """All that was acknowledged is there, and one order explains what all bodies have seen."""
        began = monotonic()
        found = engine.read(lambda reader: [values_of(reader.get(SPACE, P, one) or b"") for one in LISTS])
        assert [made.error for made in self.history if made.status != "ok"] == []
        appends = [step for made in self.history for step in made.steps if isinstance(step, Append)]
        for key, values in zip(LISTS, found, strict=True):
            assert sorted(values) == sorted(step.value for step in appends if step.key == key)
        reads: list[Append | Read] = [Read(*one) for one in zip(LISTS, found, strict=True)]
        final = serializability.Transaction(reads, began, monotonic(), "ok")
        assert serializability.judge([*self.history, final]) == []


def values_of(stored: bytes) -> list[int]:
    return [int(value) for value in stored.split(b",")[:-1]]


def empty(txn: Any) -> None:
    for one in LISTS:
        txn.put(SPACE, P, one, b"")


class Stage:
    """Two engines on one store, and the steps of the first one. `by_loop`: an event loop submits to it."""

    def __init__(self, url: str, stack: ExitStack, monkeypatch: pytest.MonkeyPatch, by_loop: bool) -> None:
        self.steps = Steps()
        self.begun: Callable[[], None] | None = None
        """Done once, at the first step after the next statement has begun."""
        self._due: Callable[[], None] | None = None
        self.schema = postgres.new_schema()
        self.watcher = stack.enter_context(psycopg.connect(url, autocommit=True))
        self.one, self.other = (PostgresEngine(url, schema=self.schema) for _ in range(2))
        for engine in (self.one, self.other):
            stack.callback(engine.close)
        self.loop = Loop(self.one) if by_loop else None
        self.thread = get_ident()
        self._told = Semaphore(0)
        for name in ("call", "call_all"):
            monkeypatch.setattr(writer, name, partial(self._call, getattr(writer, name)))
        send = LoopConnection.send
        monkeypatch.setattr(LoopConnection, "send", lambda *values: self._call(send, *values))
        turns = self.one._turns
        self._lock = SteppedLock(turns.lock, self._step)
        gathering = self.one._commits._gathering
        for holder, name in ((turns, "lock"), (turns.queue, "_lock"), (gathering, "_lock")):
            setattr(holder, name, self._lock)

    def _step(self) -> None:
        """A step, unless this thread holds the engine's lock: then it is one when the lock is given back."""
        if self._lock.holder == get_ident():
            return
        due, self._due = self._due, None
        if due is not None:
            due()
        self.steps.step()

    def _call(self, what: Callable[..., Any], where: Any, *values: Any) -> Any:
        if where is not self.one._writer._connection and where is not self.one._writer._loop_connection:
            return what(where, *values)
        begun, self.begun = self.begun, None
        self._due = begun or self._due
        self._step()
        try:
            return what(where, *values)
        finally:
            self._step()

    def _wake(self) -> None:
        if self.loop is None:
            self._told.release()
        else:
            self.loop.deliver(lambda: None)

    def _wait(self, additions: Additions, heard: int) -> None:
        if self.loop is not None:
            self.loop.run(lambda: additions.heard >= heard)
        while additions.heard < heard:
            assert self._told.acquire(timeout=30), "a caller has not heard"

    def _is_blocked(self) -> bool:
        blocked = (
            "SELECT 1 FROM pg_stat_activity WHERE query LIKE %s AND cardinality(pg_blocking_pids(pid)) > 0"
        )
        return self.watcher.execute(blocked, (f"%{self.schema}.%",)).fetchone() is not None

    def _come_between(self, additions: Additions, second: str, by_other: bool) -> None:
        if by_other:
            made = additions.submit(self.other, second)
            while made.ended == math.inf and not self._is_blocked():
                pass  # it ends, or waits for what the first engine has locked
        elif self.loop is None or get_ident() == self.thread:
            additions.submit(self.one, second)
        else:
            additions.write(self.one, second)

    def run(self, first: str, second: str, by_other: bool, at: int) -> bool:
        """Have two bodies come in the first way while another one is committed, and one in the second way at
        this step; returns whether there are that many steps."""
        additions = Additions(self._wake)
        self.one.write(empty)
        for engine in (self.one, self.other):
            engine._turns.lock_first_share = ALWAYS if "locked" in (first, second) else NEVER

        def begin() -> None:
            for _ in range(2):
                additions.submit(self.one, first)
            self.steps.arm(at, partial(self._come_between, additions, second, by_other))

        self.begun = begin
        additions.submit(self.one, "plain")
        self._wait(additions, 3)
        left = self.steps.disarm()
        if left is not None:
            left()  # after all steps
        self._wait(additions, 4)
        additions.check(self.other)
        return left is None


@pytest.fixture(params=["by a loop", "by threads", "by threads, in steps"])
def stage(
    request: pytest.FixtureRequest, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    with ExitStack() as stack:
        stage = Stage(postgres_url, stack, monkeypatch, by_loop=request.param == "by a loop")
        if "steps" in request.param:
            # Then a commit is a statement of its own.
            stage.one.commit_fault = lambda moment: None
        yield stage


@pytest.mark.once
@pytest.mark.parametrize("second", WAYS)
@pytest.mark.parametrize("first", WAYS)
def test_no_addition_is_lost_between_any_two_steps(stage: Stage, first: str, second: str) -> None:
    for by_other in (False, True):
        steps = count(1)
        while stage.run(first, second, by_other, next(steps)):
            pass
        assert next(steps) > 10
