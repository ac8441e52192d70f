"""The data on the admin plane: DynamoDB's operations, for pages and for tools of operators.

    POST /v1/data/{operation}?scope=…   a request in DynamoDB's JSON, answered in DynamoDB's JSON

An error is answered as DynamoDB answers it: its status, `__type` and `message`. `scope` is the part before
the name in the full name of a table (`/v1/tables`), where accounts or regions are separate. Requests run as
on the data plane: in turns on the event loop, and on a thread if they take long. They are counted in
/metrics.
"""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any, Final

import msgspec
import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hashrange import limits, protocol
from hashrange.database import Caller
from hashrange.errors import SerializationException, ServiceError, ValidationException
from hashrange.operations import REGISTRY
from hashrange.operations.context import OPERATOR, scope_of
from hashrange.operations.execution import Asked
from hashrange.pace import TurnOver
from hashrange.server.admin.application import Endpoint, check_role, read_body, read_query, subject_of
from hashrange.server.admin.port import Subject
from hashrange.server.admin.roles import READ, WRITE
from hashrange.server.metrics import now as latency_now

READ_ONLY: Final = "the server was started with --console-read-only, so nothing can be changed here"

_SCOPE: Final = re.compile(r"[\w*-]*(/[\w*-]*)?", re.ASCII)


def writes(operation: str, sent: dict[str, Any]) -> bool:
    """Whether a request may change something. An unknown operation does not."""
    entry = REGISTRY.get(operation)
    if entry is None:
        return False
    try:
        return entry.is_write(sent)
    except (AttributeError, KeyError, TypeError):
        # Statements are missing or no text, so the database will refuse the request.
        return entry.writes


def caller_of(subject: Subject, scope: str) -> Caller:
    """A caller whose tables are those of `scope`; "*" in it stands for all, as in the names of tables. What
    the scope does not name is the server's own: its --account-id and --region. Raises
    `ValidationException` for what is no scope."""
    if not _SCOPE.fullmatch(scope):
        raise ValidationException(f"The scope {scope!r} is not ACCOUNT/REGION, as in 123456789012/eu-west-1.")
    account, _, region = scope.replace("*", "").partition("/")
    anyone = subject.plane.wire.anyone
    return Caller(region or anyone.region, account or anyone.account_id, OPERATOR)


def full_scope(subject: Subject, scope: str) -> str:
    """The scope that the full names of these tables have (`GET /v1/tables`); "" where all callers share them.
    Raises `ValidationException`."""
    caller = caller_of(subject, scope)
    return scope_of(caller.account_id, caller.region, subject.database.settings)


async def ask(subject: Subject, operation: str, sent: bytes, scope: str = "") -> bytes:
    """The answer to a request of DynamoDB's API. Raises what `Database.execute` raises.

    It is counted in /metrics: it takes the same turns and the same engine as requests of programs, so their
    latencies could not be explained without it.
    """
    metrics = subject.plane.metrics
    began = latency_now()
    failure: Exception | None = None
    try:
        return await _answered(subject, operation, sent, scope)
    except Exception as error:
        failure = error
        raise
    finally:
        # (the name of an operation that does not exist must not become a series of the metrics)
        if operation in REGISTRY:
            metrics.answered(operation, latency_now() - began, failure)
        elif isinstance(failure, ServiceError):
            metrics.responded(failure.status, failure.code)


async def _answered(subject: Subject, operation: str, sent: bytes, scope: str) -> bytes:
    database = subject.database
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[bytes] = loop.create_future()
    caller = caller_of(subject, scope)

    def done(body: Any, error: Exception | None) -> None:
        if outcome.done():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(body)

    def execution() -> Asked:
        return Asked(operation, _request(sent), caller, done, protocol.encode_result)

    try:
        database.submit(execution())
    except TurnOver:
        # The request may have been normalised in part, so it is read again.
        again = execution()
        database.start_aside(lambda: database.run_aside(again))
    return await outcome


def _request(sent: bytes) -> dict[str, Any]:
    try:
        request = orjson.loads(sent)
    except orjson.JSONDecodeError:
        raise SerializationException from None
    if not isinstance(request, dict):
        raise SerializationException
    return request


class DataQuery(msgspec.Struct):
    """The query.

    scope: the part before the name in the full name of a table, ACCOUNT/REGION, where accounts or regions are
        separate.
    """

    scope: str = ""


async def _answer(request: Request) -> Annotated[Response, dict[str, Any]]:
    operation = request.path_params["operation"]
    sent = await read_body(request, limits.REQUEST_BODY_BYTES_MAX)
    subject = subject_of(request)
    try:
        if writes(operation, _request(sent)):
            if request.app.state.door.read_only:
                raise HTTPException(403, READ_ONLY)
            check_role(request, WRITE)
        answer = await ask(subject, operation, sent, read_query(request, DataQuery).scope)
    except HTTPException:
        raise
    except Exception as error:
        failure = protocol.encode_error(error, operation=operation)
        return Response(failure.body, failure.status, media_type="application/json")
    return Response(answer or b"{}", media_type="application/json")


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/v1/data/{operation}",
        "Perform an operation of DynamoDB's API: the request, the answer and the errors are DynamoDB's. An "
        "operation that changes something needs the role write.",
        _answer,
        takes=dict[str, Any],
        query=DataQuery,
        role=READ,
    ),
)
