"""The sweep: does the background work that is due, in small transactions.

`units` lists the work, and `units.Background` runs it. Work that waits for something else runs separately
(`sweep_aside`). Each step is a transaction that leaves the store consistent, and has a bounded number of
items and bytes. So a sweep may be stopped at any point, and the next sweep continues. No request waits for a
sweep: if it is late, only expiries, index builds and similar work are late.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import TypeVar

import msgspec

from hashrange.clock import has_come
from hashrange.settings import Settings
from hashrange.storage.api import Engine, Reader, Transaction
from hashrange.storage.failures import StorageError
from hashrange.tables import streams
from hashrange.tables.background import restoring
from hashrange.tables.background.units import Background, Bite, Lane, Tables, Unit, failing, of_server
from hashrange.tables.bites import Damage, Done, Limit
from hashrange.tables.definitions import catalog, dropped, states
from hashrange.tables.definitions.spans import History
from hashrange.tables.definitions.table import Index, Restore, Table, TimeToLive, Vector
from hashrange.tables.history import recording
from hashrange.tables.items import records, vectors
from hashrange.tables.items.item_change import ItemChange, Occasion
from hashrange.tables.spaces import CATALOG_SPACE
from hashrange.tables.writes import applying, backfill, builds, expiry, holds, lag, tokens

Definition = tuple[str, Table | Exception]

T = TypeVar("T")


# How many catalog records are read at a time.
_PAGE_RECORDS = 100

# The most items of a transaction.
BITE_ITEMS = 1_000

# A build reads this many items before it lets other threads run.
_LOOK_ITEMS = 100

# `sweep` returns 0 if more is due, so it returns at least this if nothing is due.
_WAIT_SECONDS_MIN = 0.001

# The progress of a long build is logged this many times.
_PROGRESS_STEPS = 10

_log = logging.getLogger("hashrange")


def sweep(engine: Engine, clock: Callable[[], float], settings: Settings, background: Background) -> float:
    """End the states of tables that are due, and do a bite of each unit that is due. Returns the seconds
    until the next sweep, 0 while more is due.

    While some units have more to do, only these run, and the tables are listed only now and then.
    """
    wait = settings.sweep_seconds
    if background.paused:
        return max(wait, _WAIT_SECONDS_MIN)
    background.take_part()
    lane = background.tables
    listed: Callable[[], Iterator[Unit]] | None = None
    known: list[Definition] | None = None
    if has_come(background.states_due, clock(), wait) or lane.is_list_due(wait):
        catalog.decoded.age()  # only here: if both lanes aged the cache, definitions would be decoded again
        read = partial(definitions, engine, background.pause)
        known = background.guard("definitions of tables", read, None, everywhere=True)
        if known is None:
            return wait
    # The clock is read after the definitions, as `states.end` demands.
    occasion = Occasion(clock(), settings)
    lane.is_held = background.is_held(engine, occasion.now)
    if known is not None:
        tables = [table for _, table in known if isinstance(table, Table)]
        background.listed(tables)
        end = partial(states.end, engine, tables, occasion.now, settings)
        wait = min(wait, background.guard("states of tables", end, wait))
        background.states_due = occasion.now + wait
        of_store = partial(units, engine, background.pause, known, tables, occasion.now)
        listed = partial(_chained, of_store, partial(of_server, engine, background))
    if lane.run(listed, occasion, BITE_ITEMS):
        return 0.0
    if settings.gsi_delay_seconds and engine.read(lag.next_due) is not None:
        wait = min(wait, settings.gsi_delay_seconds)
    return max(wait, _WAIT_SECONDS_MIN)


def _chained(*parts: Callable[[], Iterator[Unit]]) -> Iterator[Unit]:
    return chain.from_iterable(part() for part in parts)


def sweep_aside(
    engine: Engine,
    clock: Callable[[], float],
    settings: Settings,
    background: Background,
    kinds: Iterable[Callable[[Tables], Iterator[Unit]]],
    lane: Lane,
) -> float:
    """Like `sweep`, for the units of `kinds` in `lane`: the work that waits for something else, such as a
    bucket."""

    def tables() -> list[Table]:
        defined = definitions(engine, background.pause)
        return [table for _, table in defined if isinstance(table, Table)]

    def listed() -> Iterator[Unit]:
        return chain.from_iterable(units_of(tables) for units_of in kinds)

    wait = settings.sweep_seconds
    if background.paused:
        return max(wait, _WAIT_SECONDS_MIN)
    is_due = lane.is_list_due(wait)
    occasion = Occasion(clock(), settings)
    lane.is_held = background.is_held(engine, occasion.now)
    if lane.run(listed if is_due else None, occasion, BITE_ITEMS):
        return 0.0
    return max(wait, _WAIT_SECONDS_MIN)


def definitions(engine: Engine, pause: Callable[[], None]) -> list[Definition]:
    """The names and definitions of all tables; an error for a definition that cannot be decoded."""
    return list(_every(engine, pause, catalog.TABLE, catalog.read_definition))


def _every(
    engine: Engine,
    pause: Callable[[], None],
    partition: bytes,
    read: Callable[[bytes, bytes], T],
) -> Iterator[T]:
    """The results of `read` for each record in a partition of the catalog.

    The records are read in pages with pauses: there may be tens of thousands of tables, and requests must not
    wait for all of them.
    """
    low = b""
    while page := engine.read(partial(_page, partition=partition, low=low)):
        for place, stored in page:
            yield read(place, stored)
        low = page[-1][0] + b"\x00"
        pause()


def _page(reader: Reader, partition: bytes, low: bytes) -> list[tuple[bytes, bytes]]:
    return list(islice(reader.scan(CATALOG_SPACE, partition, low, likely=_PAGE_RECORDS), _PAGE_RECORDS))


def units(
    engine: Engine,
    pause: Callable[[], None],
    definitions: list[Definition],
    tables: list[Table],
    now: float,
) -> Iterator[Unit]:
    """All background work that may be due; a unit that fails does not stop the others."""
    for name, table in definitions:
        if isinstance(table, Table):
            yield from _units_of(engine, table)
        else:
            yield failing(f"table {name}", table)
    for name, stream in _every(engine, pause, streams.STREAM, streams.read_stream):
        unit = f"stream {name}"
        if not isinstance(stream, streams.Stream):
            yield failing(unit, stream)
        elif not streams.is_at_rest(stream, now):  # there may be many of tables that were deleted in a day
            yield Unit(unit, partial(_tend_stream, engine, stream.full_name, stream.label), destroys=True)
    for name, dropped_table in _every(engine, pause, dropped.DROPPED, dropped.read_dropped):
        unit = f"deleted table {name}"
        if not isinstance(dropped_table, dropped.Dropped):
            yield failing(unit, dropped_table)
        elif dropped.is_due(dropped_table, now):  # there may be many that were deleted in 35 days
            yield Unit(unit, partial(_remove_dropped, engine, dropped_table), destroys=True)
    yield Unit("lagging indexes", partial(_arrive, engine, lag.lagging(tables)))
    yield Unit("transactions in flight", partial(_let_go, engine))
    yield Unit("tokens of transactions", partial(_forget_tokens, engine), destroys=True)
    yield Unit("storage", partial(_upkeep, engine), everywhere=True)


def _units_of(engine: Engine, table: Table) -> Iterator[Unit]:
    name = table.full_name
    for index in table.indexes:
        if index.backfilling:
            yield Unit(f"index {name}/{index.name}", partial(_fill, engine, name, index))
        if index.vector is not None:
            trim = partial(_trim_index, engine, name, index.space)
            yield Unit(f"changes of index {name}/{index.name}", trim)
    if table.ttl is not None:
        built = table.ttl.built
        step = partial(_expire if built else _queue, engine, name, table.ttl)
        yield Unit(f"time to live of {name}", step, destroys=built)
    if table.history is not None:
        yield Unit(f"history of {name}", partial(_tend_history, engine, name), destroys=True)
    if table.restore is not None and table.restore.backup is None and table.gone_at is None:
        yield Unit(f"restore of {name}", partial(_restore, engine, name, table.id, table.restore.source))


def _upkeep(engine: Engine, bite: Bite) -> bool:
    engine.upkeep()
    return False


def _log_progress(event: str, fields: dict[str, str], before: float, after: float) -> None:
    """Log the progress of a build whenever another tenth of it is done.

    `before` and `after` are the shares that were done before and after a bite.
    """
    tenths_before, tenths = int(before * _PROGRESS_STEPS), int(after * _PROGRESS_STEPS)
    if tenths > tenths_before:
        percent = tenths * 100 // _PROGRESS_STEPS
        _log.info(event, extra={"fields": {**fields, "percent": percent}})


def look_in_parts(
    engine: Engine, bite: Bite, low: bytes, look: Callable[[Reader, bytes, Limit], builds.Found]
) -> builds.Found:
    """Read a bite of items from the address `low` on, in parts, so that other threads can run in between."""
    items_left, bytes_left = bite.limit
    whole = builds.Found(low, low, [], [], 0)
    while items_left > 0 and bytes_left > 0 and whole.high is not None:
        limit = Limit(min(items_left, _LOOK_ITEMS), bytes_left)
        part = engine.read(partial(_part, look=look, low=whole.high, limit=limit))
        whole = builds.joined(whole, part)
        items_left -= limit.items
        bytes_left -= part.bytes
        bite.pause()
    return whole


def _part(
    reader: Reader, look: Callable[[Reader, bytes, Limit], builds.Found], low: bytes, limit: Limit
) -> builds.Found:
    return look(reader, low, limit)


def _build(
    engine: Engine,
    bite: Bite,
    find: Callable[[Reader], tuple[T, builds.Work] | None],
    complete: Callable[[Transaction, T], None],
    event: str,
    **fields: str,
) -> bool | None:
    """Do a bite of a build; returns whether more is due, None if the build is over.

    `find` returns what is built, and how, as long as the build is due. `complete` stores that it is built.
    """

    def begin(reader: Reader) -> tuple[builds.Work, bytes] | None:
        found = find(reader)
        return None if found is None else (found[1], builds.cursor(reader, found[1].build))

    begun = engine.read(begin)
    if begun is None:
        return None
    items_bite = look_in_parts(engine, bite, begun[1], begun[0].look)

    def body(txn: Transaction) -> tuple[float, float] | None:
        current = find(txn)
        if current is None:
            return None
        built, work = current
        before = builds.progress(txn, work.build)
        if not work.write(txn, items_bite):
            return None
        if items_bite.high is not None:
            return before, builds.progress(txn, work.build)
        complete(txn, built)
        return before, 1.0

    progress = bite.write(engine, body)
    if progress is not None:
        bite.damaged(items_bite.damages)
        _log_progress(event, fields, *progress)
    return items_bite.high is not None


def _fill(engine: Engine, name: str, filling: Index, bite: Bite) -> bool:
    """Fill a new index with a bite of entries; the last bite makes the index ACTIVE."""
    now, settings = bite.occasion.now, bite.occasion.settings

    def find(reader: Reader) -> tuple[tuple[Table, Index], builds.Work] | None:
        table = catalog.find_full(reader, name)
        for index in table.indexes if table is not None else ():
            if table is not None and index.space == filling.space and index.backfilling:
                return (table, index), backfill.work(table, index)
        return None

    def complete(txn: Transaction, built: tuple[Table, Index]) -> None:
        table, index = built
        status = "ACTIVE" if index.vector is None else "CREATING"
        filled = table.with_index(msgspec.structs.replace(index, status=status, backfilling=False))
        catalog.save(txn, filled if index.vector is None else states.settled(filled, now, settings))

    return _build(engine, bite, find, complete, "filling index", table=name, index=filling.name) is True


def _trim_index(engine: Engine, name: str, space: int, bite: Bite) -> bool:
    """Trim the log of a vector index."""

    def vector_of(reader: Reader) -> Vector | None:
        table = catalog.find_full(reader, name)
        return next((own.vector for own in table.indexes if own.space == space), None) if table else None

    def trimmed(txn: Transaction) -> int:
        vector = vector_of(txn)
        return 0 if vector is None else vectors.trim(txn, vector, bite.limit.items)

    vector = engine.read(vector_of)
    if vector is None or not engine.read(partial(vectors.is_long, vector=vector)):
        return False
    return bite.write(engine, trimmed) == bite.limit.items


def _queue(engine: Engine, name: str, ttl: TimeToLive, bite: Bite) -> bool:
    """Add a bite of the items that existed before time to live was enabled to the expiry queue."""

    def find(reader: Reader) -> tuple[Table, builds.Work] | None:
        table = catalog.find_full(reader, name)
        return None if table is None or table.ttl != ttl else (table, expiry.work(table, ttl))

    def complete(txn: Transaction, table: Table) -> None:
        catalog.save(txn, msgspec.structs.replace(table, ttl=msgspec.structs.replace(ttl, built=True)))

    event = "queueing items to expire"
    more = _build(engine, bite, find, complete, event, table=name, attribute=ttl.attribute)
    return more is not None  # when the build has ended, items in the queue may be due at once


def _expire(engine: Engine, name: str, ttl: TimeToLive, bite: Bite) -> bool:
    """Delete a bite of a table's expired items."""
    now = bite.occasion.now
    if engine.read(lambda reader: next(iter(expiry.due(reader, ttl, now)), None)) is None:
        return False
    occasion = Occasion(bite.occasion.now, bite.occasion.settings, by_expiry=True)

    def expired(limit: Limit) -> Callable[[Transaction], Done]:
        return partial(_expire_bite, name=name, ttl=ttl, occasion=occasion, limit=limit)

    def pass_over(txn: Transaction, error: str) -> list[Damage]:
        place = next(iter(expiry.due(txn, ttl, now)), None)
        if place is None:
            return []
        expiry.forget(txn, ttl, place)
        expiry.done(txn, ttl, now, place)
        return [Damage(place[1], place[2], error)]

    return _one_by_one_if_need_be(engine, bite, expired, pass_over)


