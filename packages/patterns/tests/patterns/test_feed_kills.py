"""Feeds whose workers are killed by SIGKILL: every follower has every post, once, in order."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable
from typing import Any

from hashrange_patterns import Feeds, Runtime, Table
from patterns.brokers import started, wait_for_work
from patterns.conftest import ROUNDS
from patterns.feed_worker import SECRET

READERS = [f"reader{number}" for number in range(5)]


def test_no_post_is_lost_or_shown_twice_when_workers_are_killed(
    http_client: Any, endpoint: str, name_table: Callable[..., str]
) -> None:
    table = Table(name_table("feeds", http_client))
    http_client.create_table(**table.definition())
    http_client.get_waiter("table_exists").wait(TableName=table.name, WaiterConfig={"Delay": 1})
    feeds = Feeds(http_client, table, SECRET)
    for reader in READERS:
        feeds.follow(reader, "alice")
    workers: list[subprocess.Popen[str]] = []
    chance = random.Random(table.name)
    posts: list[str] = []
    try:
        workers += [started("patterns.feed_worker", endpoint, table.name) for _ in range(2)]
        for round_number in range(ROUNDS // 4 or 3):
            posts += [feeds.post("alice", f"post {round_number}/{serial}").id for serial in range(8)]
            wait_for_work(workers, chance.randrange(1, 12))
            worker = workers.pop(0)
            worker.kill()
            worker.communicate()
            workers.append(started("patterns.feed_worker", endpoint, table.name))
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    # An hour later all leases of the dead are over.
    later = Feeds(http_client, table, SECRET, runtime=Runtime(now=lambda: time.time() + 3_600))
    while later.work():
        pass
    for reader in READERS:
        page = feeds.home(reader, limit=100, consistent=True)
        assert [post.id for post in page.posts] == sorted(posts, reverse=True)[:100]
