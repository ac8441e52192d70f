"""The background work: what becomes due by time, done in small transactions.

A sweep may be stopped at any point, and the next one goes on: every step is one transaction that leaves
the store whole. Nobody waits for a sweep but the things that it does.
"""

from __future__ import annotations

import logging
from functools import partial

import msgspec

from hashrange.storage.api import Engine, Transaction
from hashrange.tables import (
    backfill,
    catalog,
    expiry,
    holds,
    lag,
    overview,
    records,
    streams,
    tokens,
    writes,
)
from hashrange.tables.items import Occasion
from hashrange.tables.table import Index, Table, TimeToLive

# Steps are bites of this many items, so that no request waits long behind one.
BITE_ITEMS = 200
# Deleting a record of a stream touches nothing else.
BITE_RECORDS = 1_000

# 0 means that more is due, so it is never the answer when nothing is.
_WAIT_SECONDS_MIN = 0.001

# A long build is logged as often as this as it goes on.
_PROGRESS_STEPS = 10

_log = logging.getLogger("hashrange")


def sweep(engine: Engine, occasion: Occasion) -> float:
    """Do one bite of everything that is due; the seconds until the next sweep, 0 while more is due."""
    now = occasion.now
    more = False
    definitions = engine.read(lambda reader: list(catalog.definitions(reader)))
    for table in definitions:
        for index in table.indexes:
            if index.backfilling:
                done = engine.write(partial(_fill, name=table.name, space=index.space))
                _log_progress("filling index", {"table": table.name, "index": index.name}, done)
                more = True
        if table.ttl is not None:
            more |= _expired(engine, table, table.ttl, occasion)
    for stream in engine.read(lambda reader: list(streams.all_streams(reader))):
        more |= _tend_stream(engine, stream, occasion)
    wait = occasion.settings.sweep_seconds
    due = engine.read(lag.next_due)
    if due is not None:
        spaces = {index.space: index for table in definitions for index in table.indexes}
        delay = occasion.settings.gsi_delay_seconds
        arrived = engine.write(
            partial(lag.arrive, spaces=spaces, now=now, delay_seconds=delay, limit=BITE_ITEMS)
        )
        more |= arrived == BITE_ITEMS
        wait = min(wait, occasion.settings.gsi_delay_seconds or wait)
    if engine.read(holds.any_held):
        held = occasion.settings.transaction_seconds
        engine.write(partial(holds.forget_expired, now=now, hold_seconds=held))
    if engine.read(partial(tokens.any_expired, now=now)):
        more |= engine.write(partial(tokens.forget_expired, now=now, limit=BITE_ITEMS)) == BITE_ITEMS
    if engine.read(partial(tokens.any_ahead, now=now)):
        more |= engine.write(partial(tokens.shorten, now=now, limit=BITE_ITEMS)) == BITE_ITEMS
    return 0.0 if more else max(wait, _WAIT_SECONDS_MIN)


def _log_progress(event: str, fields: dict[str, str], done: tuple[float, float]) -> None:
    """Log how far a build is whenever another tenth of it is done; `done` is its share before and after."""
    before, after = (int(share * _PROGRESS_STEPS) for share in done)
    if after > before:
        percent = after * 100 // _PROGRESS_STEPS
        _log.info(event, extra={"fields": {**fields, "percent": percent}})


def _fill(txn: Transaction, name: str, space: int) -> tuple[float, float]:
    """One step of filling a new index; the last one makes it ACTIVE. Its progress before and after."""
    table = catalog.find(txn, name)
    index = next((one for one in table.indexes if one.space == space), None) if table else None
    if table is None or index is None or not index.backfilling:
        return 1.0, 1.0
    before = overview.index_progress(txn, index)
    if backfill.step(txn, table, index, BITE_ITEMS):
        filled = msgspec.structs.replace(index, status="ACTIVE", backfilling=False)
        catalog.save(txn, with_index(table, filled))
        return before, 1.0
    return before, overview.index_progress(txn, index)


def with_index(table: Table, index: Index) -> Table:
    """The table with one of its indexes changed."""
    changed = tuple(index if one.space == index.space else one for one in table.indexes)
    return msgspec.structs.replace(table, indexes=changed)


