"""Runs the background work in units, so that an error in one unit does not stop the others.

A unit is one table's expiry, one index that is being filled, one stream, or one queue; `sweeps` lists them.
If a unit raises an error, the error is logged once with the unit's name, `failing` shows it until the unit
works again, and the unit is tried again after one second, two, four, and so on up to five minutes. A job,
which somebody waits for, is given up after some tries unless its error may pass (`Tries`). If a unit had to
skip a damaged record, the record is counted and logged.

Work that waits for something else runs in lanes of its own, `Background.aside`. So a bucket or a data stream
that does not answer delays nothing else.

If several servers share a store, each does the units that it owns (`sharing`).

A unit that has more to do runs again at once, in bites. No other write can run during a bite, so the duration
of the last bite decides how many items the next bite has.

All times here come from a steady clock, because the database's clock may stand still or jump.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from hashrange.settings import Settings
from hashrange.storage.api import Engine, Transaction
from hashrange.storage.capabilities import Rewinding
from hashrange.storage.failures import CommitError, StorageError, StoreClosed
from hashrange.tables.background import leaps
from hashrange.tables.background.sharing import Sharing
from hashrange.tables.bites import Damage, Limit
from hashrange.tables.definitions.table import Table
from hashrange.tables.items.item_change import Occasion

T = TypeVar("T")

Tables = Callable[[], list[Table]]
"""Reads the definitions of all tables."""

_log = logging.getLogger("hashrange")

RETRY_SECONDS_MIN: Final = 1.0
RETRY_SECONDS_MAX: Final = 300.0

BITE_SECONDS: Final = 0.003
"""How long the body of a bite should take. Requests that write wait for it."""

TRIES_MAX: Final = 5
"""A job whose error cannot pass is given up after this many tries, which take 15 seconds."""

_SHARE: Final = "share of the background work"

_PAUSE_EVERY_SECONDS: Final = 0.0005

_ITEMS_FIRST: Final = 100
_ITEMS_MIN: Final = 10
_DAMAGES_LOGGED_MAX: Final = 100
_DESCRIBED_CHARS_MAX: Final = 1_000

ASIDE: Final = ("jobs", "backups", "deliveries")
"""The lanes that wait for buckets, for the directory of the backups, and for Kinesis."""

WAITING_SECONDS: Final = 5.0
"""`Background.waiting` reports a bite that takes longer than this."""

_NO_OCCASION: Final = Occasion(0.0, Settings())
"""The occasion of steps that do not use it."""


class Unit(NamedTuple):
    """A piece of background work: its name, and a function that does a bite and returns whether more is due.
    `everywhere`: each server of a shared store has to do it. `destroys`: it permanently removes what its time
    is over for, so it waits while the clock is not trusted (`leaps`)."""

    name: str
    step: Callable[[Bite], bool]
    everywhere: bool = False
    destroys: bool = False


def failing(name: str, error: Exception) -> Unit:
    """A unit that fails with `error`, to show operators that a record of the store is damaged."""
    return Unit(name, partial(_raise, error))


def _raise(error: Exception, bite: Bite) -> bool:
    raise error


def _ignore(tables: list[Table]) -> None:
    """The `Background.listed` of a database that has none."""


class Failure(NamedTuple):
    """The failure of a unit: the error of the last try, the number of tries, and the time of the next try."""

    error: str
    tries: int
    retry_at: float


def may_pass(error: Exception) -> bool:
    """Whether the cause lies outside of the work, in a network, a disk or the store, so that the same step
    may succeed later. Any other error is one of the work itself."""
    return isinstance(error, OSError | StorageError)


def described(error: BaseException) -> str:
    """An error that nothing foresees, for the record of a job or a row."""
    return f"{type(error).__name__}: {error}"[:_DESCRIBED_CHARS_MAX]


class Tries:
    """The tries of jobs that failed in a row, since the start of the process."""

    def __init__(self) -> None:
        self._failed: dict[str, int] = {}

    def failed(self, job: str) -> bool:
        """Count a failed try; returns whether it was the last one that a job has."""
        self._failed[job] = self._failed.get(job, 0) + 1
        return self._failed[job] >= TRIES_MAX

    def forget(self, job: str) -> None:
        """Count from zero, because a try succeeded or the job has ended."""
        self._failed.pop(job, None)


class UnderWay(NamedTuple):
    """A unit whose bite is running, and when it began."""

    name: str
    since: float


class Bite:
    """The limits, time and settings of a unit's bite. `is_held`: the time is not trusted with what time
    destroys."""

    __slots__ = ("_background", "_unit", "is_held", "limit", "occasion", "seconds")

    def __init__(
        self, background: Background, unit: str, limit: Limit, occasion: Occasion, is_held: bool
    ) -> None:
        self._background = background
        self.is_held = is_held
        self._unit = unit
        self.limit = limit
        self.occasion = occasion
        self.seconds = 0.0

    def write(self, engine: Engine, body: Callable[[Transaction], T]) -> T:
        """Like `engine.write`. The body's duration decides how large the next bite is."""
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
    """The state of the background work of a database.

    It runs in lanes, each on its own thread if there is a server: `tables` is the work that needs only the
    store; those `aside`, by their names, wait for something else.

    `failures` counts the errors of units, `damages` the records that were skipped; both since the start.
    `states_due` is when the next state of a table ends, by the database's clock (epoch seconds). `listed` is
    called with all tables whenever they were listed. `kept` is what operations keep in memory, by names;
    there may be background work on it. `clock_is_real`: leaps of the database's clock are not meant, and
    `leaps` judges them. `paused`: nothing is done, because the store's contents come from another one.
    """

    def __init__(
        self,
        steady: Callable[[], float] = time.monotonic,
        sharing: Sharing | None = None,
    ) -> None:
        self.sharing = sharing
        self.steady = steady
        self.pause: Callable[[], None] = lambda: None
        self.tables = Lane(self, "the list of tables")
        self.aside = {name: Lane(self, f"the list of {name}") for name in ASIDE}
        self.failures = 0
        self.damages = 0
        self.states_due = 0.0
        self.clock_is_real = False
        self.paused = False
        self.leaps: leaps.Leaps | None = None
        self.listed: Callable[[list[Table]], None] = _ignore
        self.kept: dict[str, Any] = {}
        self._failing: dict[str, Failure] = {}
        self._items: dict[str, int] = {}
        self._counting = Lock()

    @property
    def failing(self) -> dict[str, str]:
        """The names of the units that currently fail, with their errors."""
        return {name: failure.error for name, failure in list(self._failing.items())}

    @property
    def waiting(self) -> dict[str, float]:
        """The units of jobs and deliveries that have been waiting for long, with the seconds since their bite
        began."""
        under_way = [lane.under_way for lane in self.aside.values()]
        seconds = {unit.name: self.steady() - unit.since for unit in under_way if unit is not None}
        return {name: waited for name, waited in seconds.items() if waited >= WAITING_SECONDS}

    def forget(self) -> None:
        """Forget all units, because the store's contents were replaced."""
        self.tables.forget()
        for lane in self.aside.values():
            lane.forget()
        self._failing.clear()
        self._items.clear()
        self.states_due = 0.0

    def drop(self, names: Iterable[str]) -> None:
        """Forget units that are no longer listed."""
        for name in names:
            self._failing.pop(name, None)
            self._items.pop(name, None)

    def guard(self, name: str, step: Callable[[], T], otherwise: T, *, everywhere: bool = False) -> T:
        """Do a step as a separate unit. Returns its result, or `otherwise` if it fails or has to wait."""
        results: list[T] = []

        def keep(bite: Bite) -> bool:
            results.append(step())
            return False

        unit = Unit(name, keep, everywhere)
        if self.owns(unit):
            self.attempt(unit, _NO_OCCASION, _ITEMS_FIRST)
        return results[0] if results else otherwise

    def take_part(self) -> None:
        """Renew the lease of this server, if servers share the work."""
        sharing = self.sharing
        if sharing is not None:

            def tend(bite: Bite) -> bool:
                sharing.tend()
                return False

            self.attempt(Unit(_SHARE, tend), _NO_OCCASION, _ITEMS_FIRST)

    def owns(self, unit: Unit) -> bool:
        """Whether this server does a unit."""
        return self.sharing is None or unit.everywhere or self.sharing.owns(unit.name)

    def leave(self) -> None:
        """Leave the work to other servers, because this one ends. Without this they would notice later."""
        if self.sharing is not None:
            with suppress(StorageError):
                self.sharing.leave()

    def is_held(self, engine: Engine, now: float) -> bool:
        """Whether what time destroys must wait, when the clock shows `now`."""
        if not self.clock_is_real:
            return False
        if self.leaps is None:
            self.leaps = leaps.Leaps(self.steady, engine.read(leaps.noted))
        return self.leaps.is_held(now)

    def attempt(
        self, unit: Unit, occasion: Occasion, items_max: int, *, is_held: bool = False
    ) -> bool | None:
        """Do a bite of a unit. Returns whether more is due; None if the unit failed or has to wait. Raises
        StoreClosed."""
        if is_held and unit.destroys:
            return None
        failure = self._failing.get(unit.name)
        if failure is not None and self.steady() < failure.retry_at:
            return None
        items = min(self._items.get(unit.name, _ITEMS_FIRST), items_max)
        bite = Bite(self, unit.name, Limit(items), occasion, is_held)
        try:
            more = unit.step(bite)
        except StoreClosed:
            raise
        except Exception as error:
            self._failed(unit.name, error, failure)
            return None
        self._items[unit.name] = _next_items(items, bite.seconds, items_max)
        if failure is not None:
            self._failing.pop(unit.name, None)
            _log.info("background work continues", extra={"fields": {"unit": unit.name}})
        return more

    def _failed(self, name: str, error: Exception, before: Failure | None) -> None:
        with self._counting:
            self.failures += 1
        tries = before.tries + 1 if before is not None else 1
        wait = min(RETRY_SECONDS_MIN * 2.0 ** (tries - 1), RETRY_SECONDS_MAX)
        text = described(error)
        self._failing[name] = Failure(text, tries, self.steady() + wait)
        # The engine itself logs a failed commit, once for all the writes that it refuses.
        if not isinstance(error, CommitError) and (before is None or before.error != text):
            # The text of a StorageError is enough; any other error is a bug, so log its traceback.
            fields = {"unit": name, "error": text}
            trace = None if isinstance(error, StorageError) else error
            _log.error("background work failed and is tried again", extra={"fields": fields}, exc_info=trace)

    def report(self, unit: str, damage: Damage) -> None:
        """Count and log a damaged record that a unit skipped."""
        with self._counting:
            self.damages += 1
        if self.damages <= _DAMAGES_LOGGED_MAX:
            address = f"{damage.partition.hex()}/{damage.sort.hex()}"
            fields = {"unit": unit, "record": address, "error": damage.error}
            _log.error("a damaged record was skipped; run hashrange check", extra={"fields": fields})


