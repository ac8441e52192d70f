"""Rounds against real servers; `make consistency` plays more."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

import orjson
import pytest

import balancer
import pgbouncer
import postgres
from consistency import past, patroni, rounds, streams
from consistency.deployments import Embedded
from consistency.history import History, load
from consistency.on_patroni import OnPatroni
from consistency.on_postgres import HELD_SECONDS, OnPostgres


@pytest.mark.parametrize("seed", [1, 2])
def test_a_server_that_is_killed_gives_sound_histories(seed: int, tmp_path: Path) -> None:
    played = rounds.play(Embedded(tmp_path / "data"), seed, faults=2, seconds=0.8, derived=seed == 2)
    assert [str(anomaly) for anomaly in played.anomalies] == []
    assert played.history.counts()["ok"] > 20
    assert played.faults == ["kill server 0"] * 2


@pytest.mark.parametrize("way", ["through PgBouncer", "with wrong clocks", "behind HAProxy"])
def test_servers_over_one_postgres_give_sound_histories(way: str) -> None:
    """Servers and the database are killed, and their connections cut."""
    if not postgres.installed():
        pytest.skip("PostgreSQL is not installed")
    pooled, skewed = "PgBouncer" in way, "clocks" in way
    if pooled and not pgbouncer.installed():
        pytest.skip("PgBouncer is not installed")
    balanced = "HAProxy" in way
    if balanced and not balancer.installed():
        pytest.skip("HAProxy is not installed")
    deployment = OnPostgres(2, pooled=pooled, skew_seconds=300 if skewed else 0, balanced=balanced)
    played = rounds.play(deployment, 5, faults=3, seconds=0.8, derived=skewed)
    assert [str(anomaly) for anomaly in played.anomalies] == []
    assert played.history.counts()["ok"] > 20
    assert len(played.faults) == 3


class LosesAnswers(OnPostgres):
    """Its only faults are those of a network that holds back answers: PostgreSQL commits, and no server hears
    of it until it has given up."""

    def faults(self) -> Mapping[str, Callable[[], None]]:
        long = f"for {HELD_SECONDS[-1]} s"
        of_all = super().faults().items()
        return {name: fault for name, fault in of_all if name.startswith("hold the answers") and long in name}


def test_commits_whose_answers_postgres_sends_in_vain_give_sound_histories() -> None:
    if not postgres.installed():
        pytest.skip("PostgreSQL is not installed")
    played = rounds.play(LosesAnswers(2), 7, faults=2, seconds=0.8, derived=True)
    assert [str(anomaly) for anomaly in played.anomalies] == []
    assert played.history.counts()["ok"] > 20
    assert played.history.of(past.NAME)


class LosesItsPrimary(OnPatroni):
    """Its only fault is the worst that can happen to a group, so that a round surely tests it."""

    def __init__(self) -> None:
        super().__init__(2)
        self.connected_to: list[str] = []

    def faults(self) -> Mapping[str, Callable[[], None]]:
        return {"lose the primary": super().faults()["lose the primary"]}

    def close(self) -> None:
        try:
            if self.servers is not None and self.group is not None:
                for url in self.servers.admin_urls:
                    health = urllib.request.urlopen(f"{url}/health").read()
                    self.connected_to.append(orjson.loads(health)["connected_to"])
                self.primary = f"127.0.0.1:{self.group.primary().port}/"
        finally:
            super().close()


def test_servers_over_a_group_find_its_new_primary() -> None:
    """The primary's machine dies, and Patroni makes its synchronous standby the primary: nothing that was
    acknowledged is lost."""
    if not patroni.installed():
        pytest.skip("Patroni, etcd or PostgreSQL is not installed")
    deployment = LosesItsPrimary()
    played = rounds.play(deployment, 6, faults=1, seconds=1)
    assert [str(anomaly) for anomaly in played.anomalies] == []
    assert played.history.counts()["ok"] > 20
    assert all(deployment.primary in place for place in deployment.connected_to)
    assert len(deployment.connected_to) == 2


def test_lost_answers_give_sound_histories(tmp_path: Path) -> None:
    """Some requests get no answer, or a server error; half of these were carried out."""
    faults = ("lose-answer", "lose-answer performed=no", "internal-error", "internal-error performed=yes")
    rules = [
        option
        for operation in ("PutItem", "UpdateItem", "TransactWriteItems")
        for seed, fault in enumerate(faults)
        for option in ("--fault", f"{operation} probability=0.05 seed={seed} {fault}")
    ]
    played = rounds.play(Embedded(tmp_path / "data", *rules), 3, faults=0, seconds=1)
    assert [str(anomaly) for anomaly in played.anomalies] == []
    assert played.history.counts()["unknown"] > 0


def test_each_judge_looks_at_what_was_recorded(tmp_path: Path) -> None:
    """Saving and loading keeps a history as it was; then each judge has to find a wrong answer."""
    played = rounds.play(Embedded(tmp_path / "data"), 4, faults=0, seconds=0.5, derived=True)
    assert played.anomalies == []
    path = tmp_path / "history.jsonl"
    played.history.save(path)
    history = load(path)
    assert history == played.history
    workloads = {operation.workload for operation in history.operations}
    assert workloads == {*rounds.JUDGES, streams.NAME, past.NAME}
    operations = history.operations
    state = next(operation for operation in operations if operation.action == "state")
    key, item = state.result["items"].popitem()
    assert past.judge(operations), f"the judge of the past did not see that {key} is missing"
    state.result["items"][key] = item
    assert past.judge(operations) == []
    page = next(operation for operation in operations if operation.action == "records")
    record = page.result.pop()
    assert streams.judge(operations), f"the judge of streams did not see that {record} is missing"
    for name, judge in rounds.JUDGES.items():
        operations = history.of(name)
        reads = [
            operation
            for operation in operations
            if operation.action in ("get", "read") and operation.status == "ok"
        ]
        last = reads[-1]
        last.result = _spoilt(last.result)
        assert judge(operations), f"the judge of {name} did not see that {last} is wrong"
    assert rounds.judge(History()) == []


def _spoilt(result: object) -> object:
    """A result that cannot be right."""
    match result:
        case int() | None:
            return -1
        case dict():
            return {key: [-1] for key in result}
        case list():
            return [-1, *result[1:]]
    raise AssertionError(f"no workload has the result {result}")
