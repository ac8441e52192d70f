"""The states that tables and their replicas pass through, and how they end.

A new table is CREATING, a changed one UPDATING, a deleted one DELETING for as long as the settings say. A
state is stored with the time of its end, and `end` ends it in a transaction of its own once that time has
come. Requests go by what is stored and never by the time: what a client has seen ACTIVE stays so, and what
is gone stays gone, whichever way the clock moves. A state whose end lies further ahead than the settings can
have put it was stored before the clock was set back, and ends at once.
"""

from __future__ import annotations

from functools import partial

import msgspec

from hashrange.clock import has_come
from hashrange.settings import Settings
from hashrange.storage.api import Engine, Transaction
from hashrange.tables.definitions import catalog, replicas
from hashrange.tables.definitions.table import Replica, Table, Witness


def is_gone(table: Table, now: float, settings: Settings) -> bool:
    """Whether the time has come at which a DELETING table goes."""
    return table.gone_at is not None and has_come(table.gone_at, now, settings.delete_seconds)


def settled(table: Table, now: float, settings: Settings) -> Table:
    """The table, which is not DELETING, with all states ended whose time has come."""
    if table.creating_until and has_come(table.creating_until, now, settings.create_seconds):
        table = msgspec.structs.replace(table, creating_until=0.0)
    # Deleting a replica takes as long as deleting a table where DeleteTable asks for it.
    seconds_max = max(settings.update_seconds, settings.delete_seconds)
    if table.updating_until and has_come(table.updating_until, now, seconds_max):
        table = msgspec.structs.replace(table, updating_until=0.0)
    return replicas.settled(table, now, seconds_max)


def end(engine: Engine, tables: list[Table], now: float, settings: Settings) -> float:
    """End all states of `tables` whose time has come; the seconds until this wants to be done again.

    `now` has to be drawn after the definitions were read: the end of no state lies too far ahead then.
    """
    ends: list[float] = []
    for table in tables:
        if table.gone_at is not None:
            if is_gone(table, now, settings):
                # Its stream ends when the table did, however late this is: a clock may have jumped ahead.
                engine.write(partial(_remove, table=table, moment=min(table.gone_at, now)))
            else:
                ends.append(table.gone_at)
            continue
        after = settled(table, now, settings)
        if after is not table:
            engine.write(partial(_replace, before=table, after=after))
        ends += _ends(after)
    # The shortest of these also bounds how long a state that begins before the next look is overlooked.
    durations = (settings.create_seconds, settings.update_seconds, settings.delete_seconds)
    waits = [*(moment - now for moment in ends), *(seconds for seconds in durations if seconds > 0)]
    return min(waits, default=settings.sweep_seconds)


def _ends(table: Table) -> list[float]:
    """The times at which the states end that a table is in."""
    members: list[Replica | Witness] = [*table.replicas]
    if table.witness is not None:
        members.append(table.witness)
    found = [table.creating_until, table.updating_until]
    for member in members:
        found += [member.creating_until, member.gone_at or 0.0]
    return [moment for moment in found if moment]


def _replace(txn: Transaction, before: Table, after: Table) -> None:
    """Store what became of a table, unless it was changed meanwhile: the next sweep looks at it again."""
    if catalog.find(txn, before.name) == before:
        catalog.save(txn, after)


def _remove(txn: Transaction, table: Table, moment: float) -> None:
    """Remove a table that was gone from `moment` on, unless a new one has its name by now."""
    if catalog.find(txn, table.name) == table:
        catalog.remove(txn, table, moment)
