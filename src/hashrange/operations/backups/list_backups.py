"""ListBackups: the backups in the order of their times, in pages of up to 100.

The backups of deleted tables are listed only for the types SYSTEM and ALL.

Source: API reference, ListBackups; ack-api-quirks DDB-BACKUP-011, 014, 016.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Any

from hashrange.errors import ValidationException
from hashrange.limits import LIST_BACKUPS_MAX
from hashrange.operations.backups import backup_description, names
from hashrange.operations.context import Answer, Context, ReadBody, Request, table_name
from hashrange.storage.api import Reader
from hashrange.tables.definitions import dropped
from hashrange.tables.jobs.backups import backup_records

_Listed = tuple[str, str, dict[str, Any]]
"""An id, a table's name, and a BackupSummary: in the order of time, and of names at the same time."""


def prepare(request: Request, context: Context) -> ReadBody:
    """The body of a ListBackups."""
    only = table_name(request["TableName"], context.scope) if request.get("TableName") else None
    size = request.get("Limit") or LIST_BACKUPS_MAX
    low, high = request.get("TimeRangeLowerBound"), request.get("TimeRangeUpperBound")
    if low is not None and high is not None and low > high:
        raise ValidationException("Time range lower bound must be less than or equal to upper bound")
    after = _after(request.get("ExclusiveStartBackupArn"), context)
    kind = request.get("BackupType") or "USER"

    def is_wanted(listed: _Listed) -> bool:
        created = listed[2]["BackupCreationDateTime"]
        return (
            (only is None or listed[1] == only)
            and (low is None or created >= low)
            and (high is None or created < high)
            and listed[:2] > after
        )

    def body(reader: Reader) -> Answer:
        parts: list[Iterator[_Listed]] = []
        if kind in ("USER", "ALL"):
            parts.append(_of_users(reader, context, after[0]))
        if kind in ("SYSTEM", "ALL"):
            parts.append(iter(sorted(_of_deleted_tables(reader, context), key=_place)))
        wanted = (listed[2] for listed in merge(*parts, key=_place) if is_wanted(listed))
        page = list(islice(wanted, size + 1))
        answer: Answer = {"BackupSummaries": page[:size]}
        if len(page) > size:
            answer["LastEvaluatedBackupArn"] = page[size - 1]["BackupArn"]
        return answer

    return body


def _place(listed: _Listed) -> tuple[str, str]:
    return listed[:2]


def _after(arn: str | None, context: Context) -> tuple[str, str]:
    if arn is None:
        return "", ""
    name = names.parse(arn, context.caller)
    if name.region != context.caller.region:
        # [report] DDB-BACKUP-012 for "does not match the region"; the rest of the text is [assumed]
        raise ValidationException("ExclusiveStartBackupArn does not match the region of the request")
    return name.id, name.table


def _of_users(reader: Reader, context: Context, after: str) -> Iterator[_Listed]:
    """The backups that users made. Their ids are unique."""
    for backup in backup_records.of_scope(reader, context.scope, after):
        yield backup.id, backup.table_name, backup_description.summary_of(backup, context.caller)


def _of_deleted_tables(reader: Reader, context: Context) -> Iterator[_Listed]:
    """The backups of deleted tables."""
    for _, dropped_backup in dropped.every(reader, context.scope):
        if isinstance(dropped_backup, dropped.Dropped) and dropped_backup.recoverable:
            summary = backup_description.summary_of_deleted(reader, dropped_backup, context.caller)
            yield names.system_id(dropped_backup), dropped_backup.table.name, summary
