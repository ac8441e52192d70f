"""A trigger goes on when the clock is set back: nothing waits for a time that was noted before."""

from __future__ import annotations

import pytest

import hashrange_triggers as triggers
from hashrange.clock import ManualClock
from hashrange_triggers.tail import Tail
from triggers.world import TABLE, World, keys_of

DAY = 86_400.0


@pytest.mark.parametrize("window", [0.0, 5.0])
def test_new_records_are_delivered(world: World, window: float) -> None:
    worker = world.worker(batching=triggers.Batching(batch_window=window, poll_interval=1.0))
    world.put("1")
    world.work(worker)
    world.clock.set(world.clock.now() - DAY)
    world.put("2")
    world.work(worker)
    world.pass_time(worker, window)
    assert world.keys == ["1", "2"]


def test_what_failed_is_tried_again(world: World) -> None:
    seen: list[str] = []

    def fail_twice(event: triggers.Event, context: triggers.Context) -> None:
        seen.extend(keys_of(event))
        if len(seen) < 3:
            raise RuntimeError("not yet")

    worker = world.worker(fail_twice)
    world.put("1")
    world.work(worker)
    world.clock.set(world.clock.now() - DAY)
    world.work(worker)
    world.clock.set(world.clock.now() - DAY)
    world.work(worker)
    assert seen == ["1", "1", "1"]


def test_a_stream_of_an_earlier_time_is_followed(world: World) -> None:
    worker = world.worker()
    world.put("1")
    world.work(worker)
    update = world.clients.dynamodb.update_table
    update(TableName=TABLE, StreamSpecification={"StreamEnabled": False})
    world.clock.set(world.clock.now() - DAY)
    update(TableName=TABLE, StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    world.put("2")
    for _ in range(3):
        world.pass_time(worker, 5.0)
    assert world.keys == ["1", "2"]


def test_a_tail_sees_the_children_of_its_shards(world: World) -> None:
    tail = Tail(world.clients, TABLE, clock=world.clock)
    world.clock.set(world.clock.now() - DAY)
    world.sweep()
    world.put("1")
    seen = [record for _ in range(2) for record in tail.poll()]
    assert keys_of({"Records": seen}) == ["1"]


@pytest.mark.parametrize("ahead", [-DAY, 30.0, 400 * DAY])
def test_a_trigger_whose_clock_is_not_the_service_s_starts_where_it_said(world: World, ahead: float) -> None:
    world.put("before")
    mine = ManualClock(world.clock.now() + ahead)

    def start() -> triggers.Worker:
        options = triggers.Options("test", starting_position="LATEST")
        return triggers.Worker(world.clients, TABLE, world.keep, options, clock=mine, threads=False)

    start()
    world.put("after")
    world.work(start())
    assert world.keys == ["after"]
