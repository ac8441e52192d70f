"""The contract's checks of interleavings: another body comes between any two steps of a body and its commit.
See the package.

A step is a place between two calls of a body's transaction, a moment of its commit, and a callback of the
event loop. A check goes through all of them, one after the other: it lets the other body come at the first
step, then at the second, and so on. Every body adds 1 to the same records, so an addition that is lost, done
twice or seen too early shows in the records, in the log of the additions, or in what a body returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from threading import Lock
from typing import Final

from hashrange.storage.api import Engine, Reader, Transaction
from hashrange_engine_tests.loops import Loop
from hashrange_engine_tests.records import Opener, Outcomes, opened

WAYS: Final = ("gets", "scans", "positions")
"""How a body reads the records that it changes."""

# An engine may make the other body wait until the first one has ended. It comes later then.
PATIENCE_SECONDS: Final = 0.1

Act = Callable[[], None]

_NAMES: Final = count()


class Steps:
    """Counts the steps of an engine, and has something done at one of them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._left = 0
        self._act: Act | None = None

    def arm(self, at: int, act: Act) -> None:
        """Have `act` done at this step from now on, counted from 1."""
        with self._lock:
            self._left, self._act = at, act

    def disarm(self) -> Act | None:
        """What was to be done, if it was not."""
        with self._lock:
            act, self._act = self._act, None
        return act

    def step(self) -> None:
        """One step of the engine."""
        with self._lock:
            self._left -= 1
            if self._left or self._act is None:
                return
            act, self._act = self._act, None
        act()


def nothing() -> None:
    """The steps of a body that nobody interrupts."""


def add(txn: Transaction, name: bytes, way: str, step: Act = nothing) -> int:
    """Add 1 to two records, the totals and a log; returns the new number."""
    if way == "scans":
        records = dict(txn.scan(1, name))
        step()
        first, second = records.get(b"a"), records.get(b"b")
    else:
        if way == "positions":
            txn.position(2)
            step()
        first = txn.get(1, name, b"a")
        step()
        second = txn.get(1, name, b"b")
        step()
    number = int(first or b"0") + 1
    txn.put(1, name, b"a", b"%d" % number)
    step()
    txn.put(1, name, b"b", b"%d" % (int(second or b"0") + 1))
    step()
    txn.append(2, name, b"%d" % number)
    txn.count(1, 1, number)
    step()
    return number


def look(reader: Reader, name: bytes) -> list[int]:
    """All numbers of the additions; raises an error unless the records agree with each other."""
    first, second = (int(reader.get(1, name, sort) or b"0") for sort in (b"a", b"b"))
    numbers = [int(value) for _, value in reader.scan(2, name)]
    assert numbers == list(range(1, len(numbers) + 1)), "the log has the additions in the order of commits"
    assert first == second == len(numbers), "the additions are there whole"
    return numbers


def check_a_body_between_any_two_steps_of_a_commit(opener: Opener) -> None:
    """Bodies of the same engine come at the moments of a commit."""
    with opened(opener) as engine:
        steps = Steps()
        engine.commit_fault = lambda moment: steps.step()
        for run in _runs(engine, steps):
            engine.submit(run.first(), run.heard)
            run.heard.wait()
            run.end()
            run.others.wait()


def check_a_body_between_any_two_rounds_of_the_loop(opener: Opener) -> None:
    """Bodies of the same engine come before each callback of the event loop."""
    with opened(opener) as engine:
        steps = Steps()
        loop = Loop(engine, steps.step)
        for run in _runs(engine, steps):
            engine.submit(run.first(), run.heard)
            loop.run(partial(run.heard.has, 1))
            run.end()
            loop.run(partial(run.others.has, 1))


def check_another_engine_between_any_two_steps(opener: Opener) -> None:
    """Two engines are open on one store. At each step of the first one, the second one sees whole additions
    only, and adds as well."""
    with opened(opener) as first, opened(opener) as other:
        steps = Steps()
        first.commit_fault = lambda moment: steps.step()
        for submits in (True, False):
            for run in _runs(other, steps, [first, other]):
                if submits:
                    first.submit(run.first(steps.step), run.heard)
                else:
                    run.heard(first.write(run.first(steps.step)), None)
                run.heard.wait()
                run.end()
                run.others.wait()


class _Run:
    """Two bodies, of which the second comes at one step of the first, and what their callers have heard."""

    def __init__(self, engine: Engine, steps: Steps, way: str, name: bytes, at: int, *, looks: bool) -> None:
        self.way = way
        self.name = name
        self.heard = Outcomes(1)
        self.others = Outcomes(1)
        self.came_late = False
        self._engine = engine
        self._looks = looks
        self._steps = steps
        steps.arm(at, self._come)

    def first(self, step: Act = nothing) -> Callable[[Transaction], int]:
        """The body during which, or during whose commit, the other one comes."""
        return partial(add, name=self.name, way=self.way, step=step)

    def _come(self) -> None:
        if self._looks:
            self._engine.read(partial(look, name=self.name))
        self._engine.submit(partial(add, name=self.name, way=self.way), self.others)
        self.others.wait_a_moment(PATIENCE_SECONDS)

    def end(self) -> None:
        """Have the other body come after all steps, if it has not come."""
        left = self._steps.disarm()
        if left is not None:
            self.came_late = True
            left()


def _runs(engine: Engine, steps: Steps, before: Sequence[Engine] = ()) -> Iterator[_Run]:
    """A run for each way and each step, and one after the last step; first with new records, then with
    records to which the engines of `before` have added, and which they know therefore. Judges each run."""
    for way in WAYS:
        for known in (False, True):
            for at in count(1):
                name = b"%b %d %d" % (way.encode(), known, next(_NAMES))
                made = [maker.write(partial(add, name=name, way="gets")) for maker in before if known]
                run = _Run(engine, steps, way, name, at, looks=bool(before))
                yield run
                assert run.heard.errors == run.others.errors == []
                numbers = engine.read(partial(look, name=name))
                assert sorted(made + run.heard.results + run.others.results) == numbers
                assert len(numbers) == len(made) + 2
                if run.came_late:
                    break
