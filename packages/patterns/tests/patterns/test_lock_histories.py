"""Locks: histories of processes whose clocks differ, whose requests are lost or late, and who die."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from hashrange_patterns import Held, Table
from hashrange_patterns.locks import LockFlows
from hashrange_patterns.requests import Runtime
from hashrange_patterns.tables import Address
from patterns.processes import HOW, How, Process, Processes, in_process, judge
from patterns.steps import Fate

LEASE, POLL, SKEW = 5.0, 1.0, 3.0
WALL = st.sampled_from([-1.4, 0.0, 1.4])


class Contender(Process):
    """A process that wants the lock. Its wall clock differs by `wall`, the other by much."""

    def __init__(self, world: LockHistories, wall: float = 0.0) -> None:
        super().__init__(world)
        self.wall = wall
        self.runtime = Runtime(
            now=lambda: world.time + self.wall,
            elapsed=lambda: world.time + 1e6 * wall,
            chance=lambda: 0.5,
            attempts_max=2,
        )
        self.locks = LockFlows(world.table, LEASE, POLL, SKEW, self.runtime)
        self.held: Held | None = None

    def got(self, held: Held | None) -> None:
        self.held = held

    @property
    def believes(self) -> bool:
        return self.is_alive and self.held is not None and self.locks.is_held(self.held)


class LockHistories(Processes):
    """One lock."""

    def __init__(self, client: Any, table: Table, serial: str) -> None:
        super().__init__(client, table, serial)
        self.name = f"lock{serial}"
        self.fence = 0
        self.written = 0

    def process(self) -> Contender:
        return Contender(self)

    @invariant()
    def one_process_at_most_believes_that_it_holds_the_lock(self) -> None:
        assert sum(process.believes for process in self.processes) <= 1

    @precondition(lambda self: self.idle)
    @rule(data=st.data(), how=HOW, wait=st.sampled_from([0.0, 3.0, 8.0]))
    def acquire(self, data: st.DataObject, how: How, wait: float) -> None:
        process = data.draw(st.sampled_from(self.idle))

        def got(held: Held | None) -> None:
            process.got(held)
            if held is not None:
                assert process.believes
                assert held.fence > self.fence
                self.fence = held.fence

        process.held = None
        process.begin(how, process.locks.acquire(self.name, wait_seconds=wait), got)

    @precondition(lambda self: any(one.held for one in self.idle))
    @rule(data=st.data(), how=HOW, what=st.sampled_from(["renew", "renew", "release", "write"]))
    def use(self, data: st.DataObject, how: How, what: str) -> None:
        process = data.draw(st.sampled_from([one for one in self.idle if one.held]))
        held = process.held
        if what == "renew":
            process.begin(how, process.locks.renew(held), process.got)
        elif what == "release":
            process.held = None
            process.begin(how, process.locks.release(held))
        else:
            report = {**self.table.key(Address("REPORT", self.serial)), "fence": {"N": str(held.fence)}}
            put = {"Put": {"TableName": self.table.name, "Item": report}}
            try:
                self.client.transact_write_items(TransactItems=[process.locks.member(held), put])
            except self.client.exceptions.TransactionCanceledException:
                assert not process.believes
            else:
                assert held.fence >= self.written
                self.written = held.fence

    @rule(number=st.integers(0, 2), wall=WALL)
    def a_wall_clock_jumps(self, number: int, wall: float) -> None:
        self.processes[number].wall = wall

    def verdict(self) -> None:
        self.passes(LEASE + SKEW + 2 * 1.4 + 0.001)
        fresh = Contender(self, -1.4)
        assert self.steps.alone(fresh.locks.acquire(self.name)) is not None


@in_process
def test_a_late_request_does_not_undo_a_later_one(client: Any, table: Table) -> None:
    world = LockHistories(client, table, "late")
    holder, other = world.processes[:2]
    holder.begin(([Fate.ANSWERED, Fate.LATE, Fate.ANSWERED], True), holder.locks.acquire("late"), holder.got)
    for _ in range(3):
        world.passes(4.0)
        holder.begin(([Fate.LATE, Fate.ANSWERED], True), holder.locks.renew(holder.held), holder.got)
    assert holder.believes
    while world.steps.late:
        world.steps.deliver(0)
        assert world.steps.alone(other.locks.acquire("late")) is None
        assert world.steps.alone(Contender(world).locks.acquire("late")) is None


@in_process
@pytest.mark.parametrize("fates", [[Fate.LOST], [Fate.ANSWERED, Fate.LOST]])
def test_a_lost_answer_locks_nobody_out(client: Any, table: Table, fates: list[str]) -> None:
    world = LockHistories(client, table, "lost")
    holder, other = world.processes[:2]
    holder.begin((fates, True), holder.locks.acquire("lost"), holder.got)
    first = holder.held
    assert first is not None
    holder.begin(([Fate.LOST], True), holder.locks.release(first))
    second = world.steps.alone(other.locks.acquire("lost"))
    assert second.fence == first.fence + 1


@in_process
def test_at_most_one_process_believes_that_it_holds_a_lock(client: Any, table: Table) -> None:
    judge(lambda serial: LockHistories(client, table, serial), client)
