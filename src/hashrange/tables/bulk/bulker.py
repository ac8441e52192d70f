"""The bulk operations of one database, as the database holds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hashrange.settings import Settings
from hashrange.storage.api import Engine
from hashrange.tables.background.ondemand import OnDemand
from hashrange.tables.data.writes import Write
from hashrange.tables.spaces import BULK_SPACE

if TYPE_CHECKING:
    from hashrange.tables.bulk.work import Runner

JOB = b"bulk"
"""The partition of the jobs in `BULK_SPACE`."""

PutOf = Callable[[dict[str, Any]], Write]
"""The write of a row: its members are those of a PutItem. Raises `ServiceError`."""


class Bulker(OnDemand["Runner"]):
    """The bulk operations of one database, whose `settings` say where the buckets are."""

    def __init__(self, engine: Engine, settings: Settings, put_of: PutOf) -> None:
        super().__init__(engine, settings, BULK_SPACE, JOB)
        self._put_of = put_of

    def _make(self) -> Runner:
        from hashrange.tables.bulk.work import Runner

        return Runner(self._engine, self._settings, self._put_of)
