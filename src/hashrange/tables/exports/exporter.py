"""The exports of one database, as the database holds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hashrange.settings import Settings
from hashrange.storage.api import Engine
from hashrange.tables.background.ondemand import OnDemand
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


class Exporter(OnDemand["Runner"]):
    """The exports of one database, whose `settings` say where the buckets are."""

    def __init__(self, engine: Engine, settings: Settings, compile_filter: Compile) -> None:
        super().__init__(engine, settings, EXPORT_SPACE, JOB)
        self._compile = compile_filter

    def _make(self) -> Runner:
        from hashrange.tables.exports.work import Runner

        return Runner(self._engine, self._settings, self._compile)
