"""Sessions: histories of uses at the same moment, ends, and requests that are lost or late."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from hashrange_patterns import Session, Table
from hashrange_patterns.sessions import SessionFlows
from patterns.processes import CALM, HOW, How, Processes, in_process, judge
from patterns.steps import Fate

IDLE, LIFETIME = 10, 60


@dataclass(slots=True)
class Known:
    """What is known of a session: it lasts until `least` at least, and until `most` at most."""

    token: str
    least: float
    most: float
    ends: float
    ending: bool = False
    ended: bool = False
    uses: int = 0


class SessionHistories(Processes):
    """The sessions of a user."""

    waits = 0.5, 5.0, 9.5

    def __init__(self, client: Any, table: Table, serial: str) -> None:
        super().__init__(client, table, serial)
        self.flows = SessionFlows(table, IDLE, LIFETIME, self.processes[0].runtime)
        self.known: list[Known] = []
        self.ends_begun = self.ends_under_way = 0

    @precondition(lambda self: self.idle and len(self.known) < 2)
    @rule(data=st.data(), how=HOW)
    def begin(self, data: st.DataObject, how: How) -> None:
        began, ends, ends_begun = self.time, self.ends_under_way, self.ends_begun

        def begun(token: str) -> None:
            known = Known(token, began + IDLE, self.most(), began + LIFETIME)
            # (`end_all` may end what begins at the same moment)
            known.ending = bool(ends or self.ends_under_way or self.ends_begun > ends_begun)
            self.known.append(known)

        data.draw(st.sampled_from(self.idle)).begin(how, self.flows.begin(self.serial), begun)

    def use(self, data: st.DataObject, how: How) -> None:
        known, began = data.draw(st.sampled_from(self.known)), self.time
        was_over = known.ended or began >= known.ends or (began >= known.most and not known.uses)
        known.uses += 1

        def used() -> None:
            known.uses -= 1
            known.most = max(known.most, self.most())

        def got(session: Session | None) -> None:
            if session is None:
                assert known.ending or self.time >= min(known.least, known.ends - 1)
            else:
                assert not was_over
                known.least = max(known.least, began + IDLE)

        data.draw(st.sampled_from(self.idle)).begin(how, self.flows.get(known.token), got, used)

    @precondition(lambda self: self.idle and self.known)
    @rule(data=st.data(), how=HOW, rarely=st.integers(0, 4), everywhere=st.booleans())
    def end(self, data: st.DataObject, how: How, rarely: int, everywhere: bool) -> None:
        if rarely:
            self.use(data, how)
            return
        ending = self.known.copy() if everywhere else [data.draw(st.sampled_from(self.known))]
        for known in ending:
            known.ending = True

        def ended(_: object) -> None:
            for known in ending:
                known.ended = True

        def over() -> None:
            self.ends_under_way -= 1

        self.ends_begun += 1
        self.ends_under_way += 1
        flow = self.flows.end_all(self.serial) if everywhere else self.flows.end(ending[0].token)
        data.draw(st.sampled_from(self.idle)).begin(how, flow, ended, over)

    def most(self) -> float:
        """When a session ends that was used until now."""
        return math.ceil(self.time + 1.5 * IDLE)

    def verdict(self) -> None:
        for known in self.known:
            session = self.steps.alone(self.flows.get(known.token))
            assert not (known.ended and session)
            assert session or known.ending or self.time >= min(known.least, known.ends - 1)
        self.steps.alone(self.flows.end_all(self.serial))
        for known in self.known:
            assert self.steps.alone(self.flows.get(known.token)) is None
        left = self.client.query(**self.table.query(f"SESSIONS#{self.serial}"), ConsistentRead=True)
        assert left["Count"] == 0


@in_process
def test_the_later_of_two_uses_counts(client: Any, table: Table) -> None:
    world = SessionHistories(client, table, "two")
    world.passes(0.6)
    token = world.steps.alone(world.flows.begin("two"))
    world.passes(6.0)
    slow = world.processes[0]
    slow.begin(([Fate.ANSWERED], False), world.flows.get(token))
    world.passes(8.0)
    assert world.steps.alone(world.flows.get(token))
    slow.go_on(CALM)
    world.passes(9.9)
    assert world.steps.alone(world.flows.get(token))


@in_process
def test_a_session_lasts_from_its_last_use_until_it_is_ended(client: Any, table: Table) -> None:
    judge(lambda serial: SessionHistories(client, table, serial), client)
