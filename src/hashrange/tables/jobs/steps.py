"""Runs the steps of jobs one at a time, and keeps what a job has open from one step to the next.

Programs without a server may sweep on several threads, and a step may be waiting for a bucket that does not
answer while the database is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final, Generic, Protocol, TypeVar

from hashrange.errors import drop_tracebacks
from hashrange.tables.background.units import Tries, may_pass

_END_SECONDS_MAX: Final = 1.0


class Open(Protocol):
    """What a job keeps open, such as an object that is being read."""

    def close(self) -> None:
        """Release it; unfinished work in it is dropped."""


O = TypeVar("O", bound=Open)  # noqa: E741


def _nothing() -> None:
    """Nothing is shared."""


class Steps(Generic[O]):
    """The steps of a kind of jobs. `opened` is what the jobs keep open, by their ids; a later step opens it
    again at the stored position if it was closed. `close_shared` closes what all of them use. `tries` counts
    the steps that fail."""

    def __init__(self, close_shared: Callable[[], None] = _nothing) -> None:
        self.opened: dict[str, O] = {}
        self.tries = Tries()
        self._close_shared = close_shared
        self._lock = Lock()
        self._is_over = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Run a block while no step runs."""
        with self._lock:
            try:
                yield
            finally:
                if self._is_over:
                    self._close_all()

    def run(self, id_: str, step: Callable[[], bool], give_up: Callable[[Exception], bool]) -> bool:
        """Do a step of a job; returns whether more is due. If the step fails, `give_up` either ends the job,
        or returns False: then the error is raised, and the step is tried again later."""
        with self.held():
            try:
                more = step()
            except Exception as error:
                self.close_one(id_)
                if not give_up(error):
                    raise
                drop_tracebacks(error)  # they refer to this frame: a cycle
                more = False
            except BaseException:
                self.close_one(id_)
                raise
            self.tries.forget(id_)
            if not more:
                self.close_one(id_)
            return more

    def has_tried_enough(self, id_: str, error: Exception) -> bool:
        """Count a failed try of a job; returns whether it has failed too often, by an error that cannot
        pass."""
        return not may_pass(error) and self.tries.failed(id_)

    def close_one(self, id_: str) -> None:
        """Close what a job has open."""
        opened = self.opened.pop(id_, None)
        if opened is not None:
            opened.close()

    def keep_only(self, ids: Collection[str]) -> None:
        """Close what all other jobs have open."""
        for id_ in [id_ for id_ in self.opened if id_ not in ids]:
            self.close_one(id_)

    def forget(self) -> None:
        """Close everything, because the store's contents were replaced."""
        with self.held():
            self._close_all()

    def end(self) -> None:
        """Close everything, because the store is closed. If a step does not end within a moment, it does so
        at its end: it may wait a long time for a bucket, but the caller must not."""
        self._is_over = True
        if self._lock.acquire(timeout=_END_SECONDS_MAX):
            try:
                self._close_all()
            finally:
                self._lock.release()

    def _close_all(self) -> None:
        self.keep_only(())
        self._close_shared()
