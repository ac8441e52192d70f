"""Counting from a stream, as the guide in packages/patterns/docs has it: exact, though batches come again."""

from __future__ import annotations

import random

import pytest

import hashrange_triggers as triggers
from hashrange_patterns import Counters, Event, Table
from triggers.world import World


@pytest.mark.parametrize("seed", range(5))
def test_a_function_that_fails_half_way_counts_each_view_once(world: World, seed: int) -> None:
    chance = random.Random(seed)
    table = Table("counts")
    world.clients.dynamodb.create_table(**table.definition())
    counters = Counters(world.clients.dynamodb, table)
    calls = {"all": 0, "failed": 0}

    def count_views(event: triggers.Event, context: triggers.Context) -> None:
        calls["all"] += 1
        views = [
            Event(record["eventID"], {record["dynamodb"]["NewImage"]["url"]["S"]: 1})
            for record in event["Records"]
            if record["eventName"] == "INSERT"
        ]
        # It dies after some of its views, or after all of them: those are counted, and come again.
        dies_after = chance.randint(0, len(views)) if chance.random() < 0.5 else None
        counters.count(views[:dies_after])
        if dies_after is not None:
            calls["failed"] += 1
            raise RuntimeError("killed")

    worker = world.worker(count_views, batching=triggers.Batching(batch_size=7, poll_interval=1.0))
    for number in range(60):
        world.put(f"view{number}", url={"S": "/home" if number % 3 else "/about"})
        if number % 10 == 9:
            world.pass_time(worker, 5.0)
    world.pass_time(worker, 600.0)
    assert counters.values(["/home", "/about"]) == {"/home": 40, "/about": 20}
    assert calls["failed"] > 0
