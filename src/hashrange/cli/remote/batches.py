"""Puts items with BatchWriteItem, as its documentation asks: what stays unprocessed is sent again after a
pause, which grows exponentially and is chosen at random, so that programs do not come back together.

Source: Developer Guide, "Error handling with DynamoDB", batch operations; AWS Architecture Blog, "Exponential
Backoff And Jitter" (full jitter).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import click

from hashrange.pace.workers import hold_up

PAUSE_SECONDS: Final = 0.05
PAUSE_SECONDS_MAX: Final = 5.0
ATTEMPTS_MAX: Final = 20
"""How often a batch is sent while none of its items is processed; that takes about half a minute."""


def put(
    client: Any,
    table: str,
    items: list[Any],
    *,
    pause: Callable[[float], None] = hold_up,
    drawn: Callable[[], float] = random.random,
) -> None:
    """Put up to 25 items, as boto3 takes them, into a table.

    `pause` waits for some seconds; `drawn` gives numbers from 0 to 1. Raises click.ClickException if the
    server processes none any more, and the errors of boto3.
    """
    writes = [{"PutRequest": {"Item": item}} for item in items]
    attempts = 0
    while writes:
        left = client.batch_write_item(RequestItems={table: writes})["UnprocessedItems"].get(table, [])
        attempts = attempts + 1 if len(left) >= len(writes) else 0
        if attempts == ATTEMPTS_MAX:
            raise click.ClickException(
                f"{client.meta.endpoint_url} left {len(left)} items of table {table} unprocessed "
                f"{ATTEMPTS_MAX} times; run the command again when the table has more throughput."
            )
        if left:
            pause(drawn() * min(PAUSE_SECONDS * 2.0**attempts, PAUSE_SECONDS_MAX))
        writes = left
