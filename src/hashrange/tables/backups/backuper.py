"""The backups of one database, as the database holds them: light, as long as there is none.

The modules that read and write files are imported when the first backup is found.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from hashrange.settings import Settings
from hashrange.storage.api import Engine, Reader
from hashrange.tables.background.units import Unit
from hashrange.tables.spaces import BACKUP_SPACE

if TYPE_CHECKING:
    from hashrange.tables.backups.work import Runner

BACKUP = b"backup"
"""The partition of the backups in `BACKUP_SPACE`."""

ScopeOf = Callable[[str, str, Settings], str]
"""The scope of the tables of an account and a region."""


class Backuper:
    """The backups of one database, whose `settings` say where their folders are."""

    def __init__(self, engine: Engine, settings: Settings, scope_of: ScopeOf) -> None:
        self._engine = engine
        self._settings = settings
        self._scope_of = scope_of
        self._runner: Runner | None = None

    @property
    def runner(self) -> Runner:
        """Who does the work."""
        if self._runner is None:
            from hashrange.tables.backups.work import Runner

            self._runner = Runner(self._engine, self._settings, self._scope_of)
        return self._runner

    def units(self) -> Iterator[Unit]:
        """The work that may be due."""
        directory = self._settings.backup_dir
        if (directory and os.path.isdir(directory)) or self._engine.read(_is_any):
            yield from self.runner.units()

    def forget(self) -> None:
        """Forget how far backups are: the store holds something else from now on, or is closed."""
        if self._runner is not None:
            self._runner.forget()

    def overview(self) -> list[dict[str, Any]]:
        """The backups for operators: where their files are, how far they are, and what is wrong with them."""
        return self.runner.overview()


def _is_any(reader: Reader) -> bool:
    return any(True for _ in reader.scan(BACKUP_SPACE, BACKUP, likely=1))
