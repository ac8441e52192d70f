"""Servers that share the background work of one store: each unit has one owner at a time, and gets one."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hashrange.storage.memory import MemoryEngine
from hashrange.tables.background.sharing import LEASE_SECONDS, RENEW_SECONDS, Sharing
from hashrange.tables.spaces import SERVER_SPACE

UNITS = [f"unit {number}" for number in range(24)]


class Servers:
    """Servers on one store, each with a steady clock of its own that began at another time."""

    def __init__(self) -> None:
        self.engine = MemoryEngine()
        self.now = 0.0
        self.made = 0
        self.running: list[Sharing] = []

    def start(self) -> Sharing:
        self.made += 1
        began = 1_000.0 * self.made
        server = Sharing(self.engine, f"server-{self.made}", lambda: self.now + began)
        server.tend()
        self.running.append(server)
        return server

    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def owners(self, unit: str) -> int:
        return sum(server.owns(unit) for server in self.running)


def test_a_server_that_is_alone_owns_everything_at_once() -> None:
    server = Servers().start()
    assert all(server.owns(unit) for unit in UNITS)
    assert server.servers == 1


def test_servers_share_the_work() -> None:
    servers = Servers()
    first, second = servers.start(), servers.start()
    assert not any(second.owns(unit) for unit in UNITS)
    for _ in range(5):
        servers.pass_time(RENEW_SECONDS)
        first.tend()
        second.tend()
    assert [servers.owners(unit) for unit in UNITS] == [1] * len(UNITS)
    assert 0 < sum(first.owns(unit) for unit in UNITS) < len(UNITS)
    assert first.servers == second.servers == 2


def test_a_server_that_leaves_leaves_its_work_to_others() -> None:
    servers = Servers()
    first, second = servers.start(), servers.start()
    for _ in range(5):
        servers.pass_time(RENEW_SECONDS)
        first.tend()
        second.tend()
    first.leave()
    assert not any(first.owns(unit) for unit in UNITS)
    servers.pass_time(RENEW_SECONDS)
    second.tend()
    assert all(second.owns(unit) for unit in UNITS)
    # The next one is alone again, and need not wait.
    second.leave()
    third = servers.start()
    assert all(third.owns(unit) for unit in UNITS)


def test_the_work_of_a_server_that_died_is_taken_over() -> None:
    servers = Servers()
    first, second = servers.start(), servers.start()
    for _ in range(5):
        servers.pass_time(RENEW_SECONDS)
        first.tend()
        second.tend()
    passed = 0.0
    while not all(second.owns(unit) for unit in UNITS):
        servers.pass_time(RENEW_SECONDS)
        passed += RENEW_SECONDS
        second.tend()
        assert all(servers.owners(unit) <= 1 for unit in UNITS)
    assert LEASE_SECONDS <= passed <= LEASE_SECONDS + RENEW_SECONDS
    assert not any(first.owns(unit) for unit in UNITS)
    # It was only slow: it comes back as one that is new.
    first.tend()
    assert not any(first.owns(unit) for unit in UNITS)


def test_the_lease_of_a_server_that_died_is_forgotten() -> None:
    servers = Servers()
    servers.start()
    second = servers.start()

    def leases() -> int:
        return servers.engine.read(lambda reader: len(list(reader.scan_space(SERVER_SPACE))))

    servers.pass_time(600)  # but not longer
    second.tend()
    assert leases() == 2
    servers.pass_time(RENEW_SECONDS)
    second.tend()
    assert leases() == 1


def test_a_lease_has_not_expired_if_it_was_renewed_after_the_last_look() -> None:
    servers = Servers()
    first, second = servers.start(), servers.start()
    servers.pass_time(6.0)
    second.tend()
    first.tend()
    servers.pass_time(5.0)
    assert all(servers.owners(unit) <= 1 for unit in UNITS)


def test_a_renewal_that_came_too_late_is_a_new_beginning() -> None:
    servers = Servers()
    first, second = servers.start(), servers.start()
    for _ in range(5):
        servers.pass_time(RENEW_SECONDS)
        first.tend()
        second.tend()
    write = servers.engine.write
    servers.pass_time(5.0)
    second.tend()
    servers.pass_time(LEASE_SECONDS - 6)

    def slow(body: Any) -> Any:
        servers.pass_time(3.0)
        servers.engine.write = write  # type: ignore[method-assign]
        second.tend()
        return write(body)

    servers.engine.write = slow  # type: ignore[method-assign]
    first.tend()
    assert all(servers.owners(unit) <= 1 for unit in UNITS)


events = st.one_of(
    st.tuples(st.just("time"), st.floats(0.0, 2 * LEASE_SECONDS)),
    st.tuples(st.just("tend"), st.integers(0, 5)),
    st.tuples(st.just("start"), st.just(0)),
    st.tuples(st.just("leave"), st.integers(0, 5)),
)


@given(st.lists(events, max_size=40))
def test_no_unit_ever_has_two_owners(history: list[tuple[str, float]]) -> None:
    servers = Servers()
    # A server that is no longer called has died. It keeps its last belief, and is asked as well.
    for event, number in history:
        if event == "time":
            servers.pass_time(number)
        elif event == "start" and len(servers.running) < 5:
            servers.start()
        elif servers.running and event != "start":
            server = servers.running[int(number) % len(servers.running)]
            if event == "tend":
                server.tend()
            else:
                server.leave()
        assert all(servers.owners(unit) <= 1 for unit in UNITS)
    # Those that go on tending share everything soon.
    if servers.running:
        for _ in range(12):
            servers.pass_time(RENEW_SECONDS)
            for server in servers.running:
                server.tend()
        assert [servers.owners(unit) for unit in UNITS] == [1] * len(UNITS)
