"""The states that tables and their replicas pass through, and how they end.

A new table is CREATING, a changed table UPDATING, a deleted table DELETING for as long as the settings say. A
state is stored with the time of its end, and `end` ends it in a separate transaction when that time has come.
Requests use the stored state and never the time. So a table that a client has seen ACTIVE stays ACTIVE, and a
removed table stays removed, whichever way the clock moves. If the end of a state is further away than the
settings allow, the state was stored before the clock was set back, and ends at once.
"""

from __future__ import annotations

from functools import partial
from typing import TypeVar

import msgspec

from hashrange.clock import has_come
from hashrange.settings import Settings
from hashrange.storage.api import Engine, Transaction
from hashrange.tables.definitions import catalog, replicas
from hashrange.tables.definitions.table import Index, Insights, Replica, Table, Vector, Witness

_Owner = TypeVar("_Owner", Table, Index)


def is_gone(table: Table, now: float, settings: Settings) -> bool:
    """Whether the time has come to remove a DELETING table."""
    return table.gone_at is not None and has_come(table.gone_at, now, settings.delete_seconds)


def settled(table: Table, now: float, settings: Settings) -> Table:
    """The table after the end of all its states whose time has come. It must not be DELETING."""
    if table.creating_until > 0 and has_come(table.creating_until, now, settings.create_seconds):
        table = msgspec.structs.replace(table, creating_until=0.0)
    # Deleting a replica by DeleteTable takes as long as deleting a table.
    seconds_max = max(settings.update_seconds, settings.delete_seconds)
    if table.updating_until and has_come(table.updating_until, now, seconds_max):
        table = msgspec.structs.replace(table, updating_until=0.0)
    if table.encrypting_until and has_come(table.encrypting_until, now, seconds_max):
        table = msgspec.structs.replace(table, encrypting_until=0.0)
    table = _warmed(table, now, seconds_max)
    for index in table.indexes:
        if index.vector is not None:
            after = _settled_index(index, index.vector, now, settings)
            table = table if after is index else table.with_index(after)
    if any(insights.until for insights in table.insights.values()):
        ended = {name: _settled(insights, now, seconds_max) for name, insights in table.insights.items()}
        if ended != table.insights:
            table = msgspec.structs.replace(table, insights=ended)
    return replicas.settled(table, now, seconds_max)


def _warmed(table: Table, now: float, seconds_max: float) -> Table:
    """The table after the end of the raises of warm throughput whose time has come, its own and its
    indexes'."""
    indexes = tuple(_raised(index, now, seconds_max) for index in table.indexes)
    if any(after is not before for after, before in zip(indexes, table.indexes, strict=True)):
        table = msgspec.structs.replace(table, indexes=indexes)
    return _raised(table, now, seconds_max)


def _raised(owner: _Owner, now: float, seconds_max: float) -> _Owner:
    warming = owner.warming
    if warming is None or not has_come(warming.until, now, seconds_max):
        return owner
    # A switch of the billing mode may have given more in the meantime.
    kept = owner.warm or {}
    warm = {name: max(units, kept.get(name, 0)) for name, units in warming.units.items()}
    return msgspec.structs.replace(owner, warm={**kept, **warm}, warming=None)


def _settled_index(index: Index, vector: Vector, now: float, settings: Settings) -> Index:
    """A vector index after the end of all its phases whose time has come."""
    changes: dict[str, float] = {}
    allocating, filling, starting = settings.update_seconds, _filling_seconds(settings), _in_all(settings)
    if vector.allocated_at and has_come(vector.allocated_at, now, allocating):
        changes["allocated_at"] = 0.0
    if vector.filled_at and has_come(vector.filled_at, now, filling):
        changes["filled_at"] = 0.0
    if vector.served_at and has_come(vector.served_at, now, starting):
        changes["served_at"] = 0.0
    after = msgspec.structs.replace(vector, **changes) if changes else vector
    if index.status == "CREATING" and not (index.backfilling or after.allocated_at or after.filled_at):
        seconds = settings.vector_start_seconds
        after = msgspec.structs.replace(after, served_at=now + seconds if seconds else 0.0)
        return msgspec.structs.replace(index, status="ACTIVE", vector=after)
    return msgspec.structs.replace(index, vector=after) if changes else index


