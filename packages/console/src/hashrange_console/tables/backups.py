"""The backups of tables: a list, and forms that make and restore them, or a table as of a moment."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import Response

from hashrange.clock import show_moment
from hashrange.server.admin.application import subject_of
from hashrange_console import looks
from hashrange_console.pages import Action
from hashrange_console.reach import View
from hashrange_console.tables.changes import Asks, Form, Step, answer

LISTED_MAX: Final = 100


class NewBackup(Form, kw_only=True):
    """The name of a new backup."""

    name: str

    async def step(self, view: View) -> Step:
        request = {"TableName": self.table, "BackupName": self.name}
        return Step("CreateBackup", request, f"The backup {self.name} of {self.table} is being made.")


class OldBackup(msgspec.Struct, forbid_unknown_fields=True):
    """A backup to delete."""

    arn: str
    preview: bool = False

    async def step(self, view: View) -> Step:
        return Step("DeleteBackup", {"BackupArn": self.arn}, "The backup is deleted.")


class Restore(msgspec.Struct, forbid_unknown_fields=True):
    """A backup, and the name of the table that is made of it."""

    arn: str
    target: str
    preview: bool = False

    async def step(self, view: View) -> Step:
        request = {"BackupArn": self.arn, "TargetTableName": self.target}
        return Step("RestoreTableFromBackup", request, *_begun(view, self.target))


class RestoreMoment(Form, kw_only=True):
    """A table with a past, the moment ("": now), and the name of the table that is made of it."""

    target: str
    at: str = ""

    async def step(self, view: View) -> Step:
        request: dict[str, Any] = {"SourceTableName": self.table, "TargetTableName": self.target}
        if self.at:
            request["RestoreDateTime"] = view.moment(self.at)[0]
        else:
            request["UseLatestRestorableTime"] = True
        return Step("RestoreTableToPointInTime", request, *_begun(view, self.target))


def _begun(view: View, target: str) -> tuple[str, str]:
    href = looks.href(f"/console/t/{target}/about", scope=view.scope)
    return f"The table {target} is being restored.", href


async def page(view: View) -> Response:
    """The backups of the page's scope, and the forms."""
    answer = await view.read("ListBackups", {"Limit": LISTED_MAX})
    tables = await view.read("ListTables", {"Limit": LISTED_MAX})
    rows = [
        {
            "name": backup["BackupName"],
            "arn": backup["BackupArn"],
            "table": backup["TableName"],
            "status": backup["BackupStatus"],
            "made": show_moment(backup["BackupCreationDateTime"]),
            "bytes": backup.get("BackupSizeBytes", 0),
        }
        for backup in answer["BackupSummaries"]
    ]
    return await looks.page(
        "tables/backups.html",
        view=view,
        rows=rows,
        has_more="LastEvaluatedBackupArn" in answer,
        tables=tables["TableNames"],
        directory=subject_of(view.request).database.settings.backup_dir,
        code=view.code("ListBackups", {"Limit": LISTED_MAX}),
    )


_FORMS: Final[tuple[tuple[str, str, type[Asks]], ...]] = (
    ("/console/backups/make", "Back up a table.", NewBackup),
    ("/console/backups/delete", "Delete a backup.", OldBackup),
    ("/console/backups/restore", "Restore a table from a backup.", Restore),
    ("/console/backups/restore-moment", "Make a table from another one as of a moment.", RestoreMoment),
)
PARTS: Final = tuple(Action(path, about, answer(shape), shape) for path, about, shape in _FORMS)
