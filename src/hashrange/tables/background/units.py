"""Runs the background work in units, so that an error in one unit does not stop the others.

A unit is one table's expiry, one index that is being filled, one stream, or one queue; `sweeps` lists them.
If a unit raises an error, the error is logged once with the unit's name, `failing` shows it until the unit
works again, and the unit is tried again after a second, after two, after four, up to five minutes. If a unit
had to skip a damaged record, the record is counted and logged.

Where several servers share a store, each does the units that it owns (`sharing`).

A unit that has more to do runs again at once, in bites. No other write can run during a bite, so the time
that the last bite took decides how many items the next one has.

All times here are those of a steady clock, because the database's clock may stand still or jump.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple, TypeVar

from hashrange.settings import Settings
from hashrange.storage.api import CommitError, Engine, StorageError, Transaction
from hashrange.tables.background.bites import Damage, Limit
from hashrange.tables.background.sharing import Sharing
from hashrange.tables.data.item_change import Occasion

T = TypeVar("T")

_log = logging.getLogger("hashrange")

RETRY_SECONDS_MIN: Final = 1.0
RETRY_SECONDS_MAX: Final = 300.0

BITE_SECONDS: Final = 0.003
"""How long the body of a bite should take. Requests that write wait for it."""

_SHARE: Final = "share of the background work"

_PAUSE_EVERY_SECONDS: Final = 0.0005

_ITEMS_FIRST: Final = 100
_ITEMS_MIN: Final = 10
_DAMAGES_LOGGED_MAX: Final = 100


class Unit(NamedTuple):
    """A piece of background work: its name, and a function that does a bite and returns whether more is due.
    `everywhere`: each server of a shared store has to do it for itself."""

    name: str
    step: Callable[[Bite], bool]
    everywhere: bool = False


def failing(name: str, error: Exception) -> Unit:
    """A unit that fails with `error`: it shows operators that a record of the store is damaged."""
    return Unit(name, partial(_raise, error))


def _raise(error: Exception, bite: Bite) -> bool:
    raise error


class Failure(NamedTuple):
    """The failure of a unit: the error of the last try, the number of tries, and the time of the next try."""

    error: str
    tries: int
    retry_at: float


class Bite:
    """The limits, time and settings that a unit gets for one bite."""

    __slots__ = ("_background", "_unit", "limit", "occasion", "seconds")

    def __init__(self, background: Background, unit: str, limit: Limit, occasion: Occasion) -> None:
        self._background = background
        self._unit = unit
        self.limit = limit
        self.occasion = occasion
        self.seconds = 0.0

    def write(self, engine: Engine, body: Callable[[Transaction], T]) -> T:
        """As `engine.write`. The time that the body takes decides how large the next bite is."""
        steady = self._background.steady

        def timed(txn: Transaction) -> T:
            began = steady()
            result = body(txn)
            self.seconds = steady() - began
            return result

        return engine.write(timed)

    def pause(self) -> None:
        """Let other threads run, between two parts of a bite."""
        self._background.pause()

    def damaged(self, damages: Iterable[Damage]) -> None:
        """Report damaged records that were skipped."""
        for damage in damages:
            self._background.report(self._unit, damage)


class Background:
    """The state of the background work of one database.

    `failures` counts the errors of units, `damages` the records that were skipped; both since the start.
    `states_due` is when the next state of a table ends, by the database's clock (epoch seconds).
    """

    def __init__(
        self,
        steady: Callable[[], float] = time.monotonic,
        pause: Callable[[], None] = lambda: None,
        sharing: Sharing | None = None,
    ) -> None:
        self.sharing = sharing
        self.steady = steady
        self.pause = pause
        self._occasion = Occasion(0.0, Settings())
        self._items_max = _ITEMS_FIRST
        self.failures = 0
        self.damages = 0
        self._failing: dict[str, Failure] = {}
        self._items: dict[str, int] = {}
        self._unfinished: dict[str, Unit] = {}
        self._listed_at: float | None = None
        self._paused_at = 0.0
        self.states_due = 0.0
        self._guarded: set[str] = set()

    @property
    def failing(self) -> dict[str, str]:
        """The names of the units that fail at present, with their errors."""
        return {name: failure.error for name, failure in list(self._failing.items())}

    def is_list_due(self, list_seconds: float) -> bool:
        """Whether the next `run` needs the whole list: no unit has more to do, or the list is `list_seconds`
        old."""
        if not self._unfinished or self._listed_at is None:
            return True
        return self.steady() - self._listed_at >= list_seconds

    def run(self, units: Callable[[], Iterable[Unit]] | None, occasion: Occasion, items_max: int) -> bool:
        """Do one bite of each unit that is due; returns whether more is due.

        `units` lists all units; without it, only those run that had more to do after the last bite.
        """
        self._occasion, self._items_max = occasion, items_max
        self._take_part()
        if units is not None:
            now = self.steady()
            listed = self._attempt(Unit("the list of tables", lambda _: self._list(units)))
            self._listed_at = now if listed is not None else None
        for unit in list(self._unfinished.values()):
            self._pause_now_and_then()
            if not self._owns(unit) or not self._attempt(unit):
                self._unfinished.pop(unit.name, None)
        # A unit that did not run this time may have become due.
        return bool(self._unfinished) or units is None

    def forget(self) -> None:
        """Forget all units: the store holds something else from now on."""
        self._failing.clear()
        self._items.clear()
        self._unfinished.clear()
        self._listed_at = None
        self.states_due = 0.0

    def guard(self, name: str, step: Callable[[], float], otherwise: float) -> float:
        """Do a step as a unit of its own. Returns its result, or `otherwise` if it fails or has to wait."""
        results: list[float] = []
        self._take_part()

        def keep(bite: Bite) -> bool:
            results.append(step())
            return False

        self._guarded.add(name)
        unit = Unit(name, keep)
        if self._owns(unit):
            self._attempt(unit)
        return results[0] if results else otherwise

    def leave(self) -> None:
        """Leave the work to other servers, because this one ends. They notice it by themselves, too."""
        if self.sharing is not None:
            with suppress(StorageError):
                self.sharing.leave()

    def _pause_now_and_then(self) -> None:
        """Let other threads run: ten thousand units that find nothing to do take a while as well."""
        if self.steady() - self._paused_at >= _PAUSE_EVERY_SECONDS:
            self.pause()
            self._paused_at = self.steady()

    def _take_part(self) -> None:
        """Renew the lease of this server, where servers share the work."""
        sharing = self.sharing
        if sharing is not None:
            self._guarded.add(_SHARE)

            def tend(bite: Bite) -> bool:
                sharing.tend()
                return False

            self._attempt(Unit(_SHARE, tend))

    def _owns(self, unit: Unit) -> bool:
        return self.sharing is None or unit.everywhere or self.sharing.owns(unit.name)

    def _list(self, units: Callable[[], Iterable[Unit]]) -> bool:
        self._unfinished = {unit.name: unit for unit in units() if self._owns(unit)}
        for known in (self._failing, self._items):
            for name in list(known):
                if name not in self._unfinished and name not in self._guarded:
                    known.pop(name, None)
        return False

    def _attempt(self, unit: Unit) -> bool | None:
        """Do a bite of a unit. Returns whether more is due; None if the unit failed or has to wait."""
        failure = self._failing.get(unit.name)
        if failure is not None and self.steady() < failure.retry_at:
            return None
        items = min(self._items.get(unit.name, _ITEMS_FIRST), self._items_max)
        bite = Bite(self, unit.name, Limit(items), self._occasion)
        try:
            more = unit.step(bite)
        except Exception as error:
            self._failed(unit.name, error, failure)
            return None
        self._items[unit.name] = _next_items(items, bite.seconds, self._items_max)
        if failure is not None:
            self._failing.pop(unit.name, None)
            _log.info("background work goes on", extra={"fields": {"unit": unit.name}})
        return more

    def _failed(self, name: str, error: Exception, before: Failure | None) -> None:
        self.failures += 1
        tries = before.tries + 1 if before is not None else 1
        wait = min(RETRY_SECONDS_MIN * 2.0 ** (tries - 1), RETRY_SECONDS_MAX)
        text = f"{type(error).__name__}: {error}"
        self._failing[name] = Failure(text, tries, self.steady() + wait)
        # The engine logs a failed commit itself, once for all the writes that it refuses.
        if not isinstance(error, CommitError) and (before is None or before.error != text):
            # The text of a StorageError is enough; any other error is a mistake in the code: log its
            # traceback.
            fields = {"unit": name, "error": text}
            trace = None if isinstance(error, StorageError) else error
            _log.error("background work failed and is tried again", extra={"fields": fields}, exc_info=trace)

    def report(self, unit: str, damage: Damage) -> None:
        """Count and log a damaged record that a unit skipped."""
        self.damages += 1
        if self.damages <= _DAMAGES_LOGGED_MAX:
            address = f"{damage.partition.hex()}/{damage.sort.hex()}"
            fields = {"unit": unit, "record": address, "error": damage.error}
            _log.error("a damaged record was passed over; run hashrange check", extra={"fields": fields})


def _next_items(items: int, seconds: float, items_max: int) -> int:
    """How many items the next bite has, if the body of a bite of `items` took `seconds`."""
    if seconds > BITE_SECONDS:
        items = max(int(items * BITE_SECONDS / seconds), _ITEMS_MIN)
    elif seconds * 2 < BITE_SECONDS:
        items *= 2
    return max(min(items, items_max), 1)
