"""The event loop of an engine: who delivers outcomes and runs tasks, and how many at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hashrange import pace
from hashrange.storage import loops
from hashrange.storage.failures import Stopped, StorageError
from hashrange.storage.loops import Gathering, Loop, Outcome, Queue


class Rounds:
    """An event loop whose callbacks the test calls."""

    def __init__(self, loop: Loop, *, defers: bool = True) -> None:
        self.handed: list[Callable[[], None]] = []
        self.soon: list[Callable[[], None]] = []
        loop.use(self.handed.append, self.soon.append if defers else None)

    def turn(self) -> int:
        """Call what was handed over or deferred by now; returns how many calls these were."""
        calls = [*self.handed, *self.soon]
        self.handed.clear()
        self.soon.clear()
        for callback in calls:
            callback()
        return len(calls)


class Heard:
    """Notes outcomes, and the calls of an engine's `told` and `left`."""

    def __init__(self) -> None:
        self.results: list[Any] = []
        self.told = self.left = 0

    def loop(self) -> Loop:
        return Loop(self._tell, self._leave)

    def _tell(self) -> None:
        self.told += 1

    def _leave(self) -> None:
        self.left += 1

    def outcome(self, result: Any) -> Outcome:
        return lambda found, error: self.results.append(error or found), result, None


def closed(callback: Callable[[], None]) -> None:
    raise RuntimeError("the loop is closed")


def test_without_a_loop_the_posting_thread_does_all() -> None:
    heard = Heard()
    heard.loop().post([heard.outcome(1)], [lambda: heard.results.append("task")])
    assert heard.results == [1, "task"]


def test_a_loop_is_woken_once_for_all_that_is_posted() -> None:
    heard = Heard()
    loop = heard.loop()
    rounds = Rounds(loop)
    for number in range(5):
        loop.post([heard.outcome(number)])
    assert heard.results == []
    assert rounds.turn() == 1
    assert heard.results == [0, 1, 2, 3, 4]
    assert heard.told == 1
    loop.post([heard.outcome(5)])
    assert rounds.turn() == 1


def test_a_receiver_that_fails_does_not_keep_outcomes_from_others(caplog: pytest.LogCaptureFixture) -> None:
    heard = Heard()

    def fail(result: Any, error: Exception | None) -> None:
        raise ValueError

    tasks = [lambda: fail(0, None), lambda: heard.results.append(2)]
    heard.loop().post([(fail, 0, None), heard.outcome(1)], tasks)
    assert heard.results == [1, 2]
    assert [record.getMessage() for record in caplog.records] == [
        "the receiver of an outcome failed",
        "a task of the engine failed",
    ]


def test_tasks_run_a_few_in_a_round() -> None:
    heard = Heard()
    loop = heard.loop()
    rounds = Rounds(loop)
    loop.post(tasks=[lambda: loop.post([heard.outcome(0)])] * (2 * loops.TASKS_PER_TURN + 1))
    seen = []
    while rounds.turn():
        seen.append(len(heard.results))
    assert seen == [loops.TASKS_PER_TURN, 2 * loops.TASKS_PER_TURN, 2 * loops.TASKS_PER_TURN + 1]


def test_a_loop_that_cannot_defer_runs_all_tasks() -> None:
    heard = Heard()
    loop = heard.loop()
    rounds = Rounds(loop, defers=False)
    loop.post(tasks=[lambda: heard.results.append(0)] * 200)
    rounds.turn()
    assert len(heard.results) == 200


@pytest.mark.parametrize("calls", [True, False])
def test_another_loop_gets_all_that_the_former_has_not_got_to(calls: bool) -> None:
    heard = Heard()
    loop = heard.loop()
    former = Rounds(loop)
    loop.post([heard.outcome(1)], [lambda: heard.results.append(2)])
    before = heard.left
    rounds = Rounds(loop)
    assert heard.left == before + 1
    if calls:
        former.turn()
    rounds.turn()
    assert heard.results == [1, 2]


def test_a_closed_loop_drops_outcomes_and_leaves_tasks_to_the_posting_thread() -> None:
    heard = Heard()
    loop = heard.loop()
    soon: list[Callable[[], None]] = []
    loop.use(closed, soon.append, lambda descriptor, callback: None)
    before = heard.left
    for _ in range(2):
        loop.post([heard.outcome(1)], [lambda: heard.results.append(2)])
    assert heard.results == [2, 2]
    assert heard.left == before + 1
    assert not loop.is_limited
    rounds = Rounds(loop)
    assert rounds.turn() == 0, "what was dropped does not come again"


def test_a_loop_that_is_replaced_while_it_refuses_does_not_count() -> None:
    heard = Heard()
    loop = heard.loop()
    taken: list[Rounds] = []

    def replaced(callback: Callable[[], None]) -> None:
        taken.append(Rounds(loop))
        raise RuntimeError("the loop is closed")

    loop.use(replaced, replaced)
    loop.post([heard.outcome(1)])
    assert loop.is_limited
    assert [rounds.turn() for rounds in taken] == [1]
    assert heard.results == [1]


