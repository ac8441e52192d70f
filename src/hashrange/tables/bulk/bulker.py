"""The bulk operations of a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hashrange.settings import Settings
from hashrange.storage.api import Engine
from hashrange.tables.background.ondemand import OnDemand
from hashrange.tables.spaces import BULK_JOBS, BULK_SPACE

if TYPE_CHECKING:
    from hashrange.tables.bulk.bulk_runner import PutOf, Runner


class Bulker(OnDemand["Runner"]):
    """The bulk operations of a database, whose `settings` say where the buckets are."""

    def __init__(self, engine: Engine, settings: Settings, put_of: PutOf) -> None:
        super().__init__(engine, settings, BULK_SPACE, BULK_JOBS)
        self._put_of = put_of

    def _make(self) -> Runner:
        from hashrange.tables.bulk.bulk_runner import Runner

        return Runner(self._engine, self._settings, self._put_of)
