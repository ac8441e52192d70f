"""The exports of one database, as the database holds them: light, as long as there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from hashrange.settings import Settings
from hashrange.storage.api import Engine, Reader
from hashrange.tables.background.units import Unit
from hashrange.tables.spaces import EXPORT_SPACE
from hashrange.values import Item

if TYPE_CHECKING:
    from hashrange.tables.exports.work import Runner

JOB = b"export"
"""The partition of the jobs in `EXPORT_SPACE`."""

Filter = Callable[[Item], Item | None]
"""Gives what an item shows of itself in an export; None: it is left out."""

Compile = Callable[[dict[str, Any]], Filter | None]
"""The filter of a request of ExportTableToPointInTime; None: it has none."""


class Exporter:
    """The exports of one database, whose `settings` say where the buckets are."""

    def __init__(self, engine: Engine, settings: Settings, compile_filter: Compile) -> None:
        self._engine = engine
        self._settings = settings
        self._compile = compile_filter
        self._runner: Runner | None = None

    @property
    def runner(self) -> Runner:
        """Who does the work."""
        if self._runner is None:
            from hashrange.tables.exports.work import Runner

            self._runner = Runner(self._engine, self._settings, self._compile)
        return self._runner

    def units(self) -> Iterator[Unit]:
        """The work that may be due."""
        if self._engine.read(_is_any):
            yield from self.runner.units()

    def forget(self) -> None:
        """Forget the objects that are being written: the store holds something else now, or is closed."""
        if self._runner is not None:
            self._runner.forget()


def _is_any(reader: Reader) -> bool:
    return any(True for _ in reader.scan(EXPORT_SPACE, JOB, likely=1))
