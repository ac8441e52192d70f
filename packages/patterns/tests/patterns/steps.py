"""Histories of calls whose every request is a step, and whose steps Hypothesis decides and shrinks.

A call is a flow of the patterns. Each of its requests is a step: it is answered, refused, lost before or
after it was performed, or comes late, after its sender has given it up. Between two requests of a call the
others have theirs, clocks jump, the table deletes what has expired, and a process dies with its call half
done.

    class Machine(Histories):
        def __init__(self, client):
            super().__init__(client)
            self.flows = CounterFlows(self.table, ..., self.steps.runtime())

        @rule(by=integers(1, 9))
        def add(self, by):
            self.start(self.flows.add("/", by), self.added)     # `added` is told the outcome

        def verdict(self):                                      # when all calls are done
            assert self.alone(self.flows.value("/")) == self.sum

    def test_histories(client):
        check(Machine, client)
"""

from __future__ import annotations

import enum
import itertools
import os
import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ConnectionClosedError, EndpointConnectionError, ReadTimeoutError
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from hashrange_patterns import StillUnprocessed, Table
from hashrange_patterns.flows import Call, Flow, Pause, Step
from hashrange_patterns.requests import Runtime, is_refused, is_unknown
from patterns.faults import answer_of

EXAMPLES: Final = int(os.environ.get("HASHRANGE_PATTERN_ROUNDS", "25"))
"""How many histories each machine draws."""
STEPS: Final = 40
CALLS_MAX: Final = 4
"""How many calls are under way at once."""
# (the tables under test delete nothing by themselves before that)
BEGIN_SECONDS: Final = 4_102_444_800.0
_ENDPOINT: Final = "https://dynamodb.invalid"
_READS: Final = {"get_item", "query", "batch_get_item", "transact_get_items"}
_NUMBER: Final = itertools.count()


