"""Background work that most databases never have: backups, imports and exports.

The modules are imported, and the runner is made, when the first record of such work exists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from hashrange.settings import Settings
from hashrange.storage.api import Engine, Reader
from hashrange.tables.background.units import Tables, Unit


class Runs(Protocol):
    """The runner that does the work."""

    def units(self, tables: Tables) -> Iterator[Unit]:
        """The work that may be due. `tables` reads the store's tables."""

    def forget(self) -> None:
        """Forget the progress of the work, and close open resources. Waits for the running step."""

    def close(self) -> None:
        """Close open resources. A step that still runs after a moment closes them at its end."""


R = TypeVar("R", bound=Runs)


class OnDemand(ABC, Generic[R]):
    """A kind of such work in a database. There is work if `space` has records in the partition `job`."""

    def __init__(self, engine: Engine, settings: Settings, space: int, job: bytes) -> None:
        self._engine = engine
        self._settings = settings
        self._space = space
        self._job = job
        self._runner: R | None = None

    @abstractmethod
    def _make(self) -> R:
        """Import and make the runner."""

    @property
    def runner(self) -> R:
        """The runner that does the work."""
        if self._runner is None:
            self._runner = self._make()
        return self._runner

    def units(self, tables: Tables) -> Iterator[Unit]:
        """The work that may be due. `tables` reads those of the store."""
        if self._is_any():
            yield from self.runner.units(tables)

    def forget(self) -> None:
        """Forget the progress of the work, because the store's contents were replaced."""
        if self._runner is not None:
            self._runner.forget()

    def close(self) -> None:
        """End the work, because the store is closed."""
        if self._runner is not None:
            self._runner.close()

    def _is_any(self) -> bool:
        def any_record(reader: Reader) -> bool:
            return any(True for _ in reader.scan(self._space, self._job, likely=1))

        return self._engine.read(any_record)
