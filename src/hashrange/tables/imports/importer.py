"""The imports of one database, as the database holds them: light, as long as there is none.

The modules that read files are imported when the first import is found, because most programs have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from hashrange.settings import Settings
from hashrange.storage.api import Engine, Reader
from hashrange.tables.background.units import Unit
from hashrange.tables.spaces import IMPORT_SPACE

if TYPE_CHECKING:
    from hashrange.tables.imports.work import Runner

JOB = b"import"
"""The partition of the jobs in `IMPORT_SPACE`."""


class Importer:
    """The imports of one database, whose `settings` say where the buckets are."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._settings = settings
        self._runner: Runner | None = None

    @property
    def runner(self) -> Runner:
        """Who does the work."""
        if self._runner is None:
            from hashrange.tables.imports.work import Runner

            self._runner = Runner(self._engine, self._settings)
        return self._runner

    def units(self) -> Iterator[Unit]:
        """The work that may be due."""
        if self._engine.read(_is_any):
            yield from self.runner.units()

    def forget(self) -> None:
        """Forget how far imports are: the store holds something else from now on, or is closed."""
        if self._runner is not None:
            self._runner.forget()

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


def _is_any(reader: Reader) -> bool:
    return any(True for _ in reader.scan(IMPORT_SPACE, JOB, likely=1))
