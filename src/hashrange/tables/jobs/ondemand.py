"""Background work that most databases never have: imports, exports, bulk operations, backups, deliveries.

The modules of a kind of work are imported, and its runner is made, when the first record of such work exists.
`Jobs` lists the kinds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from hashrange.settings import Settings
from hashrange.storage.api import Engine, Reader
from hashrange.tables import spaces
from hashrange.tables.background.units import ASIDE, Tables, Unit

if TYPE_CHECKING:
    from hashrange.tables.jobs.backups import backup_runner
    from hashrange.tables.jobs.bulk import bulk_runner
    from hashrange.tables.jobs.deliveries import delivery_runner
    from hashrange.tables.jobs.exports import export_runner
    from hashrange.tables.jobs.imports import import_runner


class Runs(Protocol):
    """The runner that does the work."""

    def units(self, tables: Tables) -> Iterator[Unit]:
        """The work that may be due. `tables` reads the store's tables."""

    def forget(self) -> None:
        """Forget the progress of the work, and close open resources. Waits for the running step."""

    def close(self) -> None:
        """Close open resources. A step that still runs after a moment closes them at its end."""


R = TypeVar("R", bound=Runs)


def _no_sign() -> bool:
    return False


class OnDemand(Generic[R]):
    """A kind of such work in a database. There is work if `space` has records in the partition `job`, or if
    there is another `sign` of it. `make` imports and makes the runner."""

    def __init__(
        self,
        engine: Engine,
        space: int,
        job: bytes,
        make: Callable[[], R],
        sign: Callable[[], bool] = _no_sign,
    ) -> None:
        self._engine = engine
        self._space = space
        self._job = job
        self._make = make
        self._sign = sign
        self.made: R | None = None
        """The runner, once there was work."""

    @property
    def runner(self) -> R:
        """The runner that does the work."""
        if self.made is None:
            self.made = self._make()
        return self.made

    def units(self, tables: Tables) -> Iterator[Unit]:
        """The work that may be due. `tables` reads those of the store."""
        if self._sign() or self._engine.read(self._is_any):
            yield from self.runner.units(tables)

    def forget(self) -> None:
        """Forget the progress of the work, because the store's contents were replaced."""
        if self.made is not None:
            self.made.forget()

    def close(self) -> None:
        """End the work, because the store is closed."""
        if self.made is not None:
            self.made.close()

    def _is_any(self, reader: Reader) -> bool:
        return any(True for _ in reader.scan(self._space, self._job, likely=1))


class Jobs:
    """The kinds of such work in a database. `settings` say where buckets, backups and Kinesis are; what
    runners cannot know of requests comes as functions."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        *,
        export_filter: export_runner.Compile,
        scope_of: backup_runner.ScopeOf,
        bulk_put: bulk_runner.PutOf,
    ) -> None:
        def imports() -> import_runner.Runner:
            from hashrange.tables.jobs.imports.import_runner import Runner

            return Runner(engine, settings)

        def exports() -> export_runner.Runner:
            from hashrange.tables.jobs.exports.export_runner import Runner

            return Runner(engine, settings, export_filter)

        def bulk() -> bulk_runner.Runner:
            from hashrange.tables.jobs.bulk.bulk_runner import Runner

            return Runner(engine, settings, bulk_put)

        def backups() -> backup_runner.Runner:
            from hashrange.tables.jobs.backups.backup_runner import Runner

            return Runner(engine, settings, scope_of)

        def has_backups() -> bool:
            return bool(settings.backup_dir and os.path.isdir(settings.backup_dir))

        def deliveries() -> delivery_runner.Runner:
            from hashrange.tables.jobs.deliveries.delivery_runner import Runner

            return Runner(engine, settings)

        self.imports = OnDemand(engine, spaces.IMPORT_SPACE, spaces.IMPORT_JOBS, imports)
        self.exports = OnDemand(engine, spaces.EXPORT_SPACE, spaces.EXPORT_JOBS, exports)
        self.bulk = OnDemand(engine, spaces.BULK_SPACE, spaces.BULK_JOBS, bulk)
        self.backups = OnDemand(engine, spaces.BACKUP_SPACE, spaces.BACKUPS, backups, has_backups)
        self.deliveries = OnDemand(engine, spaces.DELIVERY_SPACE, spaces.DELIVERIES, deliveries)
        transfers = self.imports, self.exports, self.bulk
        self.lanes: dict[str, tuple[OnDemand[Any], ...]] = dict(
            zip(ASIDE, (transfers, (self.backups,), (self.deliveries,)), strict=True)
        )
        """The kinds of each lane of the background work."""