def _expired(engine: Engine, table: Table, ttl: TimeToLive, occasion: Occasion) -> bool:
    """Delete a bite of a table's expired items, or go on building its queue; whether more is due."""
    if not ttl.built:
        done = engine.write(partial(_queue, name=table.name, ttl=ttl))
        _log_progress("queueing items to expire", {"table": table.name, "attribute": ttl.attribute}, done)
        return True
    places = engine.read(partial(expiry.due, ttl=ttl, now=occasion.now, limit=BITE_ITEMS))
    if places:
        by_expiry = msgspec.structs.replace(occasion, by_expiry=True)
        engine.write(partial(_expire, name=table.name, ttl=ttl, places=places, occasion=by_expiry))
    return len(places) == BITE_ITEMS


def _queue(txn: Transaction, name: str, ttl: TimeToLive) -> tuple[float, float]:
    """One step of queueing the items that were there before time to live was switched on.

    Returns the build's progress before and after it.
    """
    table = catalog.find(txn, name)
    if table is None or table.ttl != ttl:
        return 1.0, 1.0
    before = overview.queue_progress(txn, ttl)
    if expiry.build_step(txn, table, ttl, BITE_ITEMS):
        built = msgspec.structs.replace(ttl, built=True)
        catalog.save(txn, msgspec.structs.replace(table, ttl=built))
        return before, 1.0
    return before, overview.queue_progress(txn, ttl)


def _expire(
    txn: Transaction,
    name: str,
    ttl: TimeToLive,
    places: list[tuple[int, bytes, bytes]],
    occasion: Occasion,
) -> None:
    """Delete the items at `places` that still expire at the time that the queue says."""
    table = catalog.find(txn, name)
    if table is None or table.ttl != ttl:
        return
    for place in places:
        seconds, partition, sort = place
        record = txn.get(table.space, partition, sort)
        item = records.item_of(record) if record is not None else None
        if item is None or expiry.expires_at(ttl.attribute, item) != seconds:
            expiry.forget(txn, ttl, place)
        else:
            writes.remove(txn, table, partition, sort, occasion)


def _tend_stream(engine: Engine, stream: streams.Stream, occasion: Occasion) -> bool:
    """Trim a stream, roll its shards over when they are old, forget it when it is long off."""
    now = occasion.now
    if engine.read(partial(streams.is_ahead, stream=stream, now=now)):
        engine.write(partial(_bring_back, name=stream.table, label=stream.label, now=now))
        return False
    if stream.closed is not None and stream.closed < now - streams.RETENTION_SECONDS:
        engine.write(partial(streams.forget, stream=stream))
        return False
    trimmed = 0
    if engine.read(partial(streams.trimmable, stream=stream, now=now)):
        trimmed = engine.write(partial(_trim, table=stream.table, label=stream.label, now=now))
    oldest = min((shard.created for shard in stream.shards if shard.end is None), default=now)
    if now - oldest >= occasion.settings.stream_shard_seconds:
        engine.write(partial(_roll_over, name=stream.table, label=stream.label, now=now))
    return trimmed == BITE_RECORDS


def _trim(txn: Transaction, table: str, label: str, now: float) -> int:
    stream = streams.find(txn, table, label)
    return streams.trim(txn, stream, now, BITE_RECORDS) if stream is not None else 0


def _bring_back(txn: Transaction, name: str, label: str, now: float) -> None:
    """Let a stream go on at the time `now`, which is earlier than times that it holds."""
    stream = streams.find(txn, name, label)
    if stream is not None:
        streams.save(txn, streams.brought_back(stream, now))
        _roll_over(txn, name, label, now)


def _roll_over(txn: Transaction, name: str, label: str, now: float) -> None:
    table = catalog.find(txn, name)
    stream = streams.find(txn, name, label)
    if table is None or stream is None or table.stream is None or table.stream.label != label:
        return
    stream = streams.roll_over(txn, stream, now)
    streams.save(txn, stream)
    catalog.save(txn, msgspec.structs.replace(table, stream=stream))
