"""Whose turn it is: connections that send the same have the same share, and one that asks for little waits
for few others. Time is that of a clock that only requests move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
import pytest

from hashrange.operations.execution import Execution
from hashrange.pace import Task
from hashrange.server.http import LARGE_READ_BYTES
from hashrange.server.plane import ROUND_SECONDS
from peer import FakeDatabase, Peer, request


class SlowDatabase(FakeDatabase):
    """Each request takes the time that it names, and is noted by the name of its client. Every 97th takes
    `held_up_seconds` more, as if the machine had done something else."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0
        self.held_up = 0
        self.held_up_seconds = 0.0
        self.served: list[str] = []

    def now(self) -> float:
        return self.time

    def submit(self, execution: Execution) -> Task | None:
        request = execution.request
        self.time += request["seconds"]
        self.held_up = (self.held_up + 1) % 97
        if not self.held_up:
            self.time += self.held_up_seconds
        self.served.append(request["client"])
        return super().submit(execution)


class Client:
    """A client that sends its next request when it has seen the answer to the one before."""

    def __init__(self, server: Peer, name: str, seconds: float, pipelined: int = 1) -> None:
        self.peer = server.another()
        self.name = name
        self.seconds = seconds
        self.pipelined = pipelined
        self.sent = 0

    def answered(self) -> int:
        return self.peer.transport.written.count(b"HTTP/1.1 200 ")

    def go_on(self) -> None:
        if self.answered() == self.sent:
            body = orjson.dumps({"client": self.name, "seconds": self.seconds})
            self.sent += self.pipelined
            self.peer.send(request("Now", body) * self.pipelined)


class Loop:
    """An event loop: each round does what was asked for, and then takes what clients have sent, in the order
    in which they sent it: that of the answers before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.database = SlowDatabase()
        monkeypatch.setattr("hashrange.server.plane.latency_now", self.database.now)
        monkeypatch.setattr("hashrange.server.http.latency_now", self.database.now)
        self.server = Peer()
        self.server.database = self.server.plane.database = self.database
        self.server.plane.round_seconds = ROUND_SECONDS
        self.clients: list[Client] = []

    def connect(self, name: str, seconds: float, pipelined: int = 1) -> Client:
        self.clients.append(Client(self.server, name, seconds, pipelined))
        return self.clients[-1]

    def run_until(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            self.server.run_round()
            served = {name: place for place, name in enumerate(self.database.served)}
            for client in sorted(self.clients, key=lambda client: served.get(client.name, -1)):
                if not client.peer.transport.paused:
                    client.go_on()

    def serve(self, count: int) -> list[str]:
        """The clients of the next requests that are served."""
        before = len(self.database.served)
        self.run_until(lambda: len(self.database.served) - before >= count)
        return self.database.served[before : before + count]


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    return Loop(monkeypatch)


@pytest.mark.parametrize("seconds", [2.0**-16, 2.0**-12, 2.0**-11, 2.0**-8, 2.0**-7, 2.0**-6])
@pytest.mark.parametrize("pipelined", [1, 10])
def test_equals_are_served_equally_often(loop: Loop, seconds: float, pipelined: int) -> None:
    """However long a request takes, and whatever place a connection has in the loop's lists."""
    for number in range(64):
        loop.connect(f"{number}", seconds, pipelined)
    loop.serve(64 * pipelined)
    served = Counter(loop.serve(64 * 10 * min(pipelined, 3)))
    assert len(served) == 64
    assert max(served.values()) <= 1.4 * min(served.values())


@pytest.mark.parametrize("seconds", [2.0**-12, 2.0**-11, 2.0**-8, 2.0**-7])
@pytest.mark.parametrize("held_up_seconds", [0.0, 0.03])
def test_no_equal_waits_for_many_turns_of_the_others(
    loop: Loop, seconds: float, held_up_seconds: float
) -> None:
    loop.database.held_up_seconds = held_up_seconds
    for number in range(64):
        loop.connect(f"{number}", seconds)
    loop.serve(64)
    served = loop.serve(64 * 10)
    last: dict[str, int] = {}
    waits = []
    for place, name in enumerate(served):
        waits.append(place - last.get(name, place))
        last[name] = place
    assert max(waits) <= 2 * 64


