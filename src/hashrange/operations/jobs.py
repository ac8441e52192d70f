"""What the operations on exports, imports and bulk operations share: ids, ARNs, tokens, pages, endings.

A page lists the jobs of the last 90 days, newest first. Its NextToken is the id of its last job in hex.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any, Final, TypeVar

from hashrange import shapes
from hashrange.errors import ServiceError, ValidationException
from hashrange.operations.context import Answer, Context, Request, check_scope
from hashrange.storage.api import Reader
from hashrange.tables.jobs.job_records import Job, JobRecords

_ARN: Final = re.compile(
    r"arn:aws[a-z-]*:dynamodb:([a-z0-9-]*):([0-9]*):table/[a-zA-Z0-9_.-]{3,255}/([a-z-]+)/([0-9a-f]+-[0-9a-f]+)"
).fullmatch
_TOKEN: Final = re.compile("(?:[0-9a-f]{2})+").fullmatch
_IS_ID: Final = re.compile("[0-9]{14,}-[0-9a-f]{8}").fullmatch
_NO_BUCKETS: Final = (
    "There are no buckets to {}: a database in memory has none unless --s3-dir (or Settings.s3_dir) names "
    "the directory whose folders are buckets, or --s3-endpoint a store that speaks S3's protocol."
)
_MILLIS: Final = 1_000
_ID_CHARS: Final = 8

J = TypeVar("J", bound=Job)


def check_buckets(context: Context, purpose: str) -> None:
    """Refuse a job where there are no buckets for its `purpose` ("export to")."""
    if not context.settings.s3_dir and not context.settings.s3_endpoint:
        raise ValidationException(_NO_BUCKETS.format(purpose))


def new_id(context: Context) -> str:
    """The id of a new job or backup, which begins with its time in milliseconds."""
    return f"{int(context.now * _MILLIS):014}-{context.new_id()[:_ID_CHARS]}"


def beginning(operation: str, request: Request, context: Context) -> dict[str, Any]:
    """The members of a new `Job` that do not depend on a table."""
    stored_request = shapes.known(operation, request)
    stored_request.pop("ClientToken", None)
    return {
        "id": new_id(context),
        "scope": context.scope,
        "region": context.caller.region,
        "account_id": context.caller.account_id,
        "token": request.get("ClientToken"),
        "request": stored_request,
        "started": context.now,
    }


def with_token(records: JobRecords[J], reader: Reader, begun: dict[str, Any]) -> J | None:
    """The last job that was started with the token of one that begins."""
    if begun["token"] is None:
        return None
    return records.by_token(reader, begun["scope"], begun["account_id"], begun["token"])


def find(
    records: JobRecords[J],
    reader: Reader,
    arn: str,
    context: Context,
    kind: str,
    missing: ServiceError,
    elsewhere: ServiceError | None = None,
) -> J:
    """The job with an ARN, of a kind that the ARN names ("export").

    Raises `ValidationException` for an ARN that is not of this kind, `AccessDeniedException` for an ARN of
    another account, `elsewhere` (by default `missing`) for one of another region, and `missing`.
    [report] ack-api-quirks DDB-EXPORT-006 and DDB-IMPORT-010; of bulk operations [assumed].
    """
    parsed = _ARN(arn)
    if parsed is None or parsed[3] != kind:
        raise ValidationException(f"Invalid {kind.replace('-', ' ').title()} ARN")
    region, account_id, _, id_ = parsed.groups()
    check_scope(context.scope, account_id, region, elsewhere or missing)
    job = records.find(reader, context.scope, id_)
    if job is None or f"/{job.table_name}/" not in arn:
        raise missing
    return job


def page(
    records: JobRecords[J],
    reader: Reader,
    context: Context,
    token: str | None,
    size: int,
    summary: Callable[[J], dict[str, Any]],
    member: str,
    is_wanted: Callable[[J], bool] = lambda job: True,
    token_bytes: int = 0,
) -> Answer:
    """The answer whose `member` has the summaries of up to `size` jobs, after the page that ended with
    `token`. Zeros fill its own token up to `token_bytes`. Raises `ValidationException` for a token that is
    none."""
    newest_first = records.newest_first(reader, context.scope, None if token is None else _id_in(token))
    found = list(islice(filter(is_wanted, newest_first), size + 1))
    answer: Answer = {member: [summary(job) for job in found[:size]]}
    if len(found) > size:
        answer["NextToken"] = found[size - 1].id.encode().ljust(token_bytes, b"\0").hex()
    return answer


def _id_in(token: str) -> str:
    """The id of the last job of the page before."""
    id_ = bytes.fromhex(token).rstrip(b"\0").decode("ascii", "replace") if _TOKEN(token) else ""
    if not _IS_ID(id_):
        # [report] ack-api-quirks DDB-EXPORT-006, for exports
        raise ValidationException(f"Invalid Request: Provided nextToken is invalid: {token}")
    return id_


def times(job: Job) -> dict[str, Any]:
    """When a job began, and ended if it has."""
    shown = {"StartTime": round(job.started, 3)}
    return shown if job.ended is None else {**shown, "EndTime": round(job.ended, 3)}


def outcome(job: Job) -> dict[str, Any]:
    """The token of a job, and why it failed, where there is a token and a failure."""
    shown = {
        "ClientToken": job.token,
        "FailureCode": job.failure_code,
        "FailureMessage": job.failure_message,
    }
    return {name: value for name, value in shown.items() if value is not None}
