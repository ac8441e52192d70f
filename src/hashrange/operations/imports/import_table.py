"""ImportTable: a new table with the items in the objects of a bucket.

The request only stores the import; the background work checks whether the bucket exists, and whether another
import has made the table meanwhile. The service does the same, and requests need not wait for S3.

Source: API reference, ImportTable; ack-api-quirks DDB-IMPORT-009, 017 to 019.
"""

from __future__ import annotations

from typing import Any, Final

from hashrange import shapes
from hashrange.errors import (
    ImportConflictException,
    LimitExceededException,
    ResourceInUseException,
    ValidationException,
)
from hashrange.limits import IMPORT_TOKEN_SECONDS, IMPORTS_MAX
from hashrange.operations.context import Answer, Context, Request, WriteBody
from hashrange.operations.imports import import_description
from hashrange.operations.tables import create_table
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.jobs.imports import import_records
from hashrange.tables.jobs.imports.import_records import Import

_CONFLICT: Final = "Import conflict: Duplicate request detected with conflicting parameters"
# [assumed] the words
_TOO_MANY: Final = f"Subscriber limit exceeded: There is a limit of {IMPORTS_MAX} imports in progress"
_NO_BUCKETS: Final = (
    "There are no buckets to import from: a database in memory has none unless --s3-dir (or Settings.s3_dir) "
    "names the directory whose folders are buckets, or --s3-endpoint a store that speaks S3's protocol."
)
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
_MILLIS: Final = 1_000
_ID_CHARS: Final = 8


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of an ImportTable."""
    _check_options(request)
    parameters = request["TableCreationParameters"]
    build = create_table.check({name: parameters[name] for name in _MEMBERS if name in parameters}, context)
    if not context.settings.s3_dir and not context.settings.s3_endpoint:
        raise ValidationException(_NO_BUCKETS)
    token = request.get("ClientToken")
    table = build(lambda: 0)
    now, caller = context.now, context.caller
    kept = shapes.known("ImportTable", request)
    kept.pop("ClientToken", None)
    job = Import(
        id=f"{int(now * _MILLIS):014}-{context.new_id()[:_ID_CHARS]}",
        scope=context.scope,
        region=caller.region,
        account_id=caller.account_id,
        token=token,
        request=kept,
        table_name=table.name,
        table_id=table.id,
        started=now,
        table=table,
    )

    def body(txn: Transaction) -> Answer:
        # The table is looked for before the token. [report] ack-api-quirks DDB-IMPORT-017
        if catalog.find(txn, job.table_name, context.scope) is not None and not _is_replay(txn, job, now):
            raise ResourceInUseException(f"Table already exists: {job.table_name}")
        same = _earlier(txn, job, now)
        if same is None:
            imports = import_records.newest_first(txn, job.scope)
            if sum(kept.status == "IN_PROGRESS" for kept in imports) >= IMPORTS_MAX:
                raise LimitExceededException(_TOO_MANY)
            import_records.save(txn, job)
            import_records.keep_token(txn, job)
        return {"ImportTableDescription": import_description.describe(same or job, caller)}

    return body


def _check_options(request: Request) -> None:
    options = request.get("InputFormatOptions")
    if options is not None and options.get("Csv") is not None and request["InputFormat"] != "CSV":
        raise ValidationException(
            "Invalid Request: Unsupported InputFormatOptions for the given input format: "
            f"{request['InputFormat']}."
        )


def _earlier(reader: Reader, job: Import, now: float) -> Import | None:
    """The import that was started with the same token, within eight hours of its end.

    Raises `ImportConflictException` if its request was different. The service ignores a different prefix
    ([report] ack-api-quirks DDB-IMPORT-017); it is unknown what else it ignores.
    """
    if job.token is None:
        return None
    earlier = import_records.by_token(reader, job.scope, job.account_id, job.token)
    if earlier is None or (earlier.ended is not None and now >= earlier.ended + IMPORT_TOKEN_SECONDS):
        return None
    if _compared(earlier.request) != _compared(job.request):
        raise ImportConflictException(_CONFLICT)
    return earlier


def _is_replay(reader: Reader, job: Import, now: float) -> bool:
    """Whether the request is repeated while its import is in progress."""
    earlier = _earlier(reader, job, now)
    return earlier is not None and earlier.status == "IN_PROGRESS"


def _compared(request: dict[str, Any]) -> dict[str, Any]:
    source = {name: value for name, value in request["S3BucketSource"].items() if name != "S3KeyPrefix"}
    return {**request, "S3BucketSource": source}
