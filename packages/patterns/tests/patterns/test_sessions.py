"""Sessions, by example."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import pytest

from hashrange_patterns import AsyncSessions, Runtime, Session, Sessions, Table
from patterns.asynchronous import asynchronous
from patterns.faults import noting

NOW = float(int(time.time()) + 86_400)  # (a server under test deletes what expired by the real time)


class Hand:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = NOW

    def runtime(self) -> Runtime:
        return Runtime(now=lambda: self.time)


def test_a_session_begins_is_used_and_ends(client: Any, table: Table) -> None:
    sessions = Sessions(client, table)
    token = sessions.begin("alice", "theme=dark")
    session = sessions.get(token)
    assert isinstance(session, Session)
    assert (session.user, session.data) == ("alice", "theme=dark")
    assert sessions.get(token + "x") is None
    assert sessions.end(token)
    assert not sessions.end(token)
    assert sessions.get(token) is None


def test_the_table_does_not_hold_the_token(client: Any, table: Table) -> None:
    token = Sessions(client, table).begin("alice")
    assert token not in str(client.scan(TableName=table.name)["Items"])


def test_an_idle_session_ends_and_a_used_session_continues(client: Any, table: Table) -> None:
    hand = Hand()
    sessions = Sessions(client, table, idle_seconds=100, lifetime_seconds=1_000, runtime=hand.runtime())
    used, idle = sessions.begin("alice"), sessions.begin("alice")
    for _ in range(16):
        hand.time += 60
        assert sessions.get(used) is not None
    assert sessions.get(idle) is None
    hand.time = NOW + 999
    assert sessions.get(used) is not None
    hand.time = NOW + 1_000
    assert sessions.get(used) is None


def test_a_session_lasts_for_its_idle_time_after_every_use(client: Any, table: Table) -> None:
    hand = Hand()
    sessions = Sessions(client, table, idle_seconds=100, lifetime_seconds=10_000, runtime=hand.runtime())
    token = sessions.begin("alice")
    for pause in (10, 99, 49, 99, 51, 99, 1, 99):
        hand.time += pause
        assert sessions.get(token) is not None, pause
    hand.time += 151
    assert sessions.get(token) is None


def test_most_uses_cost_only_a_read(client: Any, table: Table) -> None:
    hand = Hand()
    through, noted = noting(client)
    sessions = Sessions(through, table, idle_seconds=100, runtime=hand.runtime())
    token = sessions.begin("alice")
    noted.requests.clear()
    for _ in range(20):
        hand.time += 5
        assert sessions.get(token)
    assert noted.requests == {"get_item": 20, "update_item": 1}


def test_all_sessions_of_a_user_end(client: Any, table: Table) -> None:
    sessions = Sessions(client, table)
    tokens = [sessions.begin("alice") for _ in range(30)]
    other = sessions.begin("bob")
    assert sessions.end_all("alice") == 30
    assert [sessions.get(token) for token in tokens] == [None] * 30
    assert sessions.get(other)
    assert sessions.end_all("alice") == 0


@pytest.mark.parametrize("seconds", [(0, 10), (11, 10)])
def test_mistakes_are_refused(seconds: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="cannot be idle"):
        Sessions(cast(Any, None), "table", idle_seconds=seconds[0], lifetime_seconds=seconds[1])


def test_the_asynchronous_twin(client: Any, table: Table) -> None:
    async def tour() -> None:
        sessions = AsyncSessions(asynchronous(client), table)
        token = await sessions.begin("alice")
        assert await sessions.get(token)
        assert await sessions.end(token)
        assert await sessions.end_all("alice") == 0

    asyncio.run(tour())
