"""`hashrange_patterns` with a real aiobotocore client, in an environment without Hashrange.

python patterns.py TABLE
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aioboto3

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "src"))

from hashrange_patterns import (
    AsyncCounters,
    AsyncEntities,
    AsyncFeeds,
    AsyncIdempotency,
    AsyncJobs,
    AsyncLocks,
    AsyncRates,
    AsyncSessions,
    AsyncShardedCounters,
    AsyncUniqueVisitors,
    AsyncWindowedCounters,
    Entity,
    Event,
    Table,
)

NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)


class User(Entity[str], pk="USER#{name}", sk="USER"):
    name: str
    visits: int = 0


async def main(name: str) -> dict[str, Any]:
    table = Table(name)
    async with aioboto3.Session().client("dynamodb") as client:
        await client.create_table(**table.definition())
        await client.get_waiter("table_exists").wait(TableName=name)
        counters = AsyncCounters(client, table)
        views = [counters.once("/", event_id=f"e{number % 5}") for number in range(20)]
        counted = await asyncio.gather(*views)
        sharded = AsyncShardedCounters(client, table, 3, attribute="sharded")
        await asyncio.gather(*(sharded.count([Event(f"e{number}", {"/": 2})]) for number in range(10)))
        return {
            "counted": sum(counted),
            "value": await counters.value("/", consistent=True),
            "sharded": await sharded.value("/"),
            **await others(client, table),
        }


async def others(client: Any, table: Table) -> dict[str, Any]:
    """Each of the other patterns, once."""
    windowed, unique = AsyncWindowedCounters(client, table), AsyncUniqueVisitors(client, table)
    await asyncio.gather(*(windowed.once("/", NOON, event_id=f"w{number}") for number in range(4)))
    seen = [await unique.seen("/", "reader", NOON) for _ in range(2)]
    store = AsyncEntities(client, table)
    await store.create(User("alice"))
    changed = await store.modify(User.key("alice"), lambda user: setattr(user, "visits", 3))
    feeds = AsyncFeeds(client, table, b"secret" * 6)
    await feeds.follow("bob", "alice")
    await feeds.post("alice", "hello")
    while await feeds.work():
        pass
    home = await feeds.home("bob", consistent=True)
    jobs = AsyncJobs(client, table, "mail")
    await jobs.put("job")
    job = await jobs.take()
    assert job is not None
    locks = AsyncLocks(client, table)
    held = await locks.acquire("report")
    assert held is not None
    keys = AsyncIdempotency(client, table)
    await keys.finish(await keys.begin("k"), "done")
    rates = AsyncRates(client, table, per_second=0.001, burst=1)
    sessions = AsyncSessions(client, table)
    token = await sessions.begin("alice")
    session = await sessions.get(token)
    assert session is not None
    return {
        "windowed": await windowed.total("/", NOON, NOON + timedelta(hours=1)),
        "seen": seen,
        "visits": changed.visits,
        "home": [post.content for post in home.posts],
        "job": [job.payload, await jobs.done(job)],
        "lock": [await locks.acquire("report", wait_seconds=0.001) is None, await locks.release(held)],
        "again": (await keys.begin("k")).result,
        "allowed": [(await rates.allow("k")).allowed for _ in range(2)],
        "session": [session.user, await sessions.end(token)],
    }


print(json.dumps(asyncio.run(main(sys.argv[1]))))
