"""StartBulkPutItems: put the items in the objects of a bucket into an existing table.

The request stores the operation; the background work opens the buckets and writes the items. The table has to
be ACTIVE, or UPDATING without building an index, and not a member of a global table.

Source: API reference, StartBulkPutItems; Developer Guide, "Bulk put items considerations, quotas, and
permissions".
"""

from __future__ import annotations

from typing import Final

from hashrange import shapes
from hashrange.errors import (
    IdempotentParameterMismatchException,
    ResourceInUseException,
    ValidationException,
)
from hashrange.limits import BULK_TOKEN_SECONDS
from hashrange.operations.bulk import bulk_description
from hashrange.operations.context import Answer, Context, Request, WriteBody, table_name
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.jobs.bulk import bulk_records
from hashrange.tables.jobs.bulk.bulk_records import BulkPut

# [assumed] the words
_NO_OUTPUT: Final = "Invalid Request: S3Bucket must be specified in OutputS3Configuration"
_NO_KEY: Final = "Invalid Request: KMS Key Id is not supported for this encryption type"
_GLOBAL: Final = "Bulk put items is not supported for global tables"
_OTHER_REQUEST: Final = "The ClientToken was used by a request with other parameters"
_NO_BUCKETS: Final = (
    "There are no buckets to read from: a database in memory has none unless --s3-dir (or Settings.s3_dir) "
    "names the directory whose folders are buckets, or --s3-endpoint a store that speaks S3's protocol."
)
_MILLIS: Final = 1_000
_ID_CHARS: Final = 8


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of a StartBulkPutItems."""
    output = request["OutputS3Configuration"]
    if output.get("S3Bucket") is None:
        raise ValidationException(_NO_OUTPUT)
    if output.get("S3SseKmsKeyId") is not None and output.get("S3SseAlgorithm") != "KMS":
        raise ValidationException(_NO_KEY)
    if not context.settings.s3_dir and not context.settings.s3_endpoint:
        raise ValidationException(_NO_BUCKETS)
    name = table_name(request["TableName"], context.scope)
    now, caller, token = context.now, context.caller, request.get("ClientToken")
    id_ = f"{int(now * _MILLIS):014}-{context.new_id()[:_ID_CHARS]}"
    stored_request = shapes.known("StartBulkPutItems", request)
    stored_request.pop("ClientToken", None)

    def body(txn: Transaction) -> Answer:
        table = catalog.open_any(txn, name, context.scope, caller.region)
        same = _earlier(txn, context, token, stored_request)
        if same is not None:
            return {"BulkOperationDescription": bulk_description.describe(txn, same, caller)}
        _check(table)
        job = BulkPut(
            id=id_,
            scope=context.scope,
            region=caller.region,
            account_id=caller.account_id,
            token=token,
            request=stored_request,
            table_name=table.name,
            table_id=table.id,
            started=now,
        )
        bulk_records.save(txn, job)
        bulk_records.keep_token(txn, job)
        return {"BulkOperationDescription": bulk_description.describe(txn, job, caller)}

    return body


def _check(table: Table) -> None:
    """Refuse a table that is not ready for a bulk operation."""
    if table.replicas:
        raise ValidationException(_GLOBAL)
    if table.status not in ("ACTIVE", "UPDATING") or table.has_changing_index():
        # [assumed] the words
        raise ResourceInUseException(f"Table is not ready for a bulk operation: {table.name}")


def _earlier(reader: Reader, context: Context, token: str | None, request: Request) -> BulkPut | None:
    """The operation that was started with the same token in the last eight hours.

    Raises `IdempotentParameterMismatchException` if its request was different.
    """
    if token is None:
        return None
    earlier = bulk_records.by_token(reader, context.scope, context.caller.account_id, token)
    if earlier is None or context.now >= earlier.started + BULK_TOKEN_SECONDS:
        return None
    if earlier.request != request:
        raise IdempotentParameterMismatchException(_OTHER_REQUEST)
    return earlier
