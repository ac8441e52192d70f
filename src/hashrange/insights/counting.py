"""Decides whether keys are counted in a database: only while tables have contributor insights.

`contributors` is loaded when the first table has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hashrange.clock import Clock
from hashrange.tables.definitions.table import Table

if TYPE_CHECKING:
    from hashrange.insights.contributors import Contributors, Ranking
    from hashrange.observing.observer import Observer


class Counting:
    """The insights of a database. `observe` begins and ends the observing of its requests."""

    def __init__(self, observe: Callable[[Observer, bool], None], clock: Callable[[], Clock]) -> None:
        self._observe = observe
        self._clock = clock
        self._contributors: Contributors | None = None

    def look_at(self, tables: list[Table]) -> None:
        """Count the keys of those of all `tables` whose insights are enabled, from now on."""
        if self._contributors is None:
            if not any(table.insights for table in tables):
                return
            from hashrange.insights.contributors import Contributors

            self._contributors = Contributors(self._observe, self._clock)
        self._contributors.look_at(tables)

    def rankings(self, number: int) -> list[Ranking]:
        """The `number` highest keys of each ranking, of this hour and the one before."""
        return [] if self._contributors is None else self._contributors.rankings(number)
