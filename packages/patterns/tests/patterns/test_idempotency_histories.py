"""Idempotency: histories of handlers that die, are slow, and whose requests are lost or late."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from hashrange_patterns import InProgress, Started, Table
from hashrange_patterns.flows import Flow
from hashrange_patterns.idempotency import IdempotencyFlows
from hashrange_patterns.requests import failed_members, transact
from hashrange_patterns.tables import Address
from patterns.processes import HOW, How, Process, Processes, in_process, judge
from patterns.steps import Fate

LEASE = 5.0


class Handler(Process):
    """A process that handles a request. It has its claim at least until `until`."""

    started: Started | None = None
    until = 0.0


class IdempotencyHistories(Processes):
    """One request, which comes again and again."""

    number = 2
    expected = (InProgress,)

    def __init__(self, client: Any, table: Table, serial: str) -> None:
        super().__init__(client, table, serial)
        self.store = IdempotencyFlows(table, LEASE, 1_000_000, self.processes[0].runtime)
        self.paid = Address("PAID", serial)
        self.result: str | None = None
        self.results = 0

    def process(self) -> Handler:
        return Handler(self)

    @precondition(lambda self: any(not one.started for one in self.idle))
    @rule(data=st.data(), how=HOW)
    def begin(self, data: st.DataObject, how: How) -> None:
        process = data.draw(st.sampled_from([one for one in self.idle if not one.started]))
        began = self.time

        def begun(started: Started) -> None:
            if started.result is not None:
                self.saw(started.result)
                return
            assert self.result is None
            assert all(one.until <= self.time for one in self.processes if one.started)
            process.started, process.until = started, began + LEASE

        process.begin(how, self.store.begin(self.serial, "body"), begun)

    @precondition(lambda self: any(one.started for one in self.idle))
    @rule(data=st.data(), how=HOW, what=st.sampled_from(["finish", "commit", "abandon"]))
    def end(self, data: st.DataObject, how: How, what: str) -> None:
        process = data.draw(st.sampled_from([one for one in self.idle if one.started]))
        started, until, process.started = process.started, process.until, None
        self.results += 1
        result = f"result {self.results}"

        def ended(still: bool) -> None:
            if still:
                self.saw(result)
            else:
                assert until <= self.time

        if what == "finish":
            process.begin(how, self.store.finish(started, result), ended)
        elif what == "commit":
            process.begin(how, self.pay(started, result), ended)
        else:
            process.begin(how, self.store.abandon(started))

    def saw(self, result: str) -> None:
        """Everybody gets the same result."""
        self.result = self.result or result
        assert result == self.result

    def pay(self, started: Started, result: str) -> Flow[bool]:
        """What a handler does in the table, with the result."""
        pay = {"Update": self.table.at(self.paid, update="ADD #times :one", one=1)}
        try:
            yield from transact(self.processes[0].runtime, [pay, self.store.member(started, result)])
        except Exception as error:
            failed_members(error)
            return False
        return True

    def verdict(self) -> None:
        self.passes(LEASE)
        last = self.steps.alone(self.store.begin(self.serial, "body"))
        if last.result is None:
            assert self.result is None
            assert self.steps.alone(self.pay(last, "the last"))
        else:
            self.saw(last.result)
        item = self.client.get_item(TableName=self.table.name, Key=self.table.key(self.paid)).get("Item")
        assert not item or item["times"] == {"N": "1"}


@in_process
def test_a_late_request_does_not_remove_the_result(client: Any, table: Table) -> None:
    world = IdempotencyHistories(client, table, "late")
    started: list[Started] = []
    world.processes[0].begin(([Fate.LATE], True), world.store.begin("late"), started.append)
    assert world.steps.alone(world.store.finish(started[0], "done"))
    world.quiet()
    assert world.steps.alone(world.store.begin("late")).result == "done"


@in_process
def test_a_lost_answer_locks_nobody_out(client: Any, table: Table) -> None:
    world = IdempotencyHistories(client, table, "lost")
    started: list[Started] = []
    world.processes[0].begin(([Fate.LOST], True), world.store.begin("lost"), started.append)
    world.processes[0].begin(([Fate.LOST], True), world.store.finish(started[0], "done"))
    assert world.steps.alone(world.store.begin("lost")).result == "done"


@in_process
def test_the_work_of_a_request_in_the_table_is_done_once(client: Any, table: Table) -> None:
    judge(lambda serial: IdempotencyHistories(client, table, serial), client)
