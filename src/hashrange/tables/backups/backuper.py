"""The backups of one database, as the database holds them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hashrange.settings import Settings
from hashrange.storage.api import Engine
from hashrange.tables.background.ondemand import OnDemand
from hashrange.tables.spaces import BACKUP_SPACE

if TYPE_CHECKING:
    from hashrange.tables.backups.work import Runner

BACKUP = b"backup"
"""The partition of the backups in `BACKUP_SPACE`."""

ScopeOf = Callable[[str, str, Settings], str]
"""The scope of the tables of an account and a region."""


class Backuper(OnDemand["Runner"]):
    """The backups of one database, whose `settings` say where their folders are."""

    def __init__(self, engine: Engine, settings: Settings, scope_of: ScopeOf) -> None:
        super().__init__(engine, settings, BACKUP_SPACE, BACKUP)
        self._scope_of = scope_of

    def _make(self) -> Runner:
        from hashrange.tables.backups.work import Runner

        return Runner(self._engine, self._settings, self._scope_of)

    def _is_any(self) -> bool:
        directory = self._settings.backup_dir
        return bool(directory and os.path.isdir(directory)) or super()._is_any()

    def overview(self) -> list[dict[str, Any]]:
        """The backups for operators: where their files are, how far they are, and what is wrong with them."""
        return self.runner.overview()
