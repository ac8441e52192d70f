"""The observers of a database's requests, and the gate that decides whose requests are served.

A database has one `Observers`, and only checks whether it is `active`. The code of a request's way past
observers is loaded when it is first needed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from hashrange.settings import Settings
from hashrange.storage.api import Engine

if TYPE_CHECKING:
    from hashrange.observing.observer import Active, Observer
    from hashrange.rings import Gate

_log = logging.getLogger(__name__)

_ERROR_CHARS_MAX: Final = 300

_everywhere: list[Observer] = []


def observe_everywhere(observer: Observer, begins: bool) -> None:
    """Let `observer` see the requests to all databases that are made from now on, or end that."""
    if begins:
        _everywhere.append(observer)
    else:
        _everywhere.remove(observer)


class Observers:
    """The observers of one database. Thread-safe.

    `active` takes each request past them; it is None while there are none. `bills`: whether all requests get
    bills, for an observer. `heads`: whether more is read of the heads of requests than names the caller: the
    attempt number that the SDK sends, for observers, and what the `gate` reads.

An observer must not change what a request does: `failing` has the latest error of each observer
    that has failed, and `failures` counts these errors.
    """

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self.active: Active | None = None
        self.bills = False
        self.heads = False
        self.gate: Gate | None = None
        self._numbering: Callable[[bool], None] = _ignore
        self.failing: dict[str, str] = {}
        self.failures = 0
        self._engine = engine
        self._settings = settings
        self._lock = threading.RLock()
        self._all: tuple[Observer, ...] = tuple(_everywhere)
        if self._all:
            self._look()

    @property
    def all(self) -> tuple[Observer, ...]:
        """The observers, in the order of their ranks."""
        return self._all

    def observe(self, observer: Observer, begins: bool = True) -> None:
        """Begin or end to show each request to `observer`. Idempotent; to be called again when what the
        observer needs has changed."""
        with self._lock:
            others = [other for other in self._all if other is not observer]
            if begins:
                others.append(observer)
            self._all = tuple(sorted(others, key=_rank))
            self._look()

    def guard(self, gate: Gate | None) -> None:
        """Let `gate` decide whose requests are served; None: everybody's."""
        with self._lock:
            self.gate = gate
            self._look()

    def number_connections(self, numbering: Callable[[bool], None]) -> None:
        """Call `numbering`, now and at each change, with whether requests need the number of their
        connection."""
        with self._lock:
            self._numbering = numbering
            self._look()

    def failed(self, name: str, error: Exception) -> None:
        """Note that an observer has failed on a request, which goes on as if nobody had looked. The log gets
        the first error of each observer. Called from any thread; never raises."""
        with self._lock:
            is_first = name not in self.failing
            self.failing[name] = repr(error)[:_ERROR_CHARS_MAX]
            self.failures += 1
        if is_first:
            fields = {"observer": name, "error": self.failing[name]}
            _log.error("an observer of requests failed", exc_info=error, extra={"fields": fields})

    def _look(self) -> None:
        """Set `active` if anybody observes; otherwise to None."""
        if not self._all:
            self.active = None
            self.bills = False
            self.heads = self.gate is not None
            self._numbering(False)
            return
        from hashrange.observing.observer import Active

        active = Active(self._all, self._engine, self._settings, self.failed)
        self.bills = active.bills
        self.heads = active.bills or self.gate is not None
        self.active = active
        self._numbering(active.numbers_connections)


def _rank(observer: Observer) -> int:
    return observer.rank


def _ignore(is_numbered: bool) -> None:
    """The numbering of a database without a server."""
