"""The imports of one database, as the database holds them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from hashrange.settings import Settings
from hashrange.storage.api import Engine, Reader
from hashrange.tables.background.ondemand import OnDemand
from hashrange.tables.spaces import IMPORT_SPACE

if TYPE_CHECKING:
    from hashrange.tables.imports.work import Runner

JOB = b"import"
"""The partition of the jobs in `IMPORT_SPACE`."""


class Importer(OnDemand["Runner"]):
    """The imports of one database, whose `settings` say where the buckets are."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        super().__init__(engine, settings, IMPORT_SPACE, JOB)

    def _make(self) -> Runner:
        from hashrange.tables.imports.work import Runner

        return Runner(self._engine, self._settings)

    def errors(self, arn: str, first: int = 0, errors_max: int | None = None) -> list[dict[str, Any]]:
        """The errors of the items of an import, from number `first` on, in the form in which the service logs
        them. Of more than 10,000 errors the first were kept. An import that is not there has none.

        `arn` is the ARN of the import, or its id.
        """
        from hashrange.tables.imports import jobs

        id_ = arn.rpartition("/")[2]

        def kept(reader: Reader) -> list[dict[str, Any]]:
            job = next((job for job in jobs.every(reader) if job.id == id_), None)
            return list(islice(jobs.errors(reader, job, first), errors_max)) if job is not None else []

        return self._engine.read(kept)
