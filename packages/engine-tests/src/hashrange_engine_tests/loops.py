"""The contract's checks of event loops: how an engine uses the loop that it is given, and the bodies that it
queues. See the package."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from functools import partial
from queue import Queue
from threading import Event, get_ident
from time import sleep, thread_time
from typing import Any, Final

from hashrange import pace
from hashrange.storage.api import Engine, Transaction
from hashrange.storage.failures import Stopped, StorageError
from hashrange_engine_tests.records import Opener, Outcomes, P, expect, get, opened, put, rows

# More bytes than an engine commits at once: it has to queue some of the bodies that write them.
BODIES: Final = 12
VALUE: Final = bytes(1024 * 1024)


class Loop:
    """An event loop whose rounds are run by the check. `step` is called before each of its callbacks."""

    def __init__(self, engine: Engine, step: Callable[[], None] = lambda: None) -> None:
        self._step = step
        self.handed: Queue[Callable[[], None]] = Queue()
        self.soon: list[Callable[[], None]] = []
        self._thread = get_ident()
        self._watched: dict[int, Callable[[], None]] = {}
        self._woken, self._wakes = os.pipe()
        engine.loop.use(self.deliver, self.defer, self.watch)

    def deliver(self, callback: Callable[[], None]) -> None:
        self.handed.put(callback)
        os.write(self._wakes, b".")

    def watch(self, descriptor: int, callback: Callable[[], None] | None) -> None:
        """Call `callback` while there is something to read."""
        assert get_ident() == self._thread, "an engine watches on the loop's thread only"
        if callback is None:
            self._watched.pop(descriptor, None)
        else:
            self._watched[descriptor] = callback

    def defer(self, callback: Callable[[], None]) -> None:
        """Call `callback` in the next round. An event loop would not notice it on another thread."""
        assert get_ident() == self._thread, "an engine defers on the loop's thread only"
        self.soon.append(callback)

    def round(self) -> None:
        """Call the callbacks that were deferred to this round."""
        now, self.soon[:] = self.soon[:], []
        for callback in now:
            self._step()
            callback()

    def run(self, until: Callable[[], bool]) -> None:
        """Run rounds and call what the engine hands over, until the condition holds."""
        while not until():
            if self.soon:
                self.round()
                continue
            ready, _, _ = select.select([self._woken, *self._watched], (), (), 30)
            assert ready, "nothing came for the loop"
            for task in ready:
                if task == self._woken:
                    os.read(self._woken, 1)
                    callback = self.handed.get()
                    self._step()
                    callback()
                elif task in self._watched:
                    self._step()
                    if task in self._watched:
                        self._watched[task]()

    def __del__(self) -> None:
        os.close(self._woken)
        os.close(self._wakes)


class Interrupted(BaseException):
    """Ends a body, and is not an `Exception`."""


def write_much(txn: Transaction, number: int) -> int:
    """Write a record that is so large that few such bodies fit into one commit."""
    txn.put(1, P, number.to_bytes(2, "big"), VALUE)
    txn.count(1, 1, len(VALUE))
    return number


def stored(engine: Engine) -> list[int]:
    """The numbers of the bodies whose records are there."""
    return [int.from_bytes(sort, "big") for _, sort, _ in rows(engine, 1)]


def check_late_outcomes_come_through_the_loop(opener: Opener) -> None:
    """Late outcomes come through `deliver`; those that are not late come before `submit` returns."""
    with opened(opener) as engine:
        waiting: list[Callable[[], None]] = []
        arrived = Event()

        def deliver(callback: Callable[[], None]) -> None:
            waiting.append(callback)
            arrived.set()

        engine.loop.use(deliver)
        outcomes = Outcomes(1)
        engine.submit(lambda txn: txn.put(1, P, b"", b""), outcomes)
        while not outcomes.results:
            assert arrived.wait(30)
            for callback in waiting:
                callback()
        outcomes.wait()
        quick = Outcomes(1)
        engine.submit(lambda txn: "read only", quick)
        assert quick.results == ["read only"]


def check_deferred_commits(opener: Opener) -> None:
    """With `defer`, all bodies that are submitted before its callback runs are one batch, and their outcomes
    are delivered at once."""
    with opened(opener) as engine:
        deferred: list[Callable[[], None]] = []
        deliveries: list[Callable[[], None]] = []
        arrived = Event()

        def deliver(callback: Callable[[], None]) -> None:
            deliveries.append(callback)
            arrived.set()

        engine.loop.use(deliver, deferred.append)
        outcomes = Outcomes(3)
        for n in range(3):
            engine.submit(lambda txn, n=n: txn.put(1, P, b"%d" % n, b""), outcomes)
        if deferred:  # an engine without commits to wait for has delivered the outcomes already
            assert not outcomes.results
            while deferred:  # an engine may wait for another round while more bodies arrive
                deferred.pop()()
            assert arrived.wait(30)
            for callback in deliveries:
                callback()
            assert len(deliveries) == 1
        outcomes.wait()
        assert len(outcomes.results) == 3


def check_bodies_that_read_end_on_a_loop(opener: Opener) -> None:
    """Bodies whose records an engine has to fetch get their outcomes too, round after round."""
    with opened(opener) as engine:
        loop = Loop(engine)
        put(engine, 2, P, b"", b"the engine's threads have taken notice of the loop by now")

        def step(txn: Transaction, number: int) -> int:
            value = int(txn.get(1, P, b"%d" % (number % 7)) or b"0") + 1
            txn.put(1, P, b"%d" % (number % 7), b"%d" % value)
            return value

        for turn in range(1, 4):
            outcomes = Outcomes(42)
            for number in range(21):
                engine.submit(partial(step, number=number), outcomes)
                engine.submit_read(lambda reader, n=number: reader.get(1, P, b"%d" % n), outcomes)
            loop.run(lambda: len(outcomes.results) == 42)  # noqa: B023
            outcomes.wait()
            assert get(engine, 1, P, b"6") == b"%d" % (3 * turn)
            ended = Outcomes(1)
            engine.submit(lambda txn: txn.get(1, P, b"never there"), ended)
            loop.run(lambda: bool(ended.results))  # noqa: B023


def check_done_may_submit(opener: Opener) -> None:
    with opened(opener) as engine:
        outcomes = Outcomes(50)

        def again(result: Any, error: Exception | None) -> None:
            outcomes(result, error)
            if result < 50:
                engine.submit(step, again)

        def step(txn: Transaction) -> int:
            count = int(txn.get(1, P, b"") or b"0") + 1
            txn.put(1, P, b"", b"%d" % count)
            return count

        engine.submit(step, again)
        outcomes.wait()
        assert outcomes.results == list(range(1, 51))


def check_a_full_engine_queues(opener: Opener) -> None:
    """`submit` takes more bodies than the engine can commit at once, and never waits."""
    with opened(opener) as engine:
        loop = Loop(engine)
        outcomes = Outcomes(BODIES)
        for number in range(BODIES):
            engine.submit(partial(write_much, number=number), outcomes)
        loop.run(lambda: len(outcomes.results) == BODIES)
        outcomes.wait()
        assert sorted(outcomes.results) == stored(engine) == list(range(BODIES))
        assert engine.read(lambda reader: reader.totals(1)) == (BODIES, BODIES * len(VALUE))


def check_an_interrupted_body_in_the_queue_is_stopped(opener: Opener) -> None:
    """A `BaseException` that is not an `Exception` ends only its own body, with `Stopped` if `submit` has
    returned; it reaches no callback of the loop, and the bodies queued after it run."""
    for with_loop in (True, False):
        with opened(opener, f"store {with_loop}") as engine:
            loop = Loop(engine) if with_loop else None
            outcomes = Outcomes(BODIES)

            def body(txn: Transaction, number: int) -> int:
                write_much(txn, number)
                if number % 3 == 1:
                    raise Interrupted
                return number

            raised = 0
            for number in range(BODIES):
                try:
                    engine.submit(partial(body, number=number), outcomes)
                except Interrupted as error:
                    raised += 1
                    outcomes(None, Stopped(str(error)))
            if loop is not None:
                loop.run(lambda: len(outcomes.results) + len(outcomes.errors) == BODIES)  # noqa: B023
            outcomes.wait()
            whole = [number for number in range(BODIES) if number % 3 != 1]
            assert sorted(outcomes.results) == stored(engine) == whole
            assert [type(error) for error in outcomes.errors] == [Stopped] * (BODIES - len(whole))
            assert engine.read(lambda reader: reader.totals(1)) == (len(whole), len(whole) * len(VALUE))


def check_a_later_loop_takes_over(opener: Opener) -> None:
    """Queued bodies run on the next loop, and outcomes come through it, whether or not the previous loop
    makes the calls it was given."""
    for calls in (True, False):
        _take_over(opener, f"store {calls}", calls)


def _take_over(opener: Opener, name: str, calls: bool) -> None:
    with opened(opener, name) as engine:
        ended = Loop(engine)
        outcomes = Outcomes(BODIES)
        for number in range(BODIES):
            engine.submit(partial(write_much, number=number), outcomes)
        while ended.soon:
            ended.round()
        late = [] if stored(engine) else [ended.handed.get(timeout=30)]
        loop = Loop(engine)
        loop.run(lambda: len(stored(engine)) == BODIES)
        while not ended.handed.empty():
            late.append(ended.handed.get())
        for callback in late if calls else ():
            callback()
        loop.run(lambda: len(outcomes.results) == BODIES)
        outcomes.wait()
        assert sorted(outcomes.results) == list(range(BODIES))


def check_a_closed_loop_stops_nobody(opener: Opener) -> None:
    """Outcomes that `deliver` does not take are dropped; all else goes on."""

    def closed(callback: Callable[[], None]) -> None:
        raise RuntimeError("the loop is closed")

    with opened(opener) as engine:
        engine.loop.use(closed)
        for number in range(BODIES):
            engine.submit(partial(write_much, number=number), lambda result, error: None)
        put(engine, 2, P, b"", b"written by a thread")
        assert get(engine, 2, P, b"") == b"written by a thread"
        while len(stored(engine)) < BODIES:
            sleep(0)
        loop = Loop(engine)
        outcomes = Outcomes(1)
        engine.submit(lambda txn: txn.put(2, P, b"", b"submitted"), outcomes)
        loop.run(lambda: bool(outcomes.results))


def check_close_waits_and_is_final(opener: Opener) -> None:
    engine = opener("store")
    outcomes = Outcomes(20)
    for n in range(20):
        engine.submit(lambda txn, n=n: txn.put(1, P, b"%d" % n, b""), outcomes)
    engine.close()
    engine.close()
    outcomes.wait()
    assert outcomes.errors == []
    expect(StorageError, lambda: put(engine, 1, P, b"", b""))
    expect(StorageError, lambda: get(engine, 1, P, b""))
    late = Outcomes(1)
    engine.submit(lambda txn: None, late)
    late.wait()
    assert isinstance(late.errors[0], StorageError)


def spin() -> None:
    """Use more of the processor's time than a turn has."""
    end = thread_time() + 2 * pace.TURN_SECONDS
    while thread_time() < end:
        pace.point()


def check_close_ends_queued_bodies(opener: Opener) -> None:
    """`close` runs the bodies in the queue to their end, however long they take, although the loop does not
    run any more, and delivers their outcomes."""
    engine = opener("store")
    loop = Loop(engine)
    outcomes = Outcomes(BODIES)

    def body(txn: Transaction, number: int) -> int:
        spin()
        return write_much(txn, number)

    for number in range(BODIES):
        engine.submit(partial(body, number=number), outcomes)
    engine.close()
    loop.run(lambda: len(outcomes.results) + len(outcomes.errors) == BODIES)
    outcomes.wait()
    assert outcomes.errors == []
    assert sorted(outcomes.results) == list(range(BODIES))


def check_queued_bodies_survive_closing(opener: Opener) -> None:
    """Queued bodies also run to their end if the loop is closed before the engine."""

    def closed(callback: Callable[[], None]) -> None:
        raise RuntimeError("the loop is closed")

    with opened(opener) as engine:
        loop = Loop(engine)
        for number in range(BODIES):
            engine.submit(partial(write_much, number=number), lambda result, error: None)
        engine.loop.use(closed, loop.defer)
    with opened(opener) as engine:
        assert stored(engine) == list(range(BODIES))
