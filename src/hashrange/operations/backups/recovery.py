"""The moments that a table can be restored to.

Recovery holds the table's history (`tables.history.recording`) under the name `pitr`, for as many seconds as
the recovery period has. Moments are shown in whole seconds, because SDKs send no fractions.

Source: Developer Guide, "Point-in-time recovery for DynamoDB"; ack-api-quirks DDB-TABLE-083 to 086, 111, 385.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, NamedTuple

from hashrange.errors import InvalidRestoreTimeException
from hashrange.settings import Settings
from hashrange.storage.api import Transaction
from hashrange.tables.definitions.dropped import PITR
from hashrange.tables.definitions.spans import Hold, moment_of, stamp_at, stamp_through
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import recording

DAY_SECONDS: Final = 24 * 3600
DAYS_MAX: Final = 35


class Window(NamedTuple):
    """The earliest and the latest moment that a table can be restored to (epoch seconds)."""

    earliest: float
    latest: float


def hold_of(table: Table) -> Hold | None:
    """The hold of the table's recovery; None: recovery is off."""
    return table.history.hold(PITR) if table.history is not None else None


def days_of(hold: Hold) -> int:
    """The recovery period."""
    return round((hold.seconds or 0) / DAY_SECONDS)


def window(table: Table, hold: Hold, now: float, settings: Settings) -> Window:
    """The moments to which the table can be restored at the time `now`.

    The latest is never before the earliest: if recovery was just enabled, or the clock was set back, both are
    the beginning.
    """
    earliest = max(moment_of(recording.kept_since(table, hold, now)), now - (hold.seconds or 0))
    return Window(earliest, max(now - settings.recovery_lag_seconds, earliest))


def stamp_of_latest(txn: Transaction, hold: Hold, span: Window, now: float, settings: Settings) -> int:
    """The stamp of the latest moment; without a lag it includes all commits before this transaction."""
    if settings.recovery_lag_seconds <= 0:
        return txn.stamp(stamp_at(now))
    return _settled(txn, max(hold.since, stamp_through(span.latest)))


def stamp_of(
    txn: Transaction, table: Table, hold: Hold, moment: float, now: float, settings: Settings
) -> int:
    """The stamp of a moment of the window. Raises `InvalidRestoreTimeException` for a moment outside it.

    The current moment includes all commits before this transaction.
    """
    span = window(table, hold, now, settings)
    if not int(span.earliest) <= moment <= span.latest:
        raise InvalidRestoreTimeException(
            f"RestoreDateTime '{shown(moment)}' must be within EarliestRestorableDateTime "
            f"'{shown(span.earliest)}' and LatestRestorableDateTime '{shown(span.latest)}'"
        )
    if stamp_at(moment) >= stamp_at(now):
        return txn.stamp(stamp_at(now))
    earliest = max(hold.since, stamp_through(span.earliest))
    return _settled(txn, max(earliest, stamp_through(moment)))


def _settled(txn: Transaction, stamp: int) -> int:
    """`stamp`, after making sure that no later commit gets a stamp below it."""
    txn.stamp(stamp)
    return stamp


def shown(moment: float) -> str:
    """A moment of a request in the texts of errors."""
    try:
        return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(moment)
