"""Many workers at once, in one thread, in an order that a seed decides: flows of the patterns, step by step.

A worker is a generator that goes through flows (`yield from`). Whose turn it is, is drawn; the worker gets
the answer to its request, and its next request is performed at once, but answered in a later turn only. So
between any two requests of a worker all others may come. A worker may die at any turn, with its request
performed and its answer unread, as a process that is killed. Time stands still but for pauses and what the
simulation lets pass.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hashrange_patterns.flows import Call, Flow, Pause
from hashrange_patterns.requests import Runtime
from patterns.faults import faulty

TURNS_MAX = 200_000

Worker = Callable[[], Flow[None]]


@dataclass(slots=True)
class Running:
    """A worker under way, and how its last request ended."""

    make: Worker
    flow: Flow[None]
    mortal: bool
    answer: Any = None
    error: Exception | None = None


class Simulation:
    """Runs workers against `client`; `chance` decides everything that is left to chance."""

    def __init__(self, client: Any, seed: int, *, fault_rate: float = 0.2, death_rate: float = 0.02) -> None:
        self.chance = random.Random(seed)
        # (the real time, because a server under test deletes what expired by that)
        self.time = float(int(time.time()))
        self.client, self.faults = faulty(client, self.chance, fault_rate)
        self.death_rate = death_rate
        self.deaths = 0
        self._running: list[Running] = []

    def runtime(self, attempts_max: int = 12) -> Runtime:
        """The surroundings of a flow: the simulation's time and chance.

        Tokens are not of the seed: two rounds of one seed, in one database, would share them.
        """
        return Runtime(
            now=lambda: self.time,
            elapsed=lambda: self.time,
            chance=self.chance.random,
            attempts_max=attempts_max,
        )

    def start(self, make: Worker, *, mortal: bool = True) -> None:
        """Let a worker run; if it dies, another is made in its place."""
        self._running.append(Running(make, make(), mortal))

    def run(self) -> None:
        """Go on until all workers are done."""
        for _ in range(TURNS_MAX):
            if not self._running:
                return
            running = self.chance.choice(self._running)
            if running.mortal and self.chance.random() < self.death_rate:
                self.deaths += 1
                running.flow.close()
                self._running.remove(running)
                self.start(running.make)
            else:
                self._turn(running)
        raise AssertionError(f"{len(self._running)} workers did not end within {TURNS_MAX} turns")

    def calm(self) -> None:
        """No more faults and deaths: what is left to be done gets done."""
        self.faults.rate = self.death_rate = 0.0

    def perform(self, flow: Flow[Any]) -> Any:
        """The result of one flow, performed while nobody else has a turn."""
        results: list[Any] = []

        def worker() -> Flow[None]:
            results.append((yield from flow))

        waiting, self._running = self._running, []
        self.start(worker, mortal=False)
        self.run()
        self._running = waiting
        return results[0]

    def _turn(self, running: Running) -> None:
        error, running.error = running.error, None
        try:
            step = running.flow.send(running.answer) if error is None else running.flow.throw(error)
        except StopIteration:
            self._running.remove(running)
            return
        running.answer = None
        if isinstance(step, Pause):
            self.time += step.seconds
            return
        assert isinstance(step, Call)
        try:
            running.answer = getattr(self.client, step.operation)(**step.parameters)
        except Exception as caught:
            running.error = caught
