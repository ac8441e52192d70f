"""ExportTableToPointInTime: a table at a moment, or its changes between two moments, into a bucket.

The request stores the export, and holds the table's history; the background work opens the bucket and writes
the objects. So a missing bucket fails the export later, as on the service.

Source: API reference, ExportTableToPointInTime; for the order of checks and the messages ack-api-quirks
DDB-EXPORT-001 to 005, 009, 010, 019, measured in October 2026.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from hashrange import shapes
from hashrange.errors import (
    INVALID,
    ExportConflictException,
    InvalidExportTimeException,
    LimitExceededException,
    PointInTimeRecoveryUnavailableException,
    TableNotFoundException,
    ValidationException,
)
from hashrange.limits import (
    EXPORT_TOKEN_SECONDS,
    EXPORTS_MAX,
    INCREMENTAL_EXPORT_SECONDS_MAX,
    INCREMENTAL_EXPORT_SECONDS_MIN,
)
from hashrange.operations.backups import recovery
from hashrange.operations.context import Answer, Context, Request, WriteBody, check_scope
from hashrange.operations.exports import export_description, filters
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.spans import Hold, stamp_at
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import recording
from hashrange.tables.jobs.exports import export_records
from hashrange.tables.jobs.exports.export_records import Export

_ARN: Final = re.compile(
    r"arn:aws[a-z-]*:dynamodb:([a-z0-9-]*):([0-9]*):table/([a-zA-Z0-9_.-]{3,255})"
).fullmatch

_CONFLICT: Final = "Export conflict: Duplicate request detected with conflicting parameters"
# [assumed] the words
_TOO_MANY: Final = f"Subscriber limit exceeded: There is a limit of {EXPORTS_MAX} exports in progress"
_NO_BUCKETS: Final = (
    "There are no buckets to export to: a database in memory has none unless --s3-dir (or Settings.s3_dir) "
    "names the directory whose folders are buckets, or --s3-endpoint a store that speaks S3's protocol."
)
_NOT_AVAILABLE: Final = "Point in Time Recovery is not available for specified export time"
_BEFORE_TABLE: Final = "Incremental export period from time cannot be less than the table creation time : "
_AFTER_NOW: Final = "Incremental export period to time cannot be greater than the current time : "
_PERIOD: Final = "Difference between export period from time and export period to time is "
_MILLIS: Final = 1_000
_ID_CHARS: Final = 8


class _Moments(NamedTuple):
    """The moments of an export, and their stamps as in `Export`."""

    high: int
    low: int | None = None
    time: float = 0.0
    from_time: float = 0.0
    to_time: float = 0.0


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of an ExportTableToPointInTime."""
    arn = request["TableArn"]
    name = _name_in(arn, context)
    incremental = _check(request)
    filters.compiled(request)
    if not context.settings.s3_dir and not context.settings.s3_endpoint:
        raise ValidationException(_NO_BUCKETS)
    now, caller, token = context.now, context.caller, request.get("ClientToken")
    id_ = f"{int(now * _MILLIS):014}-{context.new_id()[:_ID_CHARS]}"
    stored_request = shapes.known("ExportTableToPointInTime", request)
    stored_request.pop("ClientToken", None)

    def body(txn: Transaction) -> Answer:
        table = catalog.find(txn, name, context.scope)
        if table is None or table.creating_until or table.gone_at is not None:
            raise TableNotFoundException(f"Table not found: {arn}")
        same = _earlier(txn, context, token, stored_request)
        if same is not None:
            return {"ExportDescription": export_description.describe(same, caller)}
        moments = (
            _incremental(txn, table, stored_request, context)
            if incremental
            else _full(txn, table, stored_request, context)
        )
        exports = export_records.newest_first(txn, context.scope)
        if sum(export.status == "IN_PROGRESS" for export in exports) >= EXPORTS_MAX:
            raise LimitExceededException(_TOO_MANY)
        job = Export(
            id=id_,
            scope=context.scope,
            region=caller.region,
            account_id=caller.account_id,
            token=token,
            request=stored_request,
            table_name=table.name,
            table_id=table.id,
            started=now,
            key_names=tuple(attribute.name for attribute in table.key.attributes()),
            **moments._asdict(),
        )
        since = job.high if job.low is None else job.low
        catalog.save(txn, recording.hold(txn, table, job.hold, now, since=since))
        export_records.save(txn, job)
        export_records.keep_token(txn, job)
        return {"ExportDescription": export_description.describe(job, caller)}

    return body