class Fate(enum.Enum):
    """What happens to a request, and what its sender learns; or that its sender dies."""

    ANSWERED = "performed, and answered"
    REFUSED = "not performed, and the answer says so"
    FAILED = "not performed, and the answer does not say so"
    LOST = "performed, and its sender does not learn it"
    LATE = "performed later, and its sender does not learn it"
    PART = "a batch performed in part, a page of a Query that ends early; otherwise answered"
    DEAD = "not performed, and its sender dies"
    DEAD_AFTER = "performed, and its sender dies"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended: with a result, with an error, or by the death of its process.

    `unknown` counts its requests that may have been performed although it learned nothing of them.
    """

    result: Any = None
    error: Exception | None = None
    killed: bool = False
    unknown: int = 0

    @property
    def returned(self) -> bool:
        return self.error is None and not self.killed


Then = Callable[[Outcome], None]


@dataclass(slots=True)
class Running:
    """A call under way, and its next step."""

    flow: Flow[Any]
    then: Then
    expected: tuple[type[Exception], ...]
    step: Step
    unknown: int = 0


class Steps:
    """Calls under way on one table, the time, and the requests that arrive late."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.time = BEGIN_SECONDS
        self.running: list[Running] = []
        self.late: list[Call] = []
        self.chance = random.Random(0)

    def runtime(self, skew_seconds: float = 0.0, attempts_max: int = 3) -> Runtime:
        """The surroundings of a process whose clock is wrong by `skew_seconds`."""
        return Runtime(
            now=lambda: self.time + skew_seconds,
            elapsed=lambda: self.time,
            chance=self.chance.random,
            attempts_max=attempts_max,
        )

    def start(self, flow: Flow[Any], then: Then = lambda outcome: None, *expected: type[Exception]) -> None:
        """Begin a call; errors other than those of DynamoDB and those `expected` fail the test."""
        try:
            running = Running(flow, then, expected, next(flow))
        except StopIteration as stop:
            then(Outcome(stop.value))
        else:
            self.running.append(running)

    def step(self, running: Running, fate: Fate = Fate.ANSWERED, detail: int = 0) -> None:
        """Perform the next step of a call. `detail` chooses among the forms of a fate."""
        if fate in (Fate.DEAD, Fate.DEAD_AFTER):
            self.kill(running, performed=fate is Fate.DEAD_AFTER)
            return
        if isinstance(running.step, Pause):
            self.time += running.step.seconds
            self._go_on(running, None, None)
            return
        assert isinstance(running.step, Call)  # (flows of tests do nothing side by side)
        answer, error = None, None
        try:
            answer = self._meet(running, running.step, fate, detail)
        except Exception as caught:
            error = caught
        self._go_on(running, answer, error)

    def kill(self, running: Running, *, performed: bool) -> None:
        """End a call with its process; its request may be under way."""
        self.running.remove(running)
        if performed and isinstance(running.step, Call):
            running.unknown += self._perform_unseen(running.step)
        running.flow.close()
        running.then(Outcome(killed=True, unknown=running.unknown))

    def deliver(self, number: int) -> None:
        """Perform a request that comes late."""
        self._perform_unseen(self.late.pop(number))

    def finish(self) -> None:
        """Perform what is left, without faults; calls in turns."""
        while self.late:
            self.deliver(0)
        while self.running:
            for running in list(self.running):
                self.step(running)

    def alone(self, flow: Flow[Any]) -> Any:
        """The result of a call whose requests are all answered while no other call has a step."""
        results: list[Any] = []
        others, self.running = self.running, []
        self.start(flow, lambda outcome: results.append(outcome.result))
        while self.running:
            self.step(self.running[0])
        self.running = others
        return results[0]

    def _go_on(self, running: Running, answer: Any, error: Exception | None) -> None:
        try:
            running.step = running.flow.send(answer) if error is None else running.flow.throw(error)
            return
        except StopIteration as stop:
            outcome = Outcome(stop.value, unknown=running.unknown)
        except Exception as raised:
            passing = is_refused(raised) or is_unknown(raised) or isinstance(raised, StillUnprocessed)
            if not passing and not isinstance(raised, running.expected):
                raise
            outcome = Outcome(error=raised, unknown=running.unknown)
        self.running.remove(running)
        running.then(outcome)

    def _meet(self, running: Running, call: Call, fate: Fate, detail: int) -> Any:
        """What the sender of a request gets: an answer or an error."""
        if fate is Fate.REFUSED:
            raise _refusal(call, detail)
        if fate is Fate.FAILED or (fate is Fate.LATE and call.operation in _READS):
            running.unknown += 1
            raise answer_of("InternalServerError", status=500)
        if fate is Fate.LATE:
            running.unknown += 1
            self.late.append(call)
            raise ReadTimeoutError(endpoint_url=_ENDPOINT)
        if fate is Fate.LOST:
            running.unknown += self._perform_unseen(call)
            errors = [
                ConnectionClosedError(endpoint_url=_ENDPOINT),
                ReadTimeoutError(endpoint_url=_ENDPOINT),
                answer_of("ServiceUnavailable", status=503),
            ]
            raise errors[detail % len(errors)]
        if fate is Fate.PART:
            return self._part(call, detail)
        return self._perform(call)

    def _perform(self, call: Call) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = getattr(self.client, call.operation)(**call.parameters)
        return answer

    def _perform_unseen(self, call: Call) -> int:
        """Perform a request whose answer nobody gets; 1."""
        try:
            self._perform(call)
        except Exception as error:
            assert hasattr(error, "response"), error  # (DynamoDB may refuse it; nothing else may go wrong)
        return 1

    def _part(self, call: Call, detail: int) -> Mapping[str, Any]:
        """A batch of which `detail` members are performed, or a Query that ends after that many."""
        parameters = dict(call.parameters)
        if call.operation == "query":
            limit = min(detail + 1, parameters.get("Limit", detail + 1))
            return self._perform(Call("query", {**parameters, "Limit": limit}))
        if call.operation not in {"batch_get_item", "batch_write_item"}:
            return self._perform(call)
        [(table, asked)] = parameters["RequestItems"].items()
        reads = call.operation == "batch_get_item"
        members = list(asked["Keys"] if reads else asked)
        cut = detail % len(members)
        done, left = ({**asked, "Keys": part} if reads else part for part in (members[:cut], members[cut:]))
        answer: Mapping[str, Any] = {"Responses": {}}
        if cut:
            answer = self._perform(Call(call.operation, {"RequestItems": {table: done}}))
        return {**answer, ("UnprocessedKeys" if reads else "UnprocessedItems"): {table: left}}


