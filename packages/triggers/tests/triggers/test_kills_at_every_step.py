"""Kill a worker at each of its steps, and start it again: it starts, and misses nothing that it promised.

A step is a request to the database, or the beginning or the end of a call of the function. What happens
between two steps cannot be seen from outside, so a kill before each of them is a kill anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import hashrange_triggers as triggers
from hashrange.database import Settings
from triggers.world import World, keys_of

SHARD_SECONDS = 4 * 3600.0
CYCLES_MAX = 300


class Killed(BaseException):
    """The worker is dead: none of its code runs any longer."""


class Steps:
    """Counts the steps of workers, and kills at the one that is asked for."""

    def __init__(self, clients: triggers.Clients) -> None:
        self.taken = 0
        self.kill_at: int | None = None
        self.armed = False
        for client in (clients.dynamodb, clients.streams):
            client.meta.events.register_first("before-call", self.step)

    def step(self, **_: Any) -> None:
        if not self.armed:
            return
        self.taken += 1
        if self.taken == self.kill_at:
            raise Killed


class Life:
    """One trigger of one table, from its first start to its last record, killed once on the way."""

    def __init__(self, world: World, steps: Steps, number: int, start: Any) -> None:
        self.world, self.steps, self.start = world, steps, start
        self.table = f"orders-{number}"
        self.ready = False
        self.promised: list[str] = []
        self.delivered: list[str] = []
        self.kills = 0
        self.worker: triggers.Worker | None = None
        self.while_dead: Callable[[], None] = lambda: None
        world.create_table(self.table)

    def deliver(self, event: triggers.Event, context: triggers.Context) -> None:
        self.steps.step()
        self.delivered += keys_of(event)
        self.steps.step()

    def put(self, *keys: str) -> None:
        self.world.put(*keys, table=self.table)
        if self.ready or self.start == "TRIM_HORIZON":
            self.promised += keys

    def run(self) -> None:
        """Let the worker do what is due; one that is killed is started again."""
        for _ in range(CYCLES_MAX):
            self.steps.armed = True
            try:
                if self.worker is None:
                    self.worker = self.new_worker()
                    self.ready = True
                elif self.worker.cycle() > 0.0:
                    return
            except Killed:
                self.worker = None
                self.kills += 1
                self.steps.armed = False
                self.while_dead()
            finally:
                self.steps.armed = False
        raise AssertionError("the worker does not come to rest")

    def new_worker(self) -> triggers.Worker:
        options = triggers.Options(
            self.table, triggers.Batching(batch_size=2, poll_interval=1.0), starting_position=self.start
        )
        world = self.world
        return triggers.Worker(
            world.clients, self.table, self.deliver, options, clock=world.clock, threads=False
        )

    def roll_over(self) -> None:
        self.world.clock.advance(SHARD_SECONDS)
        self.world.sweep()

    def live(self, while_dead: Callable[[Life], None]) -> None:
        self.while_dead = lambda: while_dead(self)
        self.put("early-1", "early-2", "early-3")
        self.world.clock.advance(120.0)
        self.run()
        self.put("a-1", "a-2", "a-3")
        self.run()
        self.put("b-1")
        self.roll_over()
        self.put("b-2", "b-3")
        for _ in range(3):
            self.run()
            self.world.clock.advance(5.0)
        self.world.clients.dynamodb.delete_table(TableName=self.table)


def put_something(life: Life) -> None:
    life.put("dead-1", "dead-2")


def put_and_roll_over(life: Life) -> None:
    life.put("dead-1", "dead-2")
    life.roll_over()
    life.put("dead-3", "dead-4")


@pytest.mark.parametrize("settings", [Settings(stream_shards=1), Settings(stream_shards=3)], ids=["1", "3"])
@pytest.mark.parametrize("start", ["LATEST", "TRIM_HORIZON"])
@pytest.mark.parametrize("while_dead", [put_something, put_and_roll_over])
def test_a_worker_killed_at_any_step_starts_again_and_misses_nothing(
    world: World, start: str, while_dead: Callable[[Life], None]
) -> None:
    steps = Steps(world.clients)
    killed = 0
    while True:
        steps.taken, steps.kill_at = 0, killed + 1
        life = Life(world, steps, killed, start)
        life.live(while_dead)
        assert set(life.promised) <= set(life.delivered), killed
        if start == "LATEST":
            assert not any(key.startswith("early") for key in life.delivered), killed
        if not life.kills:
            # It never came to a step of that number: the run before this one was killed at its last.
            break
        killed += 1
    assert len(life.promised) == (6 if start == "LATEST" else 9)
    assert killed > 30
