"""Exports: a table at a moment, or its changes between two moments, into the objects of a bucket.

The request stores the export, and holds the table's history; the background work (`tables.jobs.exports`)
opens the bucket and writes the objects. So a missing bucket fails the export later, as on the service. The
record of an export outlives the table.

Source: API reference; Developer Guide, "DynamoDB data export to Amazon S3"; for the order of checks and the
messages ack-api-quirks of October 2026, DDB-EXPORT-001 to 026.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from hashrange import expressions
from hashrange.errors import (
    INVALID,
    ExportConflictException,
    ExportNotFoundException,
    InvalidExportTimeException,
    LimitExceededException,
    PointInTimeRecoveryUnavailableException,
    TableNotFoundException,
    ValidationException,
)
from hashrange.interchange.exports import Layout
from hashrange.limits import (
    EXPORT_TOKEN_SECONDS,
    EXPORTS_MAX,
    INCREMENTAL_EXPORT_SECONDS_MAX,
    INCREMENTAL_EXPORT_SECONDS_MIN,
    LIST_EXPORTS_PAGE_MAX,
)
from hashrange.operations import jobs, parameters
from hashrange.operations.backups import recovery
from hashrange.operations.context import (
    TABLE_ARN,
    Answer,
    Caller,
    Context,
    ReadBody,
    Request,
    WriteBody,
    check_scope,
    table_arn,
    table_name,
)
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.spans import Hold, stamp_at
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import recording
from hashrange.tables.jobs.exports.export_records import EXPORTS, Export
from hashrange.tables.jobs.exports.export_runner import billed
from hashrange.values import Item

_CONFLICT: Final = "Export conflict: Duplicate request detected with conflicting parameters"
# [assumed] the words
_TOO_MANY: Final = f"Subscriber limit exceeded: There is a limit of {EXPORTS_MAX} exports in progress"
_NOT_AVAILABLE: Final = "Point in Time Recovery is not available for specified export time"
_BEFORE_TABLE: Final = "Incremental export period from time cannot be less than the table creation time : "
_AFTER_NOW: Final = "Incremental export period to time cannot be greater than the current time : "
_PERIOD: Final = "Difference between export period from time and export period to time is "
_EXPRESSIONS: Final = ("FilterExpression", "ProjectionExpression", "KeyConditionExpression")
_ECHOED: Final = (
    "S3Bucket",
    "S3BucketOwner",
    "S3Prefix",
    "S3SseKmsKeyId",
    "ExportType",
    "FilterSpecification",
)


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
    compiled_filter(request)
    jobs.check_buckets(context, "export to")
    begun = jobs.beginning("ExportTableToPointInTime", request, context)
    stored_request, caller = begun["request"], context.caller

    def body(txn: Transaction) -> Answer:
        table = catalog.find(txn, name, context.scope)
        if table is None or table.creating_until or table.gone_at is not None:
            raise TableNotFoundException(f"Table not found: {arn}")
        same = _earlier(txn, begun)
        if same is not None:
            return {"ExportDescription": _described(same, caller)}
        moments = (
            _incremental(txn, table, stored_request, context)
            if incremental
            else _full(txn, table, stored_request, context)
        )
        exports = EXPORTS.newest_first(txn, context.scope)
        if sum(export.status == "IN_PROGRESS" for export in exports) >= EXPORTS_MAX:
            raise LimitExceededException(_TOO_MANY)
        job = Export(
            **begun,
            table_name=table.name,
            table_id=table.id,
            key_names=tuple(attribute.name for attribute in table.key.attributes()),
            **moments._asdict(),
        )
        since = job.high if job.low is None else job.low
        catalog.save(txn, recording.hold(txn, table, job.hold, context.now, since=since))
        EXPORTS.save(txn, job)
        EXPORTS.keep_token(txn, job)
        return {"ExportDescription": _described(job, caller)}

    return body


def _name_in(arn: str, context: Context) -> str:
    match = TABLE_ARN(arn)
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
        raise InvalidExportTimeException(f"{_AFTER_NOW}{recovery.shown(end)}")
    if begin < int(table.created):
        raise InvalidExportTimeException(f"{_BEFORE_TABLE}{recovery.shown(begin)}")
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
    low = max(stamp_at(begin) - 1, recording.kept_since(table, hold, now))
    return _Moments(high, low, 0.0, begin, end)


def _earlier(reader: Reader, begun: dict[str, Any]) -> Export | None:
    """The export that was started with the same token, within eight hours of its end.

    Raises `ExportConflictException` if any member of its request was different.
    """
    earlier = jobs.with_token(EXPORTS, reader, begun)
    if earlier is None or (
        earlier.ended is not None and begun["started"] >= earlier.ended + EXPORT_TOKEN_SECONDS
    ):
        return None
    if earlier.request != begun["request"]:
        raise ExportConflictException(_CONFLICT)
    return earlier


def prepare_describe(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeExport."""
    arn = request["ExportArn"]
    elsewhere = ExportNotFoundException("Export not found: Invalid export arn")
    missing = ExportNotFoundException(f"Export not found: Export not found: {arn}")

    def body(reader: Reader) -> Answer:
        job = jobs.find(EXPORTS, reader, arn, context, "export", missing, elsewhere)
        return {"ExportDescription": _described(job, context.caller)}

    return body