def test_an_engine_that_closes_runs_tasks_on_the_posting_thread_and_delivers_as_before() -> None:
    heard = Heard()
    loop = heard.loop()
    rounds = Rounds(loop)
    loop.post(tasks=[lambda: heard.results.append("first")])
    loop.close()
    assert heard.results == ["first"]
    loop.post([heard.outcome("outcome")], [lambda: heard.results.append("second")])
    assert heard.results == ["first", "second"]
    while rounds.turn():
        pass
    assert heard.results == ["first", "second", "outcome"]
    assert not loop.is_limited


@pytest.mark.parametrize("limited", [True, False])
def test_a_body_gets_a_turn_of_the_loop(limited: bool) -> None:
    loop = Loop()
    Rounds(loop, defers=limited)
    assert loop.in_turn(lambda: pace.turn().left, print) == (
        pace.TURN_SECONDS if limited else pace.WITHOUT_END
    )
    assert not pace.turn().is_limited()


def test_whatever_a_body_raises_ends_only_that_body() -> None:
    def fail(error: BaseException) -> None:
        raise error

    refused = StorageError("refused")
    assert Loop().in_turn(lambda: fail(refused), print) == (print, None, refused)
    for ended in (pace.TurnOver(), MemoryError()):
        done, result, error = Loop().in_turn(partial(fail, ended), print)  # type: ignore[misc]
        assert (done, result) == (print, None)
        assert isinstance(error, Stopped)
        assert type(ended).__name__ in str(error)
    assert not pace.turn().is_limited()


def test_the_engine_hears_of_outcomes_that_only_tasks_have_posted() -> None:
    heard = Heard()
    loop = heard.loop()
    rounds = Rounds(loop)
    loop.post(tasks=[lambda: loop.post([heard.outcome(1)])])
    rounds.turn()
    assert (heard.results, heard.told) == ([1], 1)


class Engine:
    """An engine that has room for some bodies."""

    def __init__(self, loop: Loop) -> None:
        self.lock = threading.Lock()
        self.room = 0
        self.ran: list[int] = []
        self.then: list[int] = []
        self.queue: Queue[int] = Queue(loop, self.lock, lambda: self.room == 0, self.run)

    def run(self, body: int) -> Callable[[], None] | None:
        assert self.lock.locked()
        self.room -= 1
        self.ran.append(body)
        return (lambda: self.end(body)) if body % 2 else None

    def end(self, body: int) -> None:
        assert not self.lock.locked()
        self.then.append(body)


def test_queued_bodies_run_in_order_while_there_is_room() -> None:
    loop = Loop()
    rounds = Rounds(loop)
    engine = Engine(loop)
    engine.queue.go_on()
    assert rounds.turn() == 0, "no body waits"
    engine.queue.bodies.extend(range(6))
    for room, ran in ((0, 0), (4, 4), (1, 5), (3, 6)):
        engine.room = room
        engine.queue.go_on()
        while rounds.turn():
            pass
        assert engine.ran == list(range(ran))
    assert engine.then == [1, 3, 5]


def test_a_commit_waits_while_rounds_bring_bodies() -> None:
    loop = Loop()
    collected: list[int] = []
    started: list[int] = []
    gathering = Gathering(
        loop, threading.Lock(), 10, lambda: len(collected), lambda: started.append(len(collected))
    )
    assert not gathering.ask(), "there is no loop that could start it"
    rounds = Rounds(loop)

    def bring(bodies: int) -> int:
        """How many rounds are still to come after one that brings bodies."""
        collected.extend(range(bodies))
        rounds.turn()
        return len(rounds.soon)

    assert gathering.ask()
    assert gathering.ask()
    assert [bring(bodies) for bodies in (1, 2, 1, 0)] == [1, 1, 1, 0]
    assert started == [4]

    collected.clear()
    assert gathering.ask()
    assert bring(10) == 0, "it waits for no more than ten bodies"
    assert started == [4, 10]

    collected.clear()
    assert gathering.ask()
    assert [bring(1) for _ in range(loops.ROUNDS_MAX + 1)] == [1] * loops.ROUNDS_MAX + [0]
    assert started == [4, 10, loops.ROUNDS_MAX + 1]


def test_another_loop_can_be_asked_for_a_commit() -> None:
    loop = Loop()
    started: list[int] = []
    gathering = Gathering(loop, threading.Lock(), 10, lambda: 0, lambda: started.append(1))
    Rounds(loop)
    assert gathering.ask()
    rounds = Rounds(loop)  # the former loop never makes its call
    gathering.forget()
    assert gathering.ask()
    rounds.turn()
    assert started == [1]