class Lane:
    """Units that run one after the other. `name` is the name of the unit that lists them. `is_held`: the time
    of the next `run` is not trusted with what time destroys."""

    def __init__(self, background: Background, name: str) -> None:
        self._background = background
        self._name = name
        self._unfinished: dict[str, Unit] = {}
        self._listed: set[str] = set()
        self._listed_at: float | None = None
        self._paused_at = 0.0
        self.under_way: UnderWay | None = None
        self.is_held = False

    def is_list_due(self, list_seconds: float) -> bool:
        """Whether the next `run` needs the full list: no unit has more to do, or the list is `list_seconds`
        old."""
        if not self._unfinished or self._listed_at is None:
            return True
        return self._background.steady() - self._listed_at >= list_seconds

    def run(self, units: Callable[[], Iterable[Unit]] | None, occasion: Occasion, items_max: int) -> bool:
        """Do a bite of each unit that is due; returns whether more is due.

        `units` lists all units; without it, only the units run that had more to do after their last bite.
        """
        background = self._background
        if units is not None:
            now = background.steady()
            listing = Unit(self._name, lambda _: self._list(units))
            listed = background.attempt(listing, occasion, items_max)
            self._listed_at = now if listed is not None else None
        for unit in list(self._unfinished.values()):
            self._pause_now_and_then()
            if not background.owns(unit) or not self._attempt(unit, occasion, items_max):
                self._unfinished.pop(unit.name, None)
        # A unit that did not run this time may have become due.
        return bool(self._unfinished) or units is None

    def forget(self) -> None:
        """Forget all units."""
        self._unfinished.clear()
        self._listed.clear()
        self._listed_at = None

    def _attempt(self, unit: Unit, occasion: Occasion, items_max: int) -> bool | None:
        self.under_way = UnderWay(unit.name, self._background.steady())
        try:
            return self._background.attempt(unit, occasion, items_max, is_held=self.is_held)
        finally:
            self.under_way = None

    def _pause_now_and_then(self) -> None:
        """Let other threads run: even ten thousand units with nothing to do take a while."""
        steady = self._background.steady
        if steady() - self._paused_at >= _PAUSE_EVERY_SECONDS:
            self._background.pause()
            self._paused_at = steady()

    def _list(self, units: Callable[[], Iterable[Unit]]) -> bool:
        self._unfinished = {unit.name: unit for unit in units() if self._background.owns(unit)}
        self._background.drop(self._listed - self._unfinished.keys())
        self._listed = set(self._unfinished)
        return False


def _next_items(items: int, seconds: float, items_max: int) -> int:
    """How many items the next bite has, if the body of a bite of `items` took `seconds`."""
    if seconds > BITE_SECONDS:
        items = max(int(items * BITE_SECONDS / seconds), _ITEMS_MIN)
    elif seconds * 2 < BITE_SECONDS:
        items *= 2
    return max(min(items, items_max), 1)


class Growing(Protocol):
    """What operations keep in memory: `hashrange.vectors.cache.MatrixCache`."""

    def grow(self) -> bool:
        """Do a bite of the work on it. Returns whether more is due."""
        ...


def of_server(engine: Engine, background: Background) -> Iterator[Unit]:
    """The work on what operations keep in memory, which each server does for itself; and the note on the
    clock, unless the store ends with the server."""
    judge = background.leaps
    if judge is not None and not isinstance(engine, Rewinding):
        yield Unit("note on the clock", lambda bite: judge.note(engine, bite.occasion.now), destroys=True)
    for name, own in list(background.kept.items()):
        yield Unit(f"memory of {name}", partial(_grow, own), everywhere=True)


def _grow(own: Growing, bite: Bite) -> bool:
    return own.grow()
