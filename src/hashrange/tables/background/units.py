"""Runs the background work: units that fail alone.

A unit is one table's expiry, one index that is being filled, one stream, one queue: `sweeps` says which there
are. What one of them raises stops that one only. It is logged once with the unit's name, shown by `failing`
until the unit works again, and the unit is tried again after a second, after two, after four, up to five
minutes. A single record that a unit had to pass over is counted and logged.

A unit that has more to do is run again at once, in bites: how many items a bite has follows from how long the
last one took, since nobody else writes meanwhile.

Time is that of a steady clock, not the database's: that one may stand still or jump.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar

from hashrange.settings import Settings
from hashrange.storage.api import CommitFailed, Engine, StorageError, Transaction
from hashrange.tables.background.bites import Damage, Limit
from hashrange.tables.data.items import Occasion

T = TypeVar("T")

_log = logging.getLogger("hashrange")

RETRY_SECONDS_MIN: Final = 1.0
RETRY_SECONDS_MAX: Final = 300.0

BITE_SECONDS: Final = 0.003
"""How long the body of a bite should take: requests that write wait for it."""

_ITEMS_FIRST: Final = 100
_ITEMS_MIN: Final = 10
_DAMAGES_LOGGED_MAX: Final = 100


class Unit(NamedTuple):
    """A piece of background work: its name, and what does a bite of it and answers whether more is due."""

    name: str
    step: Callable[[Bite], bool]


class Failure(NamedTuple):
    """A unit that fails: the error of the last try, how many there were, when the next one is."""

    error: str
    tries: int
    retry_at: float


class Bite:
    """What a unit is given for one bite."""

    __slots__ = ("_background", "_unit", "limit", "occasion", "seconds")

    def __init__(self, background: Background, unit: str, limit: Limit, occasion: Occasion) -> None:
        self._background = background
        self._unit = unit
        self.limit = limit
        self.occasion = occasion
        self.seconds = 0.0

    def write(self, engine: Engine, body: Callable[[Transaction], T]) -> T:
        """`engine.write`; the time that the body takes decides how large the next bite is."""
        steady = self._background.steady

        def timed(txn: Transaction) -> T:
            began = steady()
            result = body(txn)
            self.seconds = steady() - began
            return result

        return engine.write(timed)

    def pause(self) -> None:
        """Let others run, between two parts of a bite."""
        self._background.pause()

    def damaged(self, damages: Iterable[Damage]) -> None:
        """Report records that were passed over."""
        for damage in damages:
            self._background.report(self._unit, damage)


class Background:
    """The state of the background work of one database.

    `failures` counts what units raised, `damages` the records passed over; both since the start.
    """

    def __init__(
        self,
        steady: Callable[[], float] = time.monotonic,
        pause: Callable[[], None] = lambda: None,
    ) -> None:
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
        self._guarded: set[str] = set()

    @property
    def failing(self) -> dict[str, str]:
        """The units that fail, and their errors."""
        return {name: failure.error for name, failure in list(self._failing.items())}

    def run(self, units: Callable[[], Iterable[Unit]], occasion: Occasion, items_max: int) -> bool:
        """Do one bite of everything that is due; whether more is due.

        While units have more to do, `units` is asked for all there are only as often as sweeps are wanted.
        """
        self._occasion, self._items_max = occasion, items_max
        list_seconds = occasion.settings.sweep_seconds
        now = self.steady()
        whole = False
        if not self._unfinished or self._listed_at is None or now - self._listed_at >= list_seconds:
            listed = self._attempt(Unit("the list of tables", lambda _: self._list(units)))
            self._listed_at = now if listed is not None else None
            whole = True
        for unit in list(self._unfinished.values()):
            if not self._attempt(unit):
                self._unfinished.pop(unit.name, None)
        # What was not looked at may have become due meanwhile.
        return bool(self._unfinished) or not whole

    def guard(self, name: str, step: Callable[[], float], otherwise: float) -> float:
        """Do a step as a unit of its own, which fails alone; its result, `otherwise` where it has none."""
        results: list[float] = []

        def keep(bite: Bite) -> bool:
            results.append(step())
            return False

        self._guarded.add(name)
        self._attempt(Unit(name, keep))
        return results[0] if results else otherwise

    def _list(self, units: Callable[[], Iterable[Unit]]) -> bool:
        self._unfinished = {unit.name: unit for unit in units()}
        for known in (self._failing, self._items):
            for name in list(known):
                if name not in self._unfinished and name not in self._guarded:
                    known.pop(name, None)
        return False

    def _attempt(self, unit: Unit) -> bool | None:
        """Do a bite of a unit; whether more is due, None if it failed or has to wait."""
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
        # The engine itself tells of commits that fail, once for all that it refuses.
        if not isinstance(error, CommitFailed) and (before is None or before.error != text):
            # The store's own errors say all; anything else is a mistake of ours.
            fields = {"unit": name, "error": text}
            trace = None if isinstance(error, StorageError) else error
            _log.error("background work failed and is tried again", extra={"fields": fields}, exc_info=trace)

    def report(self, unit: str, damage: Damage) -> None:
        """Count and log a record that a unit passed over."""
        self.damages += 1
        if self.damages <= _DAMAGES_LOGGED_MAX:
            address = f"{damage.partition.hex()}/{damage.sort.hex()}"
            fields = {"unit": unit, "record": address, "error": damage.error}
            _log.error("a damaged record was passed over; run hashrange check", extra={"fields": fields})


def _next_items(items: int, seconds: float, items_max: int) -> int:
    """How many items the next bite has, after one of `items` whose body took `seconds`."""
    if seconds > BITE_SECONDS:
        items = max(int(items * BITE_SECONDS / seconds), _ITEMS_MIN)
    elif seconds * 2 < BITE_SECONDS:
        items *= 2
    return max(min(items, items_max), 1)