def _expire_bite(txn: Transaction, name: str, ttl: TimeToLive, occasion: Occasion, limit: Limit) -> Done:
    """Delete the items that are due and still expire at the time in the queue."""
    table = catalog.find_full(txn, name)
    if table is None or table.ttl != ttl:
        return Done(0, [], False)
    left, bytes_left = limit
    damages: list[Damage] = []
    last: tuple[int, bytes, bytes] | None = None
    more = False
    for place in expiry.due(txn, ttl, occasion.now):
        if left <= 0 or bytes_left <= 0:
            more = True
            break
        seconds, partition, sort = last = place
        left -= 1
        record = txn.get(table.space, partition, sort)
        if record is not None:
            bytes_left -= len(record)
        item = None
        try:
            item = records.item_of(record) if record is not None else None
            expires = expiry.expires_at(ttl.attribute, item)
        except Exception as error:
            # The item cannot be deleted, and otherwise its place would stay at the front of the queue for
            # ever.
            damages.append(Damage(partition, sort, repr(error)))
            expires = None
        if record is None or expires != seconds:
            expiry.forget(txn, ttl, place)
        else:
            applying.apply(txn, ItemChange(table, partition, sort, record, item, None, None), occasion)
    if last is not None:
        expiry.done(txn, ttl, occasion.now, last)
    return Done(limit.items - left, damages, more)


