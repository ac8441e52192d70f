"""The exports of a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hashrange.settings import Settings
from hashrange.storage.api import Engine
from hashrange.tables.background.ondemand import OnDemand
from hashrange.tables.spaces import EXPORT_JOBS, EXPORT_SPACE

if TYPE_CHECKING:
    from hashrange.tables.exports.export_runner import Compile, Runner


class Exporter(OnDemand["Runner"]):
    """The exports of a database, whose `settings` say where the buckets are."""

    def __init__(self, engine: Engine, settings: Settings, compile_filter: Compile) -> None:
        super().__init__(engine, settings, EXPORT_SPACE, EXPORT_JOBS)
        self._compile = compile_filter

    def _make(self) -> Runner:
        from hashrange.tables.exports.export_runner import Runner

        return Runner(self._engine, self._settings, self._compile)
