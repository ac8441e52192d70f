"""What workers have in common: their loop, a thread that extends the leases of what they hold, and the
reasons of failures."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from hashrange_patterns.requests import Runtime, is_passing

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Leases(Generic[T]):
    """What a worker holds, in a `with` block: a thread extends the leases, three times a lease.

    Without `lease_seconds` there are no leases, and no thread.
    """

    def __init__(
        self, held: Sequence[T], extend: Callable[[Sequence[T]], object], lease_seconds: float | None
    ) -> None:
        self.all = list(held)
        self._extend = extend
        self._lease_seconds = lease_seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leases", daemon=True)

    def __enter__(self) -> None:
        if self._lease_seconds is not None:
            self._thread.start()

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def drop(self, one: T) -> None:
        """Leave the lease of one that has ended."""
        self.all = [other for other in self.all if other is not one]

    def _run(self) -> None:
        assert self._lease_seconds is not None
        while not self._over.wait(self._lease_seconds / 3):
            try:
                self._extend(self.all)
            except Exception:
                # (what is held is delivered again if that goes on)
                _log.warning("leases were not extended", exc_info=True)


def repeat(step: Callable[[], object], stop: threading.Event, runtime: Runtime) -> None:
    """Call `step` until `stop` is set; wait while the table or queue is throttled or cannot be reached."""
    failures = 0
    while not stop.is_set():
        try:
            step()
            failures = 0
        except Exception as error:
            if not is_passing(error):
                raise
            stop.wait(runtime.pause(failures).seconds)
            failures += 1


def reason_of(error: Exception) -> str:
    """Why something failed, as a text."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__  # (its text cannot be made)
