"""The rate limiter against its definition, with any requests at any times, and many at once."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hashrange_patterns import AsyncRates, Contended, Rates, Runtime, Table
from hashrange_patterns.flows import Call
from hashrange_patterns.rates import RateFlows
from patterns.asynchronous import asynchronous

NOW = float(int(time.time()) + 86_400)  # (a server under test deletes what expired by the real time)
KEYS = itertools.count()


class Hand:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = NOW

    def rates(self, client: Any, table: Table, per_second: float, burst: int) -> Rates:
        runtime = Runtime(now=lambda: self.time)
        return Rates(client, table, per_second=per_second, burst=burst, runtime=runtime)


def test_a_burst_passes_and_then_the_rate(client: Any, table: Table) -> None:
    hand = Hand()
    rates = hand.rates(client, table, 2.0, 3)
    decisions = [rates.allow("reader7") for _ in range(4)]
    assert [one.allowed for one in decisions] == [True, True, True, False]
    assert [one.remaining for one in decisions] == [2, 1, 0, 0]
    assert decisions[3].retry_after_seconds == pytest.approx(0.5)
    assert rates.allow("reader8").allowed
    hand.time += 0.5
    assert [rates.allow("reader7").allowed for _ in range(2)] == [True, False]
    hand.time += 60
    assert [rates.allow("reader7").remaining for _ in range(3)] == [2, 1, 0]


def test_a_costly_request_waits_for_its_share(client: Any, table: Table) -> None:
    hand = Hand()
    rates = hand.rates(client, table, 1.0, 10)
    assert rates.allow("k", 8).remaining == 2
    refused = rates.allow("k", 5)
    assert (refused.allowed, refused.remaining) == (False, 2)
    hand.time += refused.retry_after_seconds
    assert rates.allow("k", 5).allowed


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.floats(0, 5), st.integers(1, 4)), min_size=1, max_size=25),
    st.sampled_from([0.3, 1.0, 3.0, 7.0]),
    st.integers(4, 9),
)
def test_it_decides_like_a_token_bucket(
    client: Any, table: Table, requests: list[tuple[float, int]], per_second: float, burst: int
) -> None:
    hand, key = Hand(), str(next(KEYS))
    rates = hand.rates(client, table, per_second, burst)
    tokens = float(burst)
    for wait, cost in requests:
        hand.time += wait
        tokens = min(float(burst), tokens + wait * per_second)
        decision = rates.allow(key, cost)
        if abs(tokens - cost) > 1e-3:  # (nearer than that, rounding decides)
            assert decision.allowed == (tokens >= cost)
        if decision.allowed:
            tokens -= cost


def test_it_expires_when_the_bucket_is_full(client: Any, table: Table) -> None:
    rates = Rates(client, table, per_second=1.0, burst=60)
    rates.allow("k")
    key = {"PK": {"S": "RATE#k"}, "SK": {"S": "RATE"}}
    item = client.get_item(TableName=table.name, Key=key, ConsistentRead=True)["Item"]
    assert int(item["expires_at"]["N"]) * 1_000_000 >= int(item["full_at"]["N"])


def test_it_raises_when_it_cannot_decide(client: Any, table: Table) -> None:
    flow = RateFlows(table, 1.0, 2, Runtime(now=lambda: NOW, attempts_max=1)).allow("k")
    first = next(flow)
    assert isinstance(first, Call)
    with pytest.raises(client.exceptions.ConditionalCheckFailedException) as missing:
        client.update_item(**first.parameters)
    second = flow.throw(missing.value)
    Rates(client, table, per_second=1.0, burst=2, runtime=Runtime(now=lambda: NOW)).allow("k")
    assert isinstance(second, Call)
    with pytest.raises(client.exceptions.ConditionalCheckFailedException) as taken:
        client.update_item(**second.parameters)
    with pytest.raises(Contended):
        flow.throw(taken.value)


@pytest.mark.parametrize(("per_second", "burst"), [(0.0, 1), (-1.0, 1), (1.0, 0)])
def test_mistakes_are_refused(per_second: float, burst: int) -> None:
    with pytest.raises(ValueError, match="allow no request"):
        Rates(cast(Any, None), "t", per_second=per_second, burst=burst)
    with pytest.raises(ValueError, match="never allowed"):
        Rates(cast(Any, None), "t", per_second=1.0, burst=2).allow("k", 3)


def test_the_asynchronous_twin(client: Any, table: Table) -> None:
    rates = AsyncRates(asynchronous(client), table, per_second=1.0, burst=1)

    async def ask() -> Any:
        return await rates.allow("k")

    assert asyncio.run(ask()).allowed