def _filling_seconds(settings: Settings) -> float:
    return settings.update_seconds + settings.vector_fill_seconds


def _in_all(settings: Settings) -> float:
    return settings.create_seconds + settings.vector_start_seconds


def begun(index: Index, now: float, settings: Settings) -> Index:
    """A new vector index of an existing table, with the ends of its phases."""
    if index.vector is None or not _filling_seconds(settings):
        return index
    ends = {"filled_at": now + _filling_seconds(settings)}
    if settings.update_seconds:
        ends["allocated_at"] = now + settings.update_seconds
    return msgspec.structs.replace(index, vector=msgspec.structs.replace(index.vector, **ends))


def begun_with_table(index: Index, now: float, settings: Settings) -> Index:
    """An index of a new table, with the end of the time in which a vector index refuses searches."""
    if index.vector is None or not settings.vector_start_seconds:
        return index
    vector = msgspec.structs.replace(index.vector, served_at=now + _in_all(settings))
    return msgspec.structs.replace(index, vector=vector)


def _settled(insights: Insights, now: float, seconds_max: float) -> Insights:
    """Insights after the end of ENABLING or DISABLING, if its time has come."""
    if not insights.until or not has_come(insights.until, now, seconds_max):
        return insights
    if insights.status == "DISABLING":
        return msgspec.structs.replace(insights, status="DISABLED", changed=now, until=0.0, exhausted=False)
    status = "FAILED" if insights.exhausted else "ENABLED"
    return msgspec.structs.replace(insights, status=status, changed=now, until=0.0)


def end(engine: Engine, tables: list[Table], now: float, settings: Settings) -> float:
    """End all states of `tables` whose time has come. Returns the seconds until the next call is needed.

    The caller must read the clock for `now` after it read the definitions. An end could otherwise look too
    far away, as if the clock had been set back.
    """
    ends: list[float] = []
    for table in tables:
        if table.gone_at is not None:
            if is_gone(table, now, settings):
                # Its stream ends at the time of the table's end, even if this runs much later: the clock may
                # have jumped ahead.
                engine.write(partial(_remove, table=table, moment=min(table.gone_at, now)))
            else:
                ends.append(table.gone_at)
            continue
        after = settled(table, now, settings)
        if after is not table:
            engine.write(partial(_replace, before=table, after=after))
        ends += _ends(after)
    # A state that begins before the next call is unknown until then, so the next call must come within the
    # shortest of these durations.
    durations = (
        settings.create_seconds,
        settings.update_seconds,
        settings.delete_seconds,
        settings.vector_fill_seconds,
        settings.vector_start_seconds,
    )
    waits = [*(moment - now for moment in ends), *(seconds for seconds in durations if seconds > 0)]
    return min(waits, default=settings.sweep_seconds)


def _ends(table: Table) -> list[float]:
    """The times at which the current states of a table end."""
    members: list[Replica | Witness] = [*table.replicas]
    if table.witness is not None:
        members.append(table.witness)
    times = [table.creating_until, table.updating_until, table.encrypting_until]
    warmings = [table.warming, *(index.warming for index in table.indexes)]
    times += [warming.until for warming in warmings if warming is not None]
    times += [insights.until for insights in table.insights.values()]
    for member in members:
        times += [member.creating_until, member.gone_at or 0.0]
    for index in table.indexes:
        if index.vector is not None:
            times += [index.vector.allocated_at, index.vector.filled_at, index.vector.served_at]
    return [moment for moment in times if moment > 0]


def _replace(txn: Transaction, before: Table, after: Table) -> None:
    """Store `after` if the table is still `before`; otherwise the next sweep handles it."""
    if catalog.find_full(txn, before.full_name) == before:
        catalog.save(txn, after)


def _remove(txn: Transaction, table: Table, moment: float) -> None:
    """Remove a table that ended at `moment`, unless a new table has its name by now."""
    if catalog.find_full(txn, table.full_name) == table:
        catalog.remove(txn, table, moment)