def _arrive(engine: Engine, names: dict[int, str], bite: Bite) -> bool:
    """Apply a bite of the due changes to lagging indexes."""
    now, delay = bite.occasion.now, bite.occasion.settings.gsi_delay_seconds
    if (delay or not names) and engine.read(lag.next_due) is None:
        return False

    def arrived(limit: Limit) -> Callable[[Transaction], Done]:
        return partial(lag.arrive, names=names, now=now, delay_seconds=delay, limit=limit)

    def pass_over(txn: Transaction, error: str) -> list[Damage]:
        return [Damage(b"change", lag.drop_first(txn), error)]

    return _one_by_one_if_need_be(engine, bite, arrived, pass_over)


def _one_by_one_if_need_be(
    engine: Engine,
    bite: Bite,
    work: Callable[[Limit], Callable[[Transaction], Done]],
    pass_over: Callable[[Transaction, str], list[Damage]],
) -> bool:
    """Do a bite of a queue; returns whether more is due.

    If the bite fails, its members are done one by one, and a member that fails is skipped by `pass_over`.
    """
    try:
        done = bite.write(engine, work(bite.limit))
    except StorageError:
        raise
    except Exception:
        for _ in range(bite.limit.items):
            try:
                done = engine.write(work(Limit(1)))
            except StorageError:
                raise
            except Exception as error:
                bite.damaged(engine.write(partial(_passing_over, pass_over=pass_over, error=repr(error))))
                continue
            bite.damaged(done.damages)
            if done.handled == 0:
                return False
        return True
    bite.damaged(done.damages)
    return done.more