def _name_in(arn: str, context: Context) -> str:
    match = _ARN(arn)
    if match is None:
        if arn.startswith("arn:"):
            raise ValidationException("Invalid Request: Table ARN is invalid.")
        raise ValidationException(f"{INVALID}tableArn is not a valid ARN")
    region, account_id, name = match.groups()
    check_scope(context.scope, account_id, region, TableNotFoundException(f"Table not found: {arn}"))
    return name


def _check(request: Request) -> bool:
    """Check the rules that need no table; returns whether the export is incremental."""
    kind, specification = request.get("ExportType"), request.get("IncrementalExportSpecification")
    if request.get("S3SseKmsKeyId") is not None and request.get("S3SseAlgorithm") != "KMS":
        raise ValidationException("Invalid Request: KMS Key Id is not supported for this encryption type")
    if kind == "INCREMENTAL_EXPORT":
        if specification is None:
            raise ValidationException(
                "Invalid Request: Incremental Export Specification expected when export type is set as "
                "Incremental Export"
            )
        if specification.get("ExportFromTime") is None:
            raise ValidationException(
                "Invalid Request: ExportFromTime must be provided in IncrementalExportSpecification"
            )
        return True
    if specification is not None and kind is None:
        raise ValidationException(
            "Invalid Request: Export Type expected to be Incremental Export when incremental export "
            "specification is provided"
        )
    if specification is not None:
        raise ValidationException(
            "Invalid Request: When Export Type is Full Export , Incremental Export Specification should not "
            "be provided"
        )
    return False


def _hold_of(table: Table) -> Hold:
    hold = recovery.hold_of(table)
    if hold is None:
        raise PointInTimeRecoveryUnavailableException(
            f"Point in time recovery is not enabled for table '{table.name}'"
        )
    return hold


def _full(txn: Transaction, table: Table, request: Request, context: Context) -> _Moments:
    """The moment of a full export: by default the latest."""
    hold, now, settings = _hold_of(table), context.now, context.settings
    window = recovery.window(table, hold, now, settings)
    export_time = request.get("ExportTime")
    if export_time is None:
        return _Moments(recovery.stamp_of_latest(txn, hold, window, now, settings), time=window.latest)
    moment = float(export_time)
    if moment > now or moment < int(window.earliest):
        raise InvalidExportTimeException("Export Time is invalid")
    if moment > window.latest:
        raise InvalidExportTimeException(_NOT_AVAILABLE)
    return _Moments(recovery.stamp_of(txn, table, hold, moment, now, settings), time=moment)


def _incremental(txn: Transaction, table: Table, request: Request, context: Context) -> _Moments:
    """The moments of an incremental export, which shows changes from the first up to but not at the
    second."""
    specification, now = request["IncrementalExportSpecification"], context.now
    begin = float(specification["ExportFromTime"])
    end = float(specification["ExportToTime"]) if specification.get("ExportToTime") is not None else None
    if end is not None and end > now:
        raise InvalidExportTimeException(f"{_AFTER_NOW}{_shown(end)}")
    if begin < int(table.created):
        raise InvalidExportTimeException(f"{_BEFORE_TABLE}{_shown(begin)}")
    hold = _hold_of(table)
    window = recovery.window(table, hold, now, context.settings)
    if begin < int(window.earliest) or (end is not None and end > window.latest):
        raise InvalidExportTimeException(_NOT_AVAILABLE)  # [assumed] that the words are those of full exports
    end = window.latest if end is None else end
    if end - begin < INCREMENTAL_EXPORT_SECONDS_MIN:
        raise InvalidExportTimeException(f"{_PERIOD}less than 15 minutes")
    if end - begin > INCREMENTAL_EXPORT_SECONDS_MAX:
        raise InvalidExportTimeException(f"{_PERIOD}greater than 24 hours")  # [assumed] the words
    high = stamp_at(end) - 1
    txn.stamp(high)  # no later commit gets a stamp up to `high`
    low = max(stamp_at(begin) - 1, hold.since, table.history.after if table.history is not None else 0)
    return _Moments(high, low, 0.0, begin, end)


def _earlier(reader: Reader, context: Context, token: str | None, request: dict[str, Any]) -> Export | None:
    """The export that was started with the same token, within eight hours of its end.

    Raises `ExportConflictException` if any member of its request was different.
    """
    if token is None:
        return None
    earlier = export_records.by_token(reader, context.scope, context.caller.account_id, token)
    if earlier is None or (
        earlier.ended is not None and context.now >= earlier.ended + EXPORT_TOKEN_SECONDS
    ):
        return None
    if earlier.request != request:
        raise ExportConflictException(_CONFLICT)
    return earlier


def _shown(moment: float) -> str:
    try:
        return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(moment)