def _refusal(call: Call, detail: int) -> Exception:
    """An error which says that `call` was not performed."""
    errors: list[Exception] = [
        answer_of("ThrottlingException"),
        answer_of("ProvisionedThroughputExceededException"),
        EndpointConnectionError(endpoint_url=_ENDPOINT),
    ]
    if call.operation not in _READS:
        errors.append(answer_of("TransactionConflictException"))
    if call.operation.startswith("transact"):
        errors.append(answer_of("TransactionInProgressException"))
        for reason in ("TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"):
            reasons = ["None"] * len(call.parameters["TransactItems"])
            reasons[detail % len(reasons)] = reason
            errors.append(answer_of("TransactionCanceledException", reasons=reasons))
    return errors[detail % len(errors)]


_PLACES: Final = st.integers(0, CALLS_MAX - 1)
_DETAILS: Final = st.integers(0, 7)
# (the first is what Hypothesis shrinks to)
_FATES: Final = st.sampled_from([Fate.ANSWERED, Fate.ANSWERED, Fate.ANSWERED, *Fate])
_JUMPS: Final = st.sampled_from([0.001, 1.0, 10.0, 100.0, 3_600.0])


class Histories(RuleBasedStateMachine):
    """A machine with a table of its own. A subclass adds rules that start calls, and a verdict."""

    def __init__(self, client: Any) -> None:
        super().__init__()
        self.client = client
        self.table = Table(f"histories-{os.getpid()}-{next(_NUMBER)}")
        client.create_table(**self.table.definition())
        self.steps = Steps(client)

    def start(self, flow: Flow[Any], then: Then = lambda outcome: None, *expected: type[Exception]) -> None:
        """Begin a call: see `Steps.start`. One more than `CALLS_MAX` goes on without faults at first."""
        while len(self.steps.running) >= CALLS_MAX:
            self.steps.step(self.steps.running[0])
        self.steps.start(flow, then, *expected)

    def alone(self, flow: Flow[Any]) -> Any:
        """The result of a call without faults, while no other has a step."""
        return self.steps.alone(flow)

    def verdict(self) -> None:
        """What holds when all calls are done."""

    def _chosen(self, place: int) -> Running:
        return self.steps.running[place % len(self.steps.running)]

    @precondition(lambda self: self.steps.running)
    @rule(place=_PLACES, fate=_FATES, detail=_DETAILS)
    def step(self, place: int, fate: Fate, detail: int) -> None:
        """A request of a call meets its fate, or its process dies."""
        self.steps.step(self._chosen(place), fate, detail)

    @precondition(lambda self: self.steps.running)
    @rule(place=_PLACES)
    def go_on(self, place: int) -> None:
        """A call is performed to its end, without faults."""
        running = self._chosen(place)
        while running in self.steps.running:
            self.steps.step(running)

    @precondition(lambda self: self.steps.late)
    @rule(place=_PLACES)
    def come_late(self, place: int) -> None:
        """A request that its sender has given up is performed."""
        self.steps.deliver(place % len(self.steps.late))

    @rule(seconds=_JUMPS, expires=st.booleans())
    def wait(self, seconds: float, expires: bool) -> None:
        """Time passes; the table deletes what has expired, or has not come to it yet."""
        self.steps.time += seconds
        if expires:
            self.expire()

    def expire(self) -> None:
        """Delete what has expired."""
        for item in self.items():
            if int(item.get(self.table.expires_at, {}).get("N", "9999999999")) <= self.steps.time:
                key = self.table.key(self.table.address(item))
                self.client.delete_item(TableName=self.table.name, Key=key)

    def items(self, beginning: str = "") -> list[dict[str, Any]]:
        """The items in the table whose partition keys begin so."""
        pages = self.client.get_paginator("scan").paginate(TableName=self.table.name, ConsistentRead=True)
        items = [item for page in pages for item in page["Items"]]
        return [item for item in items if item[self.table.partition_key]["S"].startswith(beginning)]

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:  # (otherwise a rule has failed, and that is to be seen)
                self.steps.finish()
                self.verdict()
        finally:
            self.client.delete_table(TableName=self.table.name)


def check(machine: Callable[[Any], Histories], client: Any, examples: int = EXAMPLES) -> None:
    """Draw histories of `machine`, and fail with the smallest that breaks what it says."""
    make: Any = lambda: machine(client)  # noqa: E731 (typed as a class, which it need not be)
    run_state_machine_as_test(
        make,
        settings=settings(
            max_examples=examples,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