def prepare_list(request: Request, context: Context) -> ReadBody:
    """The body of a ListExports.

    With a TableArn, only the exports of the table that has this name now, not of a deleted table ([report]
    ack-api-quirks DDB-EXPORT-020).
    """
    only = table_name(request["TableArn"], context.scope) if request.get("TableArn") else None
    size = request.get("MaxResults") or LIST_EXPORTS_PAGE_MAX

    def body(reader: Reader) -> Answer:
        table = catalog.find(reader, only, context.scope) if only is not None else None
        table_id = table.id if table is not None else None

        def is_wanted(job: Export) -> bool:
            return only is None or job.table_id == table_id

        def summary(job: Export) -> dict[str, Any]:
            return _summary(job, context.caller)

        token = request.get("NextToken")
        return jobs.page(EXPORTS, reader, context, token, size, summary, "ExportSummaries", is_wanted)

    return body


def _summary(job: Export, caller: Caller) -> dict[str, Any]:
    """The ExportSummary of an export."""
    return {
        "ExportArn": job.arn(caller.region, caller.account_id),
        "ExportStatus": job.status,
        "ExportType": "FULL_EXPORT" if job.low is None else "INCREMENTAL_EXPORT",
    }


def _described(job: Export, caller: Caller) -> dict[str, Any]:
    """The ExportDescription of an export.

    ExportType is shown only if the request gave it, and DestinationType always ([report] ack-api-quirks
    DDB-EXPORT-008, 016, 017).
    """
    request = job.request
    shown: dict[str, Any] = {
        "ExportArn": job.arn(caller.region, caller.account_id),
        "ExportStatus": job.status,
        **jobs.times(job),
        **jobs.outcome(job),
        "TableArn": table_arn(caller, job.table_name),
        "TableId": job.table_id,
        "S3SseAlgorithm": request.get("S3SseAlgorithm") or "AES256",
        "ExportFormat": job.format,
        "DestinationType": "S3",
        **{name: request[name] for name in _ECHOED if request.get(name) is not None},
    }
    if job.low is None:
        shown["ExportTime"] = round(job.time, 3)
    else:
        shown["IncrementalExportSpecification"] = {
            "ExportFromTime": round(job.from_time, 3),
            "ExportToTime": round(job.to_time, 3),
            "ExportViewType": job.view,
        }
    if job.status == "COMPLETED":
        layout = Layout(job.prefix, job.id, incremental=job.low is not None)
        shown["ExportManifest"] = layout.manifest("summary")
        shown["ItemCount"] = job.items
        shown["BilledSizeBytes"] = billed(job)
    return shown


def compiled_filter(request: Request) -> Callable[[Item], Item | None] | None:
    """The function from an item to its form in the export of `request`, by its FilterSpecification; None: all
    items are exported whole.

    It is compiled when the request is checked, and again when the work begins or continues after a restart. A
    key condition is tested on each item, like the filter. Both test each image of an incremental export
    separately [assumed]. Raises `ValidationException`.
    """
    specification: dict[str, Any] | None = request.get("FilterSpecification")
    if specification is None:
        return None
    if not any(specification.get(name) is not None for name in _EXPRESSIONS):
        # [report] ack-api-quirks DDB-EXPORT-008
        raise ValidationException(
            "Invalid Request: Invalid FilterSpecification: The specification can not be empty"
        )
    subs = parameters.substitutions(specification)
    tests: list[Callable[[Item], bool]] = []
    key_text, text = specification.get("KeyConditionExpression"), specification.get("FilterExpression")
    if key_text is not None:
        expressions.key_condition(key_text, subs)  # key conditions have more rules
        tests.append(expressions.condition(key_text, subs, "KeyConditionExpression").test)
    if text is not None:
        tests.append(expressions.condition(text, subs, "FilterExpression").test)
    shown = specification.get("ProjectionExpression")
    projection = expressions.projection(shown, subs) if shown is not None else None
    subs.check_all_used()

    def show(item: Item) -> Item | None:
        for test in tests:
            if not test(item):
                return None
        return item if projection is None else projection.apply(item)

    return show
