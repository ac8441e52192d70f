"""Processes that use a pattern at the same time: each makes one call at a time, and what each of its requests
meets is drawn (`steps`). Unlike `steps.Histories`, a process has a state of its own between its calls.

A request may also be slow: it is performed, and its sender gets the answer later. `in_thread` makes a flow of
the requests that blocking code sends.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, TypeAlias, cast

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from hashrange_patterns import Table
from hashrange_patterns.flows import Call, Client, Flow, Pause
from patterns.faults import Intercepted
from patterns.steps import Fate, Outcome, Running, Steps, check

in_process = pytest.mark.parametrize("transport", ["in-process"])
"""Over HTTP a request costs more, and the histories would be the same."""
SLOW: Final = "performed, and answered later"
Fates: TypeAlias = list[Fate | str]
How: TypeAlias = tuple[Fates, bool]
_FAULTS: Final = st.sampled_from(
    [Fate.ANSWERED, SLOW, Fate.REFUSED, Fate.FAILED, Fate.LOST, Fate.LATE, Fate.PART]
)
HOW: Final = st.builds(
    lambda well, faults, ends: ([Fate.ANSWERED] * well + faults, ends),
    st.integers(0, 2),
    st.one_of(_FAULTS.map(lambda fate: [fate]), st.lists(_FAULTS, max_size=3)),
    st.booleans(),
)
"""How far a call goes: the fates of its next requests, and whether it ends then, without more faults."""
CALM: Final[How] = [], True


class Process:
    """A process: its call under way, if any, which began at `began` or later."""

    def __init__(self, world: Processes) -> None:
        self.world = world
        self.runtime = world.steps.runtime(attempts_max=2)
        self.is_alive = True
        self.began = 0.0
        self.running: Running | None = None
        self._slow: tuple[Any, Exception | None] | None = None

    def begin(
        self,
        how: How,
        flow: Flow[Any],
        then: Callable[[Any], None] = lambda result: None,
        always: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin a call; `then` gets its result, and `always` is called before, however it ends."""

        def ended(outcome: Outcome) -> None:
            self.running = None
            always()
            if outcome.returned:
                then(outcome.result)

        steps = self.world.steps
        self.began = steps.time
        steps.start(flow, ended, *self.world.expected)
        self.running = next((one for one in steps.running if one.flow is flow), None)
        self.go_on(how)

    def go_on(self, how: How) -> None:
        """Go on with the call."""
        fates, ends = how
        for fate in fates:
            self._step(fate)
        while ends and self.running is not None:
            self._step(Fate.ANSWERED)

    def die(self) -> None:
        """End as a process that is killed."""
        self.is_alive = False
        if self.running is not None:
            self.world.steps.kill(self.running, performed=False)

    def _step(self, fate: Fate | str) -> None:
        steps = self.world.steps
        while self.running is not None and isinstance(self.running.step, Pause):
            steps.step(self.running)
        running, slow = self.running, self._slow
        if running is None:
            return
        if slow is not None:
            self._slow = None
            steps._go_on(running, *slow)
        elif isinstance(fate, Fate):
            steps.step(running, fate)
        else:
            assert isinstance(running.step, Call)
            try:
                self._slow = steps._perform(running.step), None
            except Exception as error:
                self._slow = None, error


class Processes(RuleBasedStateMachine):
    """Processes at one table; a subclass says what they do, and what holds."""

    number = 3
    waits: tuple[float, ...] = (0.5, 3.0, 7.0, 30.0)
    expected: tuple[type[Exception], ...] = ()
    """What calls may raise besides the errors of a table that is throttled or cannot be reached."""

    def __init__(self, client: Any, table: Table, serial: str) -> None:
        super().__init__()
        self.client, self.table, self.serial = client, table, serial
        self.steps = Steps(client)
        self._latest = 0.0
        self.passed = 0.0
        self.processes: list[Any] = [self.process() for _ in range(self.number)]

    def process(self) -> Process:
        """A new process."""
        return Process(self)

    @property
    def time(self) -> float:
        """The time, by the clock of all."""
        return self.steps.time

    @property
    def latest(self) -> float:
        """The latest time that ever was: the clock may be set back."""
        return max(self._latest, self.steps.time)

    @property
    def idle(self) -> list[Any]:
        """The processes that are in no call."""
        return [one for one in self.processes if one.running is None]

    def passes(self, seconds: float) -> None:
        """Let time pass, or set the clock back."""
        self._latest = self.latest
        self.steps.time += seconds
        self.passed += max(0.0, seconds)
        for process in self.processes:
            process.began = min(process.began, self.time)

    def quiet(self) -> None:
        """All processes die, and the late requests arrive."""
        for process in self.processes:
            process.die()
        self.steps.finish()

    def verdict(self) -> None:
        """What holds when all processes are dead."""

    def teardown(self) -> None:
        if sys.exc_info()[0] is None:  # (otherwise a rule has failed, and that is to be seen)
            self.quiet()
            self.verdict()
        else:
            for process in self.processes:
                process.die()

    @precondition(lambda self: len(self.idle) < self.number)
    @rule(data=st.data(), how=HOW)
    def a_call_goes_on(self, data: st.DataObject, how: How) -> None:
        busy = [one for one in self.processes if one.running is not None]
        data.draw(st.sampled_from(busy)).go_on(how)

    @rule(data=st.data())
    def time_passes_or_a_process_dies(self, data: st.DataObject) -> None:
        seconds = data.draw(st.sampled_from([*self.waits, None]))
        if seconds is not None:
            self.passes(seconds)
        else:
            number = data.draw(st.integers(0, self.number - 1))
            self.processes[number].die()
            self.processes[number] = self.process()

    @precondition(lambda self: self.steps.late)
    @rule(data=st.data())
    def a_late_request_arrives(self, data: st.DataObject) -> None:
        self.steps.deliver(data.draw(st.integers(0, len(self.steps.late) - 1)))


def judge(make: Callable[[str], Any], client: Any) -> None:
    """Draw histories of `make`'s machine, each with a text that no other has."""
    serial = itertools.count()
    check(lambda _: make(str(next(serial))), client)


class Killed(BaseException):
    """Ends the thread of a process that died."""


def in_thread(work: Callable[[Client], Any]) -> Flow[Any]:
    """A flow of the requests that `work` sends by the client it is given; it gives what `work` returns."""
    sent: SimpleQueue[Call | tuple[Any, BaseException | None]] = SimpleQueue()
    answers: SimpleQueue[Any] = SimpleQueue()

    class Asking(Intercepted):
        def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
            sent.put(Call(operation, parameters))
            answer = answers.get()
            if isinstance(answer, BaseException):
                raise answer
            return answer

    def run() -> None:
        try:
            sent.put((work(cast(Client, Asking(cast(Any, None)))), None))
        except BaseException as error:
            sent.put((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while isinstance(step := sent.get(), Call):
            try:
                answers.put((yield step))
            except Exception as error:
                answers.put(error)
        if step[1] is not None:
            raise step[1]
        return step[0]
    except GeneratorExit:
        while thread.is_alive():
            answers.put(Killed())
            thread.join(0.001)
        raise
