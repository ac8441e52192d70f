"""Idempotent handlers, by example."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import pytest

from hashrange_patterns import (
    AsyncIdempotency,
    Idempotency,
    InProgress,
    KeyReused,
    Runtime,
    Started,
    Table,
)
from patterns.asynchronous import asynchronous
from patterns.faults import Intercepted

NOW = float(int(time.time()) + 86_400)  # (a server under test deletes what expired by the real time)


class Hand:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = NOW

    def store(self, client: Any, table: Table) -> Idempotency:
        runtime = Runtime(now=lambda: self.time)
        return Idempotency(client, table, lease_seconds=10, remember_seconds=100, runtime=runtime)


def test_a_repeated_request_gets_the_first_result(client: Any, table: Table) -> None:
    store = Idempotency(client, table)
    started = store.begin("payment-17", "10 EUR")
    assert started.result is None
    with pytest.raises(InProgress):
        store.begin("payment-17", "10 EUR")
    assert store.finish(started, "paid")
    assert store.finish(started, "paid")  # safe to repeat
    again = store.begin("payment-17", "10 EUR")
    assert again.result == "paid"
    with pytest.raises(KeyReused):
        store.begin("payment-17", "1000 EUR")
    with pytest.raises(ValueError, match="finished before"):
        store.finish(again, "paid again")
    assert store.begin("payment-18", "10 EUR").result is None


def test_an_answer_after_the_lease_is_not_a_claim(client: Any, table: Table) -> None:
    elapsed, slow = [0.0], [11.0]
    runtime = Runtime(now=lambda: NOW + elapsed[0], elapsed=lambda: elapsed[0])

    class Slow(Intercepted):
        def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
            answer = super().perform(operation, parameters)
            elapsed[0] += slow.pop(0) if slow else 0.0
            if elapsed[0] == 11.0:
                others.append(other.begin("k"))
            return answer

    other = Idempotency(client, table, lease_seconds=10, runtime=runtime)
    others: list[Started] = []
    late = Idempotency(cast(Any, Slow(client)), table, lease_seconds=10, runtime=runtime)
    with pytest.raises(InProgress):
        late.begin("k")
    assert other.finish(others[0], "done once")
    slow.append(12.0)
    started = late.begin("another")  # (nobody else claimed it meanwhile)
    assert late.finish(started, "done")
    slow += [12.0] * 12
    with pytest.raises(InProgress, match="longer than their lease"):
        late.begin("a third")


def test_a_handler_is_performed_once_for_each_key(client: Any, table: Table) -> None:
    store = Idempotency(client, table)
    calls: list[int] = []

    @store.handler(key=lambda order, amount: f"payment-{order}")
    def pay(order: int, amount: int) -> dict[str, int]:
        calls.append(amount)
        if amount < 0:
            raise ValueError("nothing was paid")
        return {"paid": amount}

    assert [pay(1, 10), pay(1, 10), pay(2, amount=5)] == [{"paid": 10}, {"paid": 10}, {"paid": 5}]
    with pytest.raises(KeyReused):
        pay(1, 11)
    for _ in range(2):
        with pytest.raises(ValueError, match="nothing was paid"):
            pay(3, -1)
    assert calls == [10, 5, -1, -1]


def test_an_asynchronous_handler_is_performed_once(client: Any, table: Table) -> None:
    calls: list[int] = []

    async def tour() -> None:
        store = AsyncIdempotency(asynchronous(client), table)

        @store.handler(key=lambda order: f"payment-{order}")
        async def pay(order: int) -> int:
            calls.append(order)
            return order // (order - 2)

        assert [await pay(1), await pay(1)] == [-1, -1]
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await pay(2)

    asyncio.run(tour())
    assert calls == [1, 2, 2]


def test_a_claim_expires(client: Any, table: Table) -> None:
    hand = Hand()
    store = hand.store(client, table)
    late = store.begin("k")
    hand.time += 10
    started = store.begin("k")
    assert not store.finish(late, "late")
    assert store.finish(started, "in time")
    assert store.begin("k").result == "in time"


def test_a_claim_can_be_given_back(client: Any, table: Table) -> None:
    store = Idempotency(client, table)
    started = store.begin("k")
    store.abandon(started)
    again = store.begin("k")
    store.abandon(started)  # not ours any more: nothing happens
    assert store.finish(again, "done")
    store.abandon(again)
    assert store.begin("k").result == "done"


def test_results_expire(client: Any, table: Table) -> None:
    hand = Hand()
    store = hand.store(client, table)
    store.finish(store.begin("k", "a"), "first")
    hand.time += 99
    assert store.begin("k", "a").result == "first"
    hand.time += 1
    started = store.begin("k", "b")
    assert started.result is None
    assert store.finish(started, "second")
    assert store.begin("k", "b").result == "second"


def test_the_asynchronous_twin(client: Any, table: Table) -> None:
    async def tour() -> None:
        store = AsyncIdempotency(asynchronous(client), table)
        started = await store.begin("k")
        assert "Update" in store.member(started, "x")
        assert await store.finish(started, "done")
        assert (await store.begin("k")).result == "done"

    asyncio.run(tour())
