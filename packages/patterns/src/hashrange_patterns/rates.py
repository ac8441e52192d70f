"""A rate limiter: limits the requests per second over time, and the requests at once (burst), by one write
for each.

It is the generic cell rate algorithm: the item holds the time at which the bucket is full again (`full_at`).
A request moves this time on by its share of a second; a request that would move it further than the burst
allows is refused. Each case, a full bucket and one that is filling, is a single conditional write, so
concurrent requests never get more than the limit.

    RATE#reader7   RATE   full_at (microseconds), expires_at

Refuses to sleep: it returns how long to wait.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from hashrange_patterns.flows import AsyncClient, Awaiting, Blocking, C, Client, Flow, Performing, performed
from hashrange_patterns.requests import Runtime, item_that_was_there, request
from hashrange_patterns.tables import Address, Table, table_of

_MICROS: Final = 1_000_000
# A bucket's item expires this long after it is full at the latest. If it expired early, by a clock that is
# ahead, a burst could pass.
_SPARE_SECONDS: Final = 3_600


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a request may pass; how many more may pass at once; and if not, how long to wait."""

    allowed: bool
    remaining: int
    retry_after_seconds: float


@dataclass(frozen=True, slots=True)
class RateFlows:
    """The logic of `Rates`."""

    table: Table
    per_second: float
    burst: int
    runtime: Runtime

    def __post_init__(self) -> None:
        if not 0 < self.per_second < math.inf or self.burst < 1:
            raise ValueError(
                f"{self.per_second} requests a second and {self.burst} at once allow no request: "
                "give more than 0, and 1 or more"
            )

    def allow(self, key: str, cost: int = 1) -> Flow[Decision]:
        """Decide on a request of `key`, which counts as `cost`.

        Costs 1 write unit, or 2 if the bucket was full, even for a refusal. Raises if DynamoDB does not
        answer: the program then decides whether to let the request pass.
        """
        if not 1 <= cost <= self.burst:
            raise ValueError(f"a cost of {cost} is never allowed with a burst of {self.burst}")
        # (rounded up, so that `per_second` is never exceeded)
        micros_per_request = math.ceil(_MICROS / self.per_second)
        share, depth = cost * micros_per_request, self.burst * micros_per_request
        for _ in range(self.runtime.attempts_max):
            now = int(self.runtime.now() * _MICROS)
            latest = now + depth - share
            moved, full_at = yield from self._move(
                key,
                "SET #full_at = #full_at + :share",
                "#full_at > :now AND #full_at <= :latest",
                now + depth,
                share=share,
                now=now,
                latest=latest,
            )
            if not moved and full_at <= now:
                moved, full_at = yield from self._move(
                    key,
                    "SET #full_at = :next",
                    "attribute_not_exists(#full_at) OR #full_at <= :now",
                    now + depth,
                    next=now + share,
                    now=now,
                )
            left = max(now + depth - full_at, 0) // micros_per_request
            if moved:
                return Decision(True, left, 0.0)
            if full_at > latest:
                return Decision(False, left, (full_at - latest) / _MICROS)
            # Another process wrote between the two writes.
        raise Contended(f"the bucket of {key!r} changed during each of {self.runtime.attempts_max} attempts")

    def _move(
        self, key: str, update: str, condition: str, until: int, **values: int
    ) -> Flow[tuple[bool, int]]:
        """Move the bucket's time, if `condition` is met; returns whether it was, and the time."""
        parameters = {
            **self.table.at(
                Address(f"RATE#{key}", "RATE"),
                update=f"{update}, #expires_at = :expires_at",
                condition=condition,
                expires_at=until // _MICROS + _SPARE_SECONDS,
                **values,
            ),
            "ReturnValues": "UPDATED_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            answer = yield from request(self.runtime, "update_item", parameters, repeatable=False)
        except Exception as error:
            return False, int(item_that_was_there(error).get("full_at", {}).get("N", "0"))
        return True, int(answer["Attributes"]["full_at"]["N"])


class Contended(Exception):
    """The bucket changed during each attempt, because there are far more requests than the limit."""


class _Rates(Performing[RateFlows, C]):
    def __init__(
        self,
        client: C,
        table: Table | str,
        *,
        per_second: float,
        burst: int,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(client, RateFlows(table_of(table), per_second, burst, runtime))

    allow = performed(RateFlows.allow)


class Rates(_Rates[Client], Blocking[RateFlows]):
    """A rate limiter, with a boto3 client: `per_second` over time, `burst` at once, for each key."""


class AsyncRates(_Rates[AsyncClient], Awaiting[RateFlows]):
    """`Rates` with an aiobotocore client."""
