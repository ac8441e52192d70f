"""A round: clients work on new tables, meanwhile the servers are hurt, and then the history is judged."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from threading import Event, Thread
from typing import Final

from consistency import counters, lists, liveness, past, registers, sets, streams, tables, transfers
from consistency.client import AWAY_SECONDS, Client
from consistency.counters import Counters
from consistency.deployments import Deployment
from consistency.history import Anomaly, History
from consistency.lists import Lists
from consistency.past import Past
from consistency.registers import Registers
from consistency.sets import Sets
from consistency.streams import Streams
from consistency.tables import Workload
from consistency.transfers import Transfers

CLIENTS: Final = 8
SECONDS: Final = 1.5
FINAL_READS_MAX: Final = 100
DERIVED_SHARE: Final = 0.7
"""Of the rounds, in which tables have streams, recovery and indexes."""

JUDGES: Final = {module.NAME: module.judge for module in (registers, counters, sets, transfers, lists)}
JUDGES_OF_ALL: Final = (liveness.judge, streams.judge, past.judge)
"""These look at the operations of all workloads."""


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
        faults = ", then ".join(self.faults)
        verdict = f"{len(self.anomalies)} anomalies" if self.anomalies else "sound"
        return f"{outcomes} ({workloads}); {faults or 'no faults'}: {verdict}"


def judge(history: History) -> list[Anomaly]:
    """The anomalies of all workloads, and of what is judged over all."""
    anomalies = [anomaly for name, of_one in JUDGES.items() for anomaly in of_one(history.of(name))]
    return anomalies + [anomaly for of_all in JUDGES_OF_ALL for anomaly in of_all(history.operations)]


def play(
    deployment: Deployment,
    seed: int,
    *,
    faults: int,
    seconds: float = SECONDS,
    clients: int = CLIENTS,
    derived: bool | None = None,
) -> Round:
    """Play one round: start the servers, let the clients work, stop the servers, judge. `faults`: how many
    times the servers are hurt; between two faults the clients work for up to `seconds`. `derived`: whether
    the tables have streams, recovery and indexes; None: the seed says so."""
    random = Random(seed)
    if derived is None:
        derived = Random(f"{seed} derived").random() < DERIVED_SHARE
    played = Round()
    problems = ""
    stack = ExitStack()

    def client(number: int) -> Client:
        # Every other one stays at one server, so that the load goes on where the others wait for nothing.
        its_own = endpoints[number // 2 % len(endpoints) :][:1]
        chosen = endpoints if number < 0 or number % 2 else its_own
        made = Client(number, chosen, Random(f"{seed} {number}"), played.history)
        stack.callback(made.close)
        return made

    with stack, _telling(seed, played):
        stack.callback(deployment.close)
        endpoints = deployment.start()
        table = f"consistency-{uuid.uuid4().hex[:12]}"
        names = [table, f"{table}-receipts"]
        boss = client(-1)
        for name in names:
            tables.create(boss, name, derived=derived)
        workloads: list[Workload] = [kind(table) for kind in (Registers, Counters, Sets, Lists)]
        workloads.append(Transfers(*names))
        for workload in workloads:
            workload.prepare(boss)
        followed = Streams(client(-2), names) if derived else None
        named = Past(client(-3), table, seconds) if derived else None
        beside = [one.follow for one in (followed, named) if one is not None]
        workers = [client(number) for number in range(clients)]
        _work(workers, workloads, beside, deployment, random, faults, seconds, played)
        if named is not None:
            named.finish(workloads)
            names += named.restored
        for workload in workloads:
            _finish(workload, boss, played.history)
        if followed is not None:
            followed.finish()
            problems = deployment.check()
        for name in names:
            tables.delete(boss, name)
    played.anomalies = judge(played.history)
    if problems:
        played.anomalies.append(Anomaly("damage", problems))
    return played


@contextmanager
def _telling(seed: int, played: Round) -> Iterator[None]:
    """Let an error of the block say what had happened."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"seed {seed}: {played}")
        raise


def _work(
    workers: Sequence[Client],
    workloads: Sequence[Workload],
    beside: Sequence[Callable[[Event], None]],
    deployment: Deployment,
    random: Random,
    faults: int,
    seconds: float,
    played: Round,
) -> None:
    """Let all clients work, and hurt the servers at random moments. `beside`: what others do meanwhile."""
    stop = Event()
    surprises: list[BaseException] = []

    def work(worker: Client) -> None:
        while not stop.is_set():
            worker.random.choice(workloads).step(worker)
            worker.steps += 1

    def guarded(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:
            surprises.append(error)
            stop.set()

    tasks = [partial(work, worker) for worker in workers]
    tasks += [partial(follow, stop) for follow in beside]
    threads = [Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    try:
        possible = deployment.faults()
        for _ in range(faults):
            if stop.wait(random.uniform(0, seconds)):
                break
            name = draw(random, possible)
            played.faults.append(name)
            possible[name]()
        if faults:
            liveness.watch(played.history, deployment.admin_urls, workers, stop)
        stop.wait(random.uniform(0, seconds) if faults else seconds)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if surprises:
        raise surprises[0]


def draw(random: Random, faults: Mapping[str, object]) -> str:
    """The name of a fault. The kinds, which are the names' first words, are equally likely."""
    kind = random.choice(sorted({name.partition(" ")[0] for name in faults}))
    return random.choice(sorted(name for name in faults if name.partition(" ")[0] == kind))


def _finish(workload: Workload, client: Client, history: History) -> None:
    """Read the final state; repeat that until every read of it was answered."""
    for _ in range(FINAL_READS_MAX):
        start = len(history.operations)
        workload.finish(client)
        if all(operation.status == "ok" for operation in history.operations[start:]):
            return
        time.sleep(AWAY_SECONDS)
    raise AssertionError(f"the final reads of {workload.name} failed: {history.operations[-1]}")
