"""The imports of a database."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from hashrange.settings import Settings
from hashrange.storage.api import Engine, Reader
from hashrange.tables.background.ondemand import OnDemand
from hashrange.tables.spaces import IMPORT_JOBS, IMPORT_SPACE

if TYPE_CHECKING:
    from hashrange.tables.imports.import_runner import Runner


class Importer(OnDemand["Runner"]):
    """The imports of a database, whose `settings` say where the buckets are."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        super().__init__(engine, settings, IMPORT_SPACE, IMPORT_JOBS)

    def _make(self) -> Runner:
        from hashrange.tables.imports.import_runner import Runner

        return Runner(self._engine, self._settings)

    def errors(self, arn: str, first: int = 0, errors_max: int | None = None) -> list[dict[str, Any]]:
        """The errors of the items of an import, from number `first` on, in the form in which the service logs
        them. Only the first 10,000 errors are stored. An import that does not exist has none.

        `arn` is the ARN of the import, or its id.
        """
        from hashrange.tables.imports import import_records

        id_ = arn.rpartition("/")[2]

        def stored_errors(reader: Reader) -> list[dict[str, Any]]:
            job = next((job for job in import_records.every(reader) if job.id == id_), None)
            if job is None:
                return []
            return list(islice(import_records.errors(reader, job, first), errors_max))

        return self._engine.read(stored_errors)
