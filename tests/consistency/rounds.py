"""A round: clients work on new tables, meanwhile the servers are hurt, and then the history is judged."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from threading import Event, Thread
from typing import Final

from consistency import counters, lists, registers, sets, tables, transfers
from consistency.client import AWAY_SECONDS, Client
from consistency.counters import Counters
from consistency.deployments import Deployment
from consistency.history import Anomaly, History
from consistency.lists import Lists
from consistency.registers import Registers
from consistency.sets import Sets
from consistency.tables import Workload
from consistency.transfers import Transfers

CLIENTS: Final = 8
SECONDS: Final = 1.5
FINAL_READS_MAX: Final = 100

JUDGES: Final = {module.NAME: module.judge for module in (registers, counters, sets, transfers, lists)}


@dataclass(slots=True)
class Round:
    """What happened, and what was wrong with it."""

    history: History = field(default_factory=History)
    faults: list[str] = field(default_factory=list)
    anomalies: list[Anomaly] = field(default_factory=list)

    def __str__(self) -> str:
        statuses = self.history.counts()
        outcomes = ", ".join(f"{statuses[status]:,} {status}" for status in ("ok", "failed", "unknown"))
        by_workload = Counter(operation.workload for operation in self.history.operations)
        workloads = ", ".join(f"{name} {number:,}" for name, number in sorted(by_workload.items()))
        faults = ", ".join(f"{name} {number} times" for name, number in sorted(Counter(self.faults).items()))
        verdict = f"{len(self.anomalies)} anomalies" if self.anomalies else "sound"
        return f"{outcomes} ({workloads}); {faults or 'no faults'}: {verdict}"


def judge(history: History) -> list[Anomaly]:
    """The anomalies of all workloads."""
    return [anomaly for name, of_workload in JUDGES.items() for anomaly in of_workload(history.of(name))]


def play(
    deployment: Deployment, seed: int, *, faults: int, seconds: float = SECONDS, clients: int = CLIENTS
) -> Round:
    """Play one round: start the servers, let the clients work, stop the servers, judge. `faults`: how many
    times the servers are hurt; between two faults the clients work for up to `seconds`."""
    random = Random(seed)
    played = Round()
    try:
        endpoints = deployment.start()
        table = f"consistency-{uuid.uuid4().hex[:12]}"
        names = [table, f"{table}-receipts"]
        boss = Client(-1, endpoints, Random(seed), played.history)
        for name in names:
            tables.create(boss, name)
        workloads: list[Workload] = [kind(table) for kind in (Registers, Counters, Sets, Lists)]
        workloads.append(Transfers(*names))
        for workload in workloads:
            workload.prepare(boss)
        workers = [Client(n, endpoints, Random(f"{seed} {n}"), played.history) for n in range(clients)]
        _work(workers, workloads, deployment, random, faults, seconds, played)
        boss.close()
        for workload in workloads:
            _finish(workload, boss, played.history)
        for name in names:
            tables.delete(boss, name)
        boss.close()
    finally:
        deployment.close()
    played.anomalies = judge(played.history)
    return played


def _work(
    workers: Sequence[Client],
    workloads: Sequence[Workload],
    deployment: Deployment,
    random: Random,
    faults: int,
    seconds: float,
    played: Round,
) -> None:
    """Let all clients work, and hurt the servers at random moments."""
    stop = Event()
    surprises: list[BaseException] = []

    def work(client: Client) -> None:
        try:
            while not stop.is_set():
                client.random.choice(workloads).step(client)
        except BaseException as error:
            surprises.append(error)
            stop.set()
        finally:
            client.close()

    threads = [Thread(target=work, args=(client,)) for client in workers]
    for thread in threads:
        thread.start()
    try:
        possible = deployment.faults()
        for _ in range(faults):
            if stop.wait(random.uniform(0, seconds)):
                break
            name = random.choice(sorted(possible))
            played.faults.append(name)
            possible[name]()
        stop.wait(seconds if not faults else random.uniform(0, seconds))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if surprises:
        raise surprises[0]


def _finish(workload: Workload, client: Client, history: History) -> None:
    """Read the final state; repeat that until every read of it was answered."""
    for _ in range(FINAL_READS_MAX):
        start = len(history.operations)
        workload.finish(client)
        if all(operation.status == "ok" for operation in history.operations[start:]):
            return
        time.sleep(AWAY_SECONDS)
    raise AssertionError(f"the final reads of {workload.name} failed: {history.operations[-1]}")
