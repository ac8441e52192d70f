"""Locks, by example."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast

import pytest

from hashrange_patterns import AsyncLocks, Held, Locks, Runtime, Table
from hashrange_patterns.locks import Lost
from patterns.asynchronous import asynchronous
from patterns.faults import Intercepted


class Process:
    """A process with locks, whose clock stands until it is moved; it sleeps by moving it."""

    def __init__(self, client: Any, table: Table, elapsed: float = 100.0) -> None:
        self.elapsed = elapsed
        runtime = Runtime(elapsed=lambda: self.elapsed, chance=lambda: 0.5)
        self.locks = Locks(client, table, lease_seconds=10, poll_seconds=1, runtime=runtime)
        self.locks._sleep = self.sleep

    def sleep(self, seconds: float) -> None:
        self.elapsed += seconds


def test_one_holds_and_the_other_gets_it_after(client: Any, table: Table) -> None:
    one, other = Process(client, table), Process(client, table, elapsed=9e6)
    held = one.locks.acquire("report")
    assert held is not None
    assert (held.fence, one.locks.is_held(held)) == (1, True)
    assert other.locks.acquire("report") is None
    assert one.locks.release(held)
    assert one.locks.release(held)  # safe to repeat
    second = other.locks.acquire("report")
    assert second is not None
    assert second.fence == 2
    assert not one.locks.release(held)
    assert one.locks.renew(held) is None


def test_a_dead_holder_s_lock_is_free_after_a_watched_lease(client: Any, table: Table) -> None:
    dead, waiting = Process(client, table), Process(client, table, elapsed=5.0)
    assert dead.locks.acquire("report")
    assert waiting.locks.acquire("report", wait_seconds=9) is None
    held = waiting.locks.acquire("report", wait_seconds=3)
    assert held is not None
    assert held.fence == 2
    assert 15.0 <= waiting.elapsed <= 18.0


def test_a_new_process_gets_the_lock_of_a_process_that_died(client: Any, table: Table) -> None:
    """A nightly job that asks once, and does not wait."""
    hand = [1_000_000.0]

    def fresh(skew: float = 0.0) -> Locks:
        runtime = Runtime(now=lambda: hand[0] + skew)
        return Locks(client, table, lease_seconds=10, skew_seconds=60, runtime=runtime)

    assert fresh().acquire("report")
    for passed, skew in ((9, 60), (60, 0), (69, -60)):
        hand[0] = 1_000_000.0 + passed
        assert fresh(skew).acquire("report") is None
    hand[0] = 1_000_000.0 + 70
    held = fresh().acquire("report")
    assert held is not None
    assert held.fence == 2


def test_a_lock_whose_answer_came_after_the_lease_is_not_held(client: Any, table: Table) -> None:
    process = Process(client, table)

    class Slow(Intercepted):
        def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
            answer = super().perform(operation, parameters)
            process.elapsed += slow.pop(0) if slow else 0
            return answer

    slow = [0, 11]  # the lock is read, and taken
    process.locks._client = cast(Any, Slow(client))
    held = process.locks.acquire("report")
    assert held is not None
    assert process.locks.is_held(held)
    assert process.locks.release(held)
    slow = [0, 11, 11]
    assert process.locks.acquire("report") is None


def test_a_block_holds_its_lock(client: Any, table: Table) -> None:
    renewed = threading.Semaphore(0)

    class Watched(Intercepted):
        def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
            answer = super().perform(operation, parameters)
            if parameters.get("UpdateExpression", "").startswith("SET #beat = :beat, #until"):
                renewed.release()
            return answer

    locks = Locks(cast(Any, Watched(client)), table, lease_seconds=0.6)
    with locks.holding("report") as holding:
        assert holding is not None
        for _ in range(4):  # (longer than the lease)
            assert renewed.acquire(timeout=30.0)
        with Locks(client, table).holding("report") as other:
            assert other is None
        assert write(client, table, locks, holding._held, "new")
        assert holding.fence == 1
    with pytest.raises(KeyError), locks.holding("report"):
        raise KeyError("its own error")
    key = {"PK": {"S": "LOCK#report"}, "SK": {"S": "LOCK"}}
    with pytest.raises(Lost), locks.holding("report"):
        client.delete_item(TableName=table.name, Key=key)
    assert locks.acquire("report") is not None


def test_an_asynchronous_block_holds_its_lock(client: Any, table: Table) -> None:
    async def tour() -> None:
        locks = AsyncLocks(asynchronous(client), table, lease_seconds=0.3)
        async with locks.holding("report") as holding:
            assert holding is not None
            beat = holding._held.beat
            async with asyncio.timeout(30):
                while holding._held.beat < beat + 4:  # (longer than the lease)
                    await asyncio.sleep(0)
            assert holding.is_held
            async with locks.holding("report") as other:
                assert other is None
        key = {"PK": {"S": "LOCK#report"}, "SK": {"S": "LOCK"}}
        with pytest.raises(Lost):
            async with locks.holding("report"):
                client.delete_item(TableName=table.name, Key=key)
        with pytest.raises(KeyError):
            async with locks.holding("report"):
                raise KeyError("its own error")
        assert await locks.acquire("report") is not None

    asyncio.run(tour())


def test_a_holder_that_renews_keeps_it(client: Any, table: Table) -> None:
    one, waiting = Process(client, table), Process(client, table)
    held = one.locks.acquire("report")
    for _ in range(5):
        assert held is not None
        assert waiting.locks.acquire("report", wait_seconds=7) is None
        one.elapsed += 7
        assert one.locks.is_held(held)
        held = one.locks.renew(held)
    assert held is not None
    one.elapsed += 10
    assert not one.locks.is_held(held)


def test_the_fence_stops_a_holder_that_slept(client: Any, table: Table) -> None:
    sleeper, waiting = Process(client, table), Process(client, table)
    late = sleeper.locks.acquire("report")
    assert late is not None
    held = waiting.locks.acquire("report", wait_seconds=12)
    assert held is not None
    assert write(client, table, waiting.locks, held, "new")
    assert not write(client, table, sleeper.locks, late, "old")
    key = {"PK": {"S": "REPORT"}, "SK": {"S": "REPORT"}}
    assert client.get_item(TableName=table.name, Key=key, ConsistentRead=True)["Item"]["text"] == {"S": "new"}


def write(client: Any, table: Table, locks: Locks, held: Held, text: str) -> bool:
    item = {"PK": {"S": "REPORT"}, "SK": {"S": "REPORT"}, "text": {"S": text}}
    try:
        client.transact_write_items(
            TransactItems=[locks.member(held), {"Put": {"TableName": table.name, "Item": item}}]
        )
    except client.exceptions.TransactionCanceledException:
        return False
    return True


def test_the_asynchronous_twin(client: Any, table: Table) -> None:
    async def tour() -> None:
        locks = AsyncLocks(asynchronous(client), table)
        held = await locks.acquire("report")
        assert held is not None
        assert locks.is_held(held)
        assert await locks.acquire("report", wait_seconds=0.001) is None
        held = await locks.renew(held)
        assert held is not None
        assert "ConditionCheck" in locks.member(held)
        assert await locks.release(held)

    asyncio.run(tour())
