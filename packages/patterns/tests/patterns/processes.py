"""Processes that use a pattern at the same time, step by step: what each of their requests meets is drawn.

A process performs one call at a time, a flow. A step of it sends its next request, and a fate says what
becomes of the request:

    answered    it is performed, and its sender gets the answer
    slow        it is performed, and its sender gets the answer at a later step
    refused     it is not performed, and the answer says so
    failed      it is not performed, and the answer leaves that open
    lost        it is performed, and the answer leaves that open
    late        as failed, but it is performed later: it waited somewhere on its way

`in_thread` makes a flow of the requests that blocking code sends.

A machine of Hypothesis draws who is next, the fate, how much time passes, who dies, and which late request
arrives. It finds the shortest history that breaks a promise.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, TypeAlias, cast

import pytest
from botocore.exceptions import ReadTimeoutError
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from hashrange_patterns import Table
from hashrange_patterns.flows import Call, Client, Flow, Pause, Step
from hashrange_patterns.requests import Runtime, is_passing
from patterns.faults import Intercepted, answer_of

in_process = pytest.mark.parametrize("transport", ["in-process"])
"""Over HTTP a request costs more, and the histories would be the same."""
HISTORIES: Final = int(os.environ.get("HASHRANGE_PATTERN_ROUNDS", "0")) or 25
STEPS_MAX: Final = 60
FATES: Final = ("answered", "slow", "refused", "failed", "lost", "late")
HOW: Final = st.builds(
    lambda well, faults, ends: (["answered"] * well + faults, ends),
    st.integers(0, 2),
    st.one_of(st.sampled_from(FATES).map(lambda fate: [fate]), st.lists(st.sampled_from(FATES), max_size=3)),
    st.booleans(),
)
"""How far a call goes: the fates of its next requests, and whether it ends then, without more faults."""
How: TypeAlias = tuple[list[str], bool]
CALM: Final[How] = [], True
BEGINNING: Final = 2_000_000_000.0  # (long after now: a server deletes what expired by the real time)


class Process:
    """A process: its call under way, if any, which began at `began` or later, and the call's next step."""

    def __init__(self, world: Processes) -> None:
        self.world = world
        self.runtime = Runtime(
            now=lambda: world.time, elapsed=lambda: world.time, chance=lambda: 0.0, attempts_max=2
        )
        self.is_alive = True
        self.began = 0.0
        self.flow: Flow[Any] | None = None
        self._then: Callable[[Any], None] = lambda result: None
        self._always: Callable[[], None] = lambda: None
        self._next: Step | None = None
        self._answer: Any = None

    def begin(
        self,
        how: How,
        flow: Flow[Any],
        then: Callable[[Any], None] = lambda result: None,
        always: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin a call; `then` gets its result, and `always` is called before, however it ends."""
        assert self.flow is None
        self.flow, self._then, self._always = flow, then, always
        self.began = self.world.time
        self._go_on(lambda: next(flow))
        self.go_on(how)

    def go_on(self, how: How) -> None:
        """Go on with the call."""
        fates, ends = how
        for fate in fates:
            if self.flow is not None:
                self.step(fate)
        while ends and self.flow is not None:
            self.step("answered")

    def step(self, fate: str) -> None:
        """Send the next request, or take the answer that was slow."""
        flow, world = self.flow, self.world
        assert flow is not None
        if isinstance(self._next, Pause):
            world.time += self._next.seconds
            world.latest = max(world.latest, world.time)
            self._go_on(lambda: flow.send(None))
        step = self._next
        assert isinstance(step, Call)
        if self._answer is None:
            if fate == "refused":
                return self._go_on(lambda: flow.throw(answer_of("ThrottlingException")))
            if fate in ("answered", "slow", "lost"):
                self._answer = world.perform(step)
            if fate == "late":
                world.late.append(step)
            if fate in ("failed", "lost", "late"):
                self._answer = None
                return self._go_on(lambda: flow.throw(ReadTimeoutError(endpoint_url="https://db.invalid")))
            if fate == "slow":
                return None
        answer, self._answer = self._answer, None
        return self._go_on(
            (lambda: flow.throw(answer)) if isinstance(answer, Exception) else (lambda: flow.send(answer))
        )

    def die(self) -> None:
        """End as a process that is killed."""
        self.is_alive = False
        if self.flow is not None:
            self.flow.close()
            self.flow = None
            self._always()

    def _go_on(self, send: Callable[[], Step]) -> None:
        try:
            self._next = send()
        except StopIteration as stop:
            self.flow = None
            self._always()
            self._then(stop.value)
        except Exception as error:
            self.flow = None
            self._always()
            if not is_passing(error) and not isinstance(error, self.world.expected):
                raise


class Processes(RuleBasedStateMachine):
    """Processes at one table; a subclass says what they do, and what holds."""

    number = 3
    waits: tuple[float, ...] = (0.5, 3.0, 7.0, 30.0)
    expected: tuple[type[Exception], ...] = ()
    """What calls may raise besides the errors of a table that is throttled or cannot be reached."""

    def __init__(self, client: Any, table: Table, serial: str) -> None:
        super().__init__()
        self.client, self.table, self.serial = client, table, serial
        self.time = self.latest = BEGINNING
        self.passed = 0.0
        self.late: list[Call] = []
        self.processes: list[Any] = [self.process() for _ in range(self.number)]

    def process(self) -> Process:
        """A new process."""
        return Process(self)

    def perform(self, call: Call) -> Any:
        """The table's answer to a request, or its error."""
        try:
            return getattr(self.client, call.operation)(**call.parameters)
        except Exception as error:
            return error

    def perform_all(self, flow: Flow[Any]) -> Any:
        """The result of a flow, performed without faults while everybody waits."""
        results: list[Any] = []
        Process(self).begin(CALM, flow, results.append)
        return results[0]

    def quiet(self) -> None:
        """All processes die, and the late requests arrive."""
        for process in self.processes:
            process.die()
        while self.late:
            self.perform(self.late.pop(0))

    @property
    def idle(self) -> list[Any]:
        """The processes that are in no call."""
        return [one for one in self.processes if one.flow is None]

    @precondition(lambda self: any(one.flow is not None for one in self.processes))
    @rule(data=st.data(), how=HOW)
    def a_call_goes_on(self, data: st.DataObject, how: How) -> None:
        busy = [one for one in self.processes if one.flow is not None]
        data.draw(st.sampled_from(busy)).go_on(how)

    @rule(data=st.data())
    def time_passes_or_a_process_dies(self, data: st.DataObject) -> None:
        seconds = data.draw(st.sampled_from([*self.waits, None]))
        if seconds is not None:
            self.time += seconds
            self.passed += max(0.0, seconds)
            self.latest = max(self.latest, self.time)
            for process in self.processes:
                process.began = min(process.began, self.time)
        else:
            number = data.draw(st.integers(0, self.number - 1))
            self.processes[number].die()
            self.processes[number] = self.process()

    @precondition(lambda self: self.late)
    @rule(data=st.data())
    def a_late_request_arrives(self, data: st.DataObject) -> None:
        self.perform(self.late.pop(data.draw(st.integers(0, len(self.late) - 1))))


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


def judge(make: Callable[[str], Processes], steps_max: int = STEPS_MAX) -> None:
    """Draw histories of `make`'s machine, each with a text that no other has."""
    serial = iter(range(10**9))
    run_state_machine_as_test(
        cast(Any, lambda: make(str(next(serial)))),
        settings=settings(
            max_examples=HISTORIES,
            stateful_step_count=steps_max,
            suppress_health_check=list(HealthCheck),
            phases=[phase for phase in Phase if phase is not Phase.explain],  # (which takes minutes)
            report_multiple_bugs=False,
        ),
    )