def _passing_over(
    txn: Transaction, pass_over: Callable[[Transaction, str], list[Damage]], error: str
) -> list[Damage]:
    return pass_over(txn, error)


def _tend_stream(engine: Engine, name: str, label: str, bite: Bite) -> bool:
    """Trim a stream, replace its shards when they are old, and remove it a day after it was disabled."""
    occasion = bite.occasion
    now = occasion.now
    stream = engine.read(lambda reader: streams.find_full(reader, name, label))
    if stream is None:
        return False
    if engine.read(partial(streams.is_ahead, stream=stream, now=now)):
        engine.write(partial(_bring_back, name=name, label=label, now=now))
        return False
    if stream.closed is not None and stream.closed < now - streams.RETENTION_SECONDS:
        engine.write(partial(streams.forget, full_name=name, label=label))
        return False
    more = False
    if engine.read(partial(streams.trimmable, stream=stream, now=now)):
        trimmed = bite.write(engine, partial(_trim, table=name, label=label, now=now, limit=bite.limit))
        bite.damaged(trimmed.damages)
        more = trimmed.more
    oldest = min((shard.created for shard in stream.shards if shard.end is None), default=now)
    if now - oldest >= occasion.settings.stream_shard_seconds:
        engine.write(partial(_roll_over, name=name, label=label, now=now))
    return more


