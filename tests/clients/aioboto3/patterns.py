"""`hashrange.patterns` with a real aiobotocore client, in an environment without Hashrange.

python patterns.py TABLE
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import aioboto3

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "src"))

from hashrange.patterns import AsyncCounters, AsyncShardedCounters, Event, Table


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
        }


print(json.dumps(asyncio.run(main(sys.argv[1]))))
