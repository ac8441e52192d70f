"""The rate limiter by histories: many ask at once, answers are lost, and clocks differ."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from hashrange_patterns import Contended
from hashrange_patterns.rates import RateFlows
from patterns.faults import Intercepted
from patterns.steps import Histories, Outcome, check


class Passing(Intercepted):
    """Notes what passes in the order in which the table hears of it: the clock of who asked, and the cost."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.passed: list[tuple[int, int]] = []

    def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
        answer = super().perform(operation, parameters)
        if operation == "update_item":
            values = {
                name: int(value["N"]) for name, value in parameters["ExpressionAttributeValues"].items()
            }
            share = values[":share"] if ":share" in values else values[":next"] - values[":now"]
            self.passed.append((values[":now"], share))
        return answer


class Asking(Histories):
    """Two processes whose clocks differ, with a limit of one a second, and five at once."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.passing = self.steps.client = Passing(client)
        self.processes = [RateFlows(self.table, 1.0, 5, self.steps.runtime(skew)) for skew in (0.0, 0.7)]
        self.allowed = self.unknown = 0

    @rule(process=st.integers(0, 1), cost=st.integers(1, 5))
    def allow(self, process: int, cost: int) -> None:
        def then(outcome: Outcome) -> None:
            self.unknown += outcome.unknown
            if outcome.returned and outcome.result.allowed:
                self.allowed += 1
            elif outcome.returned:
                assert 0 <= outcome.result.remaining <= 5
                assert outcome.result.retry_after_seconds > 0

        self.start(self.processes[process].allow("k", cost), then, Contended)

    def expire(self) -> None:
        # (an item stays an hour longer than it has to, and no request comes later than that)
        self.steps.finish()
        super().expire()

    def verdict(self) -> None:
        passed = self.passing.passed
        assert self.allowed <= len(passed) <= self.allowed + self.unknown
        # From any request to any later one: no more than the burst, and what the time between gives.
        for first in range(len(passed)):
            sum_micros = 0
            for now, share in passed[first:]:
                sum_micros += share
                assert sum_micros <= 5_000_000 + now - passed[first][0]
        self.steps.time += 6.0
        full = self.alone(self.processes[0].allow("k"))
        assert (full.allowed, full.remaining) == (True, 4)


def test_no_more_requests_pass_than_the_bucket_holds_however_many_ask_at_once(in_process_client: Any) -> None:
    check(Asking, in_process_client)
