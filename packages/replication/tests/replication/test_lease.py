"""The lease on clocks that stand still: never two servers that acknowledge, and no outage that stops one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hashrange.buckets import Content, Unreachable
from hashrange.buckets.folders import Folders
from hashrange_replication import lease as leases
from hashrange_replication.failures import CopyError, Fenced, Held
from hashrange_replication.lease import Lease, Watch, read_record, register
from hashrange_replication.place import Place
from shipping import Faulty, Time, place_in


def lease_of(place: Place, owner: str, now: Time, store: str = "store") -> Lease:
    return Lease(place, owner, f"machine of {owner}", store, now)


def standby_registered(place: Place, primary: Lease, standby: str = "standby") -> None:
    assert register(place, standby)
    primary.renew()
    found = read_record(place)
    assert found is not None
    assert found[0].acknowledged == standby


def test_an_outage_stops_nothing_without_a_standby(tmp_path: Path) -> None:
    now = Time()
    bucket = Faulty(Folders(tmp_path))
    primary = lease_of(place_in(tmp_path, bucket), "a", now)
    assert primary.take(None) is None
    bucket.fault = lambda name, key: "refused"
    now.advance(1e9)
    with pytest.raises(Unreachable):
        primary.renew()
    assert primary.refusing() is None
    assert math.isinf(primary.deadline)


def test_with_a_standby_the_lease_runs_out_before_the_standby_may_take_it(tmp_path: Path) -> None:
    now = Time()
    bucket = Faulty(Folders(tmp_path))
    place = place_in(tmp_path)
    primary = lease_of(place_in(tmp_path, bucket), "a", now)
    primary.take(None)
    standby_registered(place, primary)
    watch = Watch(place, now)
    watch.look()
    bucket.fault = lambda name, key: "refused"
    second = lease_of(place, "standby", now)
    with pytest.raises(Held, match="machine of a, in epoch 1"):
        second.take(1)
    stopped = None
    while second.epoch == 0:
        now.advance(0.5)
        if primary.refusing() is not None and stopped is None:
            stopped = now.seconds
        try:
            second.take(1)
        except Held:
            assert watch.look() is not None
            assert watch.wait_seconds() > 0
    assert stopped is not None
    assert now.seconds > stopped
    assert second.epoch == 2
    bucket.fault = lambda name, key: ""
    with pytest.raises(Fenced, match="machine of standby, in epoch 2"):
        primary.renew()
    now.advance(1e6)
    with pytest.raises(Fenced):
        primary.renew()
    assert "replica restore" in (primary.refusing() or "")


def test_a_lease_that_ran_out_is_renewed_if_nobody_took_it(tmp_path: Path) -> None:
    now = Time()
    primary = lease_of(place_in(tmp_path), "a", now)
    primary.take(None)
    standby_registered(place_in(tmp_path), primary)
    now.advance(leases.TTL_SECONDS)
    assert "ran out" in (primary.refusing() or "")
    primary.renew()
    assert primary.refusing() is None


def test_a_lease_is_given_up_although_a_standby_has_registered_since_the_last_renewal(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    primary = lease_of(place, "a", Time())
    primary.take(None)
    assert register(place, "standby")
    primary.release()
    found = read_record(place)
    assert found is not None
    assert (found[0].released, found[0].standby) == (True, "standby")


def test_a_standby_that_withdraws_frees_the_primary(tmp_path: Path) -> None:
    now = Time()
    place = place_in(tmp_path)
    primary = lease_of(place, "a", now)
    with pytest.raises(CopyError, match="no server has shipped"):
        register(place, "standby")
    primary.take(None)
    standby_registered(place, primary)
    assert primary.renew_seconds == leases.TTL_SECONDS / 3
    with pytest.raises(CopyError, match="has a standby already: standby"):
        register(place, "another")
    assert register(place, "standby")
    assert register(place, "")
    assert primary.deadline < math.inf
    primary.renew()
    assert math.isinf(primary.deadline)


@pytest.mark.parametrize("what", ["lost", "twice"])
def test_a_renewal_whose_answer_is_lost_is_no_takeover(tmp_path: Path, what: str) -> None:
    now = Time()
    bucket = Faulty(Folders(tmp_path))
    primary = lease_of(place_in(tmp_path, bucket), "a", now)
    primary.take(None)
    bucket.fault = lambda name, key: what if name == "put" else ""
    for _ in range(3):
        try:
            primary.renew()
        except Unreachable:
            assert what == "lost"
        now.advance(1)
    bucket.fault = lambda name, key: ""
    primary.renew()
    assert primary.fenced is None


def test_an_acknowledgement_whose_answer_is_lost_binds(tmp_path: Path) -> None:
    """The standby may have seen it."""
    now = Time()
    bucket = Faulty(Folders(tmp_path))
    primary = lease_of(place_in(tmp_path, bucket), "a", now)
    primary.take(None)
    register(place_in(tmp_path), "standby")
    bucket.fault = lambda name, key: "lost" if name == "put" else ""
    with pytest.raises(Unreachable):
        primary.renew()
    now.advance(leases.TTL_SECONDS)
    assert primary.refusing() is not None


def test_a_renewal_whose_answer_is_lost_is_not_renewed_by_a_look(tmp_path: Path) -> None:
    """The standby counts from the moment at which it saw the record, not from the answer."""
    now = Time()
    bucket = Faulty(Folders(tmp_path))
    place = place_in(tmp_path)
    primary = lease_of(place_in(tmp_path, bucket), "a", now)
    primary.take(None)
    standby_registered(place, primary)
    bucket.fault = lambda name, key: "lost" if name == "put" else ""
    with pytest.raises(Unreachable):
        primary.renew()
    watch = Watch(place, now)
    watch.look()
    bucket.fault = lambda name, key: ""
    now.advance(leases.TTL_SECONDS - 1)
    primary.renew()
    watch.look()
    assert primary.deadline < now.seconds + watch.wait_seconds()


def test_an_epoch_whose_answer_is_lost_is_no_takeover(tmp_path: Path) -> None:
    now = Time()
    bucket = Faulty(Folders(tmp_path))
    primary = lease_of(place_in(tmp_path, bucket), "a", now)
    primary.take(None)
    bucket.fault = lambda name, key: "lost" if name == "put" else ""
    for _ in range(2):
        with pytest.raises(Unreachable):
            primary.renew(new_epoch=True)
        with pytest.raises(Unreachable):
            primary.renew()
    assert register(place_in(tmp_path), "standby")
    bucket.fault = lambda name, key: ""
    primary.renew()
    assert primary.epoch >= 2
    lease_of(place_in(tmp_path), "a", now).take(None)
    with pytest.raises(Fenced):
        primary.renew()


def test_the_same_directory_takes_the_next_epoch_at_once(tmp_path: Path) -> None:
    now = Time()
    place = place_in(tmp_path)
    first = lease_of(place, "a", now)
    first.take(None)
    standby_registered(place, first)
    again = lease_of(place, "a", now)
    before = again.take(1)
    assert before is not None
    assert (before.epoch, again.epoch) == (1, 2)
    # The standby counts on what it has seen.
    assert again.record.acknowledged == "standby"
    assert again.deadline == now.seconds + leases.TTL_SECONDS
    with pytest.raises(Fenced):
        first.renew()


def test_a_lease_that_was_given_up_is_free(tmp_path: Path) -> None:
    now = Time()
    place = place_in(tmp_path)
    first, second = lease_of(place, "a", now), lease_of(place, "b", now)
    first.take(None)
    with pytest.raises(Held):
        second.take(1)
    first.release()
    second.take(1)
    assert second.epoch == 2
    third = lease_of(place, "c", now)
    second.release()
    with pytest.raises(Fenced, match="this directory ends in epoch 1"):
        third.take(1)
    third.take(None)


def test_a_copy_of_another_store_is_refused(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    lease_of(place, "a", Time()).take(None)
    with pytest.raises(CopyError, match="is of another store, store, and this one is other"):
        lease_of(place, "a", Time(), "other").take(None)


def test_a_deleted_lease_ends_the_epoch(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    primary = lease_of(place, "a", Time())
    primary.take(None)
    place.delete("lease")
    with pytest.raises(Fenced, match="was deleted"):
        primary.renew()


class Server:
    """One that wants to be primary: with a clock that may run a little faster or slower than others."""

    def __init__(self, folder: Path, name: str, rate: float) -> None:
        self.now = Time()
        self.rate = rate
        self.bucket = Faulty(Folders(folder))
        self.place = place_in(folder, self.bucket)
        self.lease = lease_of(self.place, name, self.now)
        self.name = name

    def acknowledges(self) -> bool:
        return self.lease.epoch > 0 and self.lease.refusing() is None

    def act(self) -> None:
        """Renew the lease, or try to take it if the primary has agreed to this standby."""
        try:
            if self.lease.epoch:
                self.lease.renew()
                return
            found = read_record(self.place)
            if found is None:
                return
            if not found[0].standby:
                register(self.place, self.name)
            elif found[0].acknowledged == self.name:
                self.lease.take(found[0].epoch)
        except (Unreachable, Held, CopyError):
            return


FAULTS = st.sampled_from(["", "refused", "lost"])
ACTS = st.tuples(st.integers(0, 1), st.floats(0.1, 9.0), FAULTS)


@given(st.lists(ACTS, max_size=40), st.floats(0.95, 1.04))
@settings(max_examples=150, deadline=None)
def test_never_two_servers_acknowledge(tmp_path_factory: Any, acts: list[Any], rate: float) -> None:
    folder = tmp_path_factory.mktemp("lease")
    servers = [Server(folder, "a", 1.0), Server(folder, "b", rate)]
    servers[0].lease.take(None)
    for number, seconds, fault in acts:
        # In small steps: each moment counts.
        for _ in range(4):
            for server in servers:
                server.now.advance(seconds / 4 * server.rate)
            assert sum(server.acknowledges() for server in servers) <= 1
        servers[number].bucket.fault = lambda name, key, fault=fault: fault
        servers[number].act()
        assert sum(server.acknowledges() for server in servers) <= 1


class Careless(Faulty):
    """A bucket that writes without regard to ETags, as some stores that speak S3's protocol do."""

    def put(
        self, bucket: str, key: str, content: Content, *, etag: str | None = None, new: bool = False
    ) -> str:
        return super().put(bucket, key, content, new=new)


def test_a_store_that_knows_no_conditions_is_refused(tmp_path: Path) -> None:
    place = place_in(tmp_path, Careless(Folders(tmp_path)))
    with pytest.raises(CopyError, match=r"does not know conditional writes \(If-Match\)"):
        lease_of(place, "a", Time()).take(None)
