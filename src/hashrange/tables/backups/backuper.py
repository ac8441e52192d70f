"""The backups of a database."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hashrange.settings import Settings
from hashrange.storage.api import Engine
from hashrange.tables.background.ondemand import OnDemand
from hashrange.tables.spaces import BACKUP_SPACE, BACKUPS

if TYPE_CHECKING:
    from hashrange.tables.backups.backup_runner import Runner, ScopeOf


class Backuper(OnDemand["Runner"]):
    """The backups of a database, whose `settings` say where their folders are."""

    def __init__(self, engine: Engine, settings: Settings, scope_of: ScopeOf) -> None:
        super().__init__(engine, settings, BACKUP_SPACE, BACKUPS)
        self._scope_of = scope_of

    def _make(self) -> Runner:
        from hashrange.tables.backups.backup_runner import Runner

        return Runner(self._engine, self._settings, self._scope_of)

    def _is_any(self) -> bool:
        directory = self._settings.backup_dir
        return bool(directory and os.path.isdir(directory)) or super()._is_any()

    def overview(self) -> list[dict[str, Any]]:
        """The backups for operators: their folders, their progress, and their problems."""
        return self.runner.overview()
