"""Begins and ends the history of a table, and gives it a new span once a day.

Code that needs a table's past holds its history under a name (`hold`) until it calls `release`. The first
hold begins the history, with the stamp of its own transaction: later states can be read. The last release
ends the history and deletes all spans.

Each day the sweep begins a new span (`tended`), and drops the oldest spans that are no longer needed, each by
deleting one space. A new span gets a stamp, so all images of the span before it have lower stamps.

The functions return the changed definition; the caller saves it.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from hashrange.clock import BEHIND_SECONDS_MAX
from hashrange.storage.api import Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.spans import History, Hold, Span, stamp_at
from hashrange.tables.definitions.table import Table

SPAN_SECONDS: Final = 24 * 3600.0


def hold(
    txn: Transaction,
    table: Table,
    name: str,
    now: float,
    seconds: float | None = None,
    since: int | None = None,
) -> Table:
    """Hold the history of `table`, and begin it if there is none.

    The states from this transaction on can then be read until `release`; with `seconds`, the states of the
    last `seconds` seconds. An existing hold gets the new `seconds`. `since` is an earlier stamp to read from,
    for a
    job: another hold must already cover the history from there on.
    """
    history = table.history
    if history is None:
        since = txn.stamp(stamp_at(now))
        history = History((Span(catalog.new_space(txn), since, now),), (Hold(name, since, seconds),))
    else:
        existing = history.hold(name)
        if existing is not None:
            since = existing.since
        elif since is None:
            since = txn.stamp(stamp_at(now))
        other_holds = tuple(other for other in history.holds if other.name != name)
        history = msgspec.structs.replace(history, holds=(*other_holds, Hold(name, since, seconds)))
    return msgspec.structs.replace(table, history=history)


def release(txn: Transaction, table: Table, name: str) -> Table:
    """Release the history of `table`, and drop the spans that no other hold needs, however old they are: what
    is over by time is left to the sweep (`tended`)."""
    history = table.history
    if history is None or history.hold(name) is None:
        return table
    holds = tuple(other for other in history.holds if other.name != name)
    if not holds:
        for span in history.spans:
            txn.delete_space(span.space)
        return msgspec.structs.replace(table, history=None)
    history = _trimmed(txn, msgspec.structs.replace(history, holds=holds), -math.inf)
    return msgspec.structs.replace(table, history=history)


def kept_since(table: Table, hold_: Hold, now: float) -> int:
    """The earliest stamp whose state `hold_` keeps at the time `now`, whether or not the sweep has dropped
    what is older."""
    history = table.history
    assert history is not None  # it has the hold
    dropped = _unneeded(msgspec.structs.replace(history, holds=(hold_,)), now)
    return max(hold_.since, history.spans[dropped].after)


def is_due(history: History, now: float) -> bool:
    """Whether `tended` has something to do."""
    return (
        now - history.spans[-1].made >= SPAN_SECONDS
        or any(_is_ahead(span, now) for span in history.spans)
        or _unneeded(history, now) > 0
    )


def tended(txn: Transaction, table: Table, now: float) -> Table:
    """The table with a new span, if the last span is a day old, and without spans that are no longer needed.

    If the clock was set back, spans seem to be made in the future. They then count as made now; otherwise
    they would stay until the clock reaches that time again.
    """
    history = table.history
    if history is None or not is_due(history, now):
        return table
    spans = history.spans
    if now - spans[-1].made >= SPAN_SECONDS or _is_ahead(spans[-1], now):
        after = txn.stamp(stamp_at(now))
        spans = (*spans, Span(catalog.new_space(txn), after, now))
    spans = tuple(
        msgspec.structs.replace(span, made=now) if _is_ahead(span, now) else span for span in spans
    )
    history = _trimmed(txn, msgspec.structs.replace(history, spans=spans), now)
    return msgspec.structs.replace(table, history=history)


def _is_ahead(span: Span, now: float) -> bool:
    return span.made > now + BEHIND_SECONDS_MAX


def _trimmed(txn: Transaction, history: History, now: float) -> History:
    count = _unneeded(history, now)
    for span in history.spans[:count]:
        txn.delete_space(span.space)
    return msgspec.structs.replace(history, spans=history.spans[count:])


def _unneeded(history: History, now: float) -> int:
    """How many of the oldest spans are not needed. All images of a span are at or below the `after` of the
    next span, which is the stamp at which the next span was made."""
    count = 0
    for following in history.spans[1:]:
        for hold_ in history.holds:
            is_past = hold_.seconds is not None and following.made + hold_.seconds <= now
            if not is_past and hold_.since < following.after:
                return count
        count += 1
    return count