def _trim(txn: Transaction, table: str, label: str, now: float, limit: Limit) -> Done:
    stream = streams.find_full(txn, table, label)
    return streams.trim(txn, stream, now, limit) if stream is not None else Done(0, [], False)


def _bring_back(txn: Transaction, name: str, label: str, now: float) -> None:
    """Repair a stream after the clock was set back to `now`, which is earlier than times in the stream."""
    stream = streams.find_full(txn, name, label)
    if stream is not None:
        streams.save(txn, streams.brought_back(stream, now))
        _roll_over(txn, name, label, now)


def _roll_over(txn: Transaction, name: str, label: str, now: float) -> None:
    table = catalog.find_full(txn, name)
    stream = streams.find_full(txn, name, label)
    if table is None or stream is None or table.stream is None or table.stream.label != label:
        return
    stream = streams.roll_over(txn, stream, now)
    streams.save(txn, stream)
    catalog.save(txn, msgspec.structs.replace(table, stream=stream))


def _restore(engine: Engine, name: str, table_id: str, source: str, bite: Bite) -> bool:
    """Restore a bite of a table's items; the last bite makes the table ACTIVE."""
    now, settings = bite.occasion.now, bite.occasion.settings

    def find(reader: Reader) -> tuple[tuple[Table, Restore], builds.Work] | None:
        table = catalog.find_full(reader, name)
        if table is None or table.id != table_id or table.restore is None or table.gone_at is not None:
            return None
        return (table, table.restore), restoring.work(table, table.restore)

    def complete(txn: Transaction, built: tuple[Table, Restore]) -> None:
        catalog.save(txn, restoring.completed(txn, *built, now, settings))

    return _build(engine, bite, find, complete, "restoring", table=name, source=source) is True


def _remove_dropped(engine: Engine, deleted: dropped.Dropped, bite: Bite) -> bool:
    """Remove a deleted table whose time is over."""
    name, table_id = deleted.table.full_name, deleted.table.id
    engine.write(partial(dropped.tend, full_name=name, table_id=table_id, now=bite.occasion.now))
    return False


def _tend_history(engine: Engine, name: str, bite: Bite) -> bool:
    """Begin a new span of a table's history once a day, and drop spans that are no longer needed."""
    now = bite.occasion.now

    def history_of(reader: Reader) -> History | None:
        table = catalog.find_full(reader, name)
        return table.history if table is not None else None

    history = engine.read(history_of)
    if history is not None and recording.is_due(history, now):
        engine.write(partial(_tended, name=name, now=now))
    return False


def _tended(txn: Transaction, name: str, now: float) -> None:
    table = catalog.find_full(txn, name)
    if table is not None and table.gone_at is None:
        catalog.save(txn, recording.tended(txn, table, now))


def _let_go(engine: Engine, bite: Bite) -> bool:
    """Remove the holds on items whose transactions are over."""
    now, held, limit = bite.occasion.now, bite.occasion.settings.transaction_seconds, bite.limit.items
    if not engine.read(partial(holds.any_due, now=now, hold_seconds=held)):
        return False
    over = partial(holds.forget_expired, now=now, hold_seconds=held, limit=limit)
    return bite.write(engine, over) == limit


def _forget_tokens(engine: Engine, bite: Bite) -> bool:
    """Remove tokens that are no longer valid, and shorten those that are valid for too long."""
    now, limit = bite.occasion.now, bite.limit.items
    more = False
    if engine.read(partial(tokens.any_expired, now=now)):
        more |= bite.write(engine, partial(tokens.forget_expired, now=now, limit=limit)) == limit
    if engine.read(partial(tokens.any_ahead, now=now)):
        more |= bite.write(engine, partial(tokens.shorten, now=now, limit=limit)) == limit
    return more
