"""The deliveries of a database to Kinesis data streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hashrange.settings import Settings
from hashrange.storage.api import Engine
from hashrange.tables.background.ondemand import OnDemand
from hashrange.tables.spaces import DELIVERIES, DELIVERY_SPACE

if TYPE_CHECKING:
    from hashrange.tables.deliveries.delivery_runner import Runner


class Counts(NamedTuple):
    """How many changes were delivered, and how many were dropped, since the start."""

    delivered: int
    dropped: int


class Deliverer(OnDemand["Runner"]):
    """The deliveries of a database, whose `settings` say where Kinesis is."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        super().__init__(engine, settings, DELIVERY_SPACE, DELIVERIES)

    def _make(self) -> Runner:
        from hashrange.tables.deliveries.delivery_runner import Runner

        return Runner(self._engine, self._settings)

    @property
    def counts(self) -> Counts:
        """The changes that were delivered and dropped since the start."""
        runner = self._runner
        return Counts(0, 0) if runner is None else Counts(runner.delivered, runner.dropped)