@pytest.mark.parametrize("dear_seconds", [0.0006, 0.003, 0.006])
@pytest.mark.parametrize("pipelined", [1, 100])
def test_who_asks_for_little_does_not_wait_for_those_that_ask_for_much(
    loop: Loop, dear_seconds: float, pipelined: int
) -> None:
    for number in range(64):
        loop.connect(f"dear {number}", dear_seconds, pipelined)
    cheap = loop.connect("cheap", 0.00002)
    loop.run_until(lambda: "cheap" in loop.database.served)
    waits = []
    for _ in range(20):
        answers = cheap.answered()
        began = loop.database.time
        loop.run_until(lambda before=answers: cheap.answered() > before)  # type: ignore[misc]
        waits.append(loop.database.time - began)
    assert max(waits) <= 2 * (ROUND_SECONDS + dear_seconds)


def test_new_connections_do_not_come_before_one_that_asks_for_little(loop: Loop) -> None:
    """A client that connects for each of its dear requests has no other place than one that stays."""
    cheap = loop.connect("cheap", 0.00002)
    loop.connect("dear", 0.006)
    loop.serve(50)
    for _ in range(20):
        for _ in range(10):
            loop.connect("dear", 0.006)
        answers = cheap.answered()
        began = loop.database.time
        loop.run_until(lambda before=answers: cheap.answered() > before)  # type: ignore[misc]
        assert loop.database.time - began <= 4 * (ROUND_SECONDS + 0.006)


def test_a_client_that_was_idle_has_saved_up_nothing(loop: Loop) -> None:
    idle = loop.connect("idle", 0.006)
    busy = loop.connect("busy", 0.006)
    loop.serve(10)
    loop.clients.remove(idle)
    loop.serve(100)
    loop.clients.insert(0, idle)
    busy.go_on()
    served = Counter(loop.serve(40))
    assert 15 <= served["idle"] <= 25


def test_pipelined_requests_are_answered_in_order_over_many_rounds(loop: Loop) -> None:
    peer = loop.server.another()
    bodies = [orjson.dumps({"client": f"{n}", "seconds": 0.002}) for n in range(20)]
    peer.send(b"".join(request("Now", body) for body in bodies))
    assert 0 < len(loop.database.served) < 20
    peer.run_soon()
    assert [body for _, body in peer.answers()] == bodies


def fail(data: Any) -> None:
    raise ZeroDivisionError


def test_a_connection_that_fails_holds_up_none_of_those_that_wait_for_their_turn(loop: Loop) -> None:
    clients = [loop.connect(f"{number}", ROUND_SECONDS) for number in range(5)]
    clients[2].peer.transport.write = fail  # type: ignore[method-assign]
    served = Counter(loop.serve(40))
    assert served["2"] == 1
    assert min(served[name] for name in "0134") >= 9
    assert clients[2].peer.transport.aborted
    assert loop.server.plane.metrics.internal_errors == 1


def test_a_connection_that_fails_holds_up_no_answers_of_others() -> None:
    server = Peer()
    peers = [server.another() for _ in range(3)]
    for peer in peers:
        peer.send(request("Later") * 2)
    peers[0].transport.write = fail  # type: ignore[method-assign]
    for done in server.database.unfinished:
        done({}, None)
    server.run_soon()
    assert peers[0].transport.aborted
    assert [peer.statuses() for peer in peers[1:]] == [[200, 200], [200, 200]]


def test_a_connection_that_fails_holds_up_no_large_bodies_of_others() -> None:
    server = Peer()
    peers = [server.another() for _ in range(2)]
    sent = request("Now", orjson.dumps({"filler": "x" * 2 * LARGE_READ_BYTES}))
    for peer in peers:
        peer.send(sent[: LARGE_READ_BYTES + 1])
        assert peer.transport.paused
    peers[0].transport.resume_reading = partial(fail, b"")  # type: ignore[method-assign]
    server.run_soon()
    assert [peer.transport.aborted for peer in peers] == [True, False]
    assert not peers[1].transport.paused
