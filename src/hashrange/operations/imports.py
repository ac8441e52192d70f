"""Imports: new tables with the items in the objects of a bucket.

The request only stores the import; the background work (`tables.jobs.imports`) checks whether the bucket
exists, and whether another import has made the table meanwhile. The service does the same, and requests need
not wait for S3. The record of an import outlives the table.

Source: API reference; Developer Guide, "DynamoDB data import from Amazon S3"; ack-api-quirks of October 2026,
DDB-IMPORT-001 to 020.
"""

from __future__ import annotations

from typing import Any, Final

from hashrange.errors import (
    ImportConflictException,
    ImportNotFoundException,
    LimitExceededException,
    ResourceInUseException,
    ValidationException,
)
from hashrange.limits import IMPORT_TOKEN_SECONDS, IMPORTS_MAX, LIST_IMPORTS_PAGE_MAX
from hashrange.operations import jobs
from hashrange.operations.context import (
    Answer,
    Caller,
    Context,
    ReadBody,
    Request,
    WriteBody,
    table_arn,
    table_name,
)
from hashrange.operations.tables import create_table
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.jobs.imports.import_records import IMPORTS, Import

_CONFLICT: Final = "Import conflict: Duplicate request detected with conflicting parameters"
# [assumed] the words
_TOO_MANY: Final = f"Subscriber limit exceeded: There is a limit of {IMPORTS_MAX} imports in progress"
# The members of CreateTable that an import takes.
_MEMBERS: Final = (
    "TableName",
    "AttributeDefinitions",
    "KeySchema",
    "BillingMode",
    "ProvisionedThroughput",
    "OnDemandThroughput",
    "SSESpecification",
    "GlobalSecondaryIndexes",
    "VectorIndexes",
)
_TOKEN_BYTES: Final = 56
"""The service's tokens have at least as many."""


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of an ImportTable."""
    _check_options(request)
    parameters = request["TableCreationParameters"]
    build = create_table.check({name: parameters[name] for name in _MEMBERS if name in parameters}, context)
    jobs.check_buckets(context, "import from")
    table = build(lambda: 0)
    begun = jobs.beginning("ImportTable", request, context)
    job = Import(**begun, table_name=table.name, table_id=table.id, table=table)

    def body(txn: Transaction) -> Answer:
        # The table is looked for before the token. [report] ack-api-quirks DDB-IMPORT-017
        if catalog.find(txn, job.table_name, context.scope) is not None and not _is_replay(txn, begun):
            raise ResourceInUseException(f"Table already exists: {job.table_name}")
        same = _earlier(txn, begun)
        if same is None:
            imports = IMPORTS.newest_first(txn, job.scope)
            if sum(kept.status == "IN_PROGRESS" for kept in imports) >= IMPORTS_MAX:
                raise LimitExceededException(_TOO_MANY)
            IMPORTS.save(txn, job)
            IMPORTS.keep_token(txn, job)
        return {"ImportTableDescription": _described(same or job, context.caller)}

    return body


def _check_options(request: Request) -> None:
    options = request.get("InputFormatOptions")
    if options is not None and options.get("Csv") is not None and request["InputFormat"] != "CSV":
        raise ValidationException(
            "Invalid Request: Unsupported InputFormatOptions for the given input format: "
            f"{request['InputFormat']}."
        )


def _earlier(reader: Reader, begun: dict[str, Any]) -> Import | None:
    """The import that was started with the same token, within eight hours of its end.

    Raises `ImportConflictException` if its request was different. The service ignores a different prefix
    ([report] ack-api-quirks DDB-IMPORT-017); it is unknown what else it ignores.
    """
    earlier = jobs.with_token(IMPORTS, reader, begun)
    if earlier is None or (
        earlier.ended is not None and begun["started"] >= earlier.ended + IMPORT_TOKEN_SECONDS
    ):
        return None
    if _compared(earlier.request) != _compared(begun["request"]):
        raise ImportConflictException(_CONFLICT)
    return earlier


def _is_replay(reader: Reader, begun: dict[str, Any]) -> bool:
    """Whether the request is repeated while its import is in progress."""
    earlier = _earlier(reader, begun)
    return earlier is not None and earlier.status == "IN_PROGRESS"


def _compared(request: dict[str, Any]) -> dict[str, Any]:
    source = {name: value for name, value in request["S3BucketSource"].items() if name != "S3KeyPrefix"}
    return {**request, "S3BucketSource": source}


def prepare_describe(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeImport."""
    arn = request["ImportArn"]
    missing = ImportNotFoundException(f"Import not found: Import not found: {arn}")

    def body(reader: Reader) -> Answer:
        job = jobs.find(IMPORTS, reader, arn, context, "import", missing)
        return {"ImportTableDescription": _described(job, context.caller)}

    return body


def prepare_list(request: Request, context: Context) -> ReadBody:
    """The body of a ListImports."""
    only = table_name(request["TableArn"], context.scope) if request.get("TableArn") else None
    size = request.get("PageSize") or LIST_IMPORTS_PAGE_MAX

    def is_wanted(job: Import) -> bool:
        return only is None or job.table_name == only

    def summary(job: Import) -> dict[str, Any]:
        return _summary(job, context.caller)

    def body(reader: Reader) -> Answer:
        token = request.get("NextToken")
        return jobs.page(
            IMPORTS, reader, context, token, size, summary, "ImportSummaryList", is_wanted, _TOKEN_BYTES
        )

    return body


def _described(job: Import, caller: Caller) -> dict[str, Any]:
    """The ImportTableDescription of an import."""
    request = job.request
    shown: dict[str, Any] = {
        **_summary(job, caller),
        "TableId": job.table_id,
        "InputCompressionType": job.compression,
        "TableCreationParameters": request["TableCreationParameters"],
        "ProcessedSizeBytes": job.processed_bytes,
        "ProcessedItemCount": job.processed_items,
        "ImportedItemCount": job.imported_items,
        "ErrorCount": job.errors,
        **jobs.outcome(job),
    }
    if request.get("InputFormatOptions") is not None:
        shown["InputFormatOptions"] = request["InputFormatOptions"]
    return shown


def _summary(job: Import, caller: Caller) -> dict[str, Any]:
    """The ImportSummary of an import."""
    source = job.request["S3BucketSource"]
    return {
        "ImportArn": job.arn(caller.region, caller.account_id),
        "ImportStatus": job.status,
        "TableArn": table_arn(caller, job.table_name),
        "S3BucketSource": {"S3BucketOwner": job.account_id, **source},
        "CloudWatchLogGroupArn": (
            f"arn:aws:logs:{caller.region}:{caller.account_id}:log-group:/aws-dynamodb/imports:*"
        ),
        "InputFormat": job.format,
        **jobs.times(job),
    }
