"""Answers botocore's prepared requests by a database of this process, in the place of a connection.

botocore offers each request to the handlers of its ``before-send`` event before it opens a connection, and
takes the answer of the first handler that has one. `answer` makes this answer: the request and the answer
pass through `protocol` as they would over HTTP, so parameters, results, errors, paginators, waiters and
retries are botocore's own.

aiobotocore takes the same answer, but awaits its content: `Content` is bytes that can be awaited.

There is no server that does background work, so each request first does the background work that is due.
Thread-safe. Refuses to know which requests it is asked to answer (`client`, `testing.hook`).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, cast

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError

from hashrange import protocol
from hashrange.errors import AnswerLost
from hashrange.operations import REGISTRY
from hashrange.operations.context import Caller
from hashrange.protocol import Call, Response, Wire
from hashrange.storage.api import StoreClosed

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest

    from hashrange.database import Database


class Content(bytes):
    """The content of an answer: bytes for botocore, and an awaitable of them for aiobotocore, which waits if
    a fault holds the answer back."""

    delay_seconds = 0.0

    def __await__(self) -> Generator[Any, None, bytes]:
        seconds, self.delay_seconds = self.delay_seconds, 0.0  # it is awaited several times
        if seconds > 0:
            # Imported here, because programs without aiobotocore need not load it.
            import asyncio

            yield from asyncio.sleep(seconds).__await__()
        return self


class Answer(AWSResponse):
    """An answer without a connection behind it."""

    def __init__(self, url: str, status: int, headers: dict[str, str], content: bytes) -> None:
        super().__init__(url, status, cast(Any, headers), None)
        self.content_read = Content(content)

    @property
    def content(self) -> Content:
        """The whole body."""
        return self.content_read


_AWAITS: Final = "aiobot"  # aiobotocore and aioboto3 say so in their User-Agent

_WIRE: Final = Wire(region=Caller().region, account_id=Caller().account_id, operations=REGISTRY)


_HEADERS: Final = ((b"content-type", "Content-Type"), (b"x-amz-target", "X-Amz-Target"))


def answer(database: Database, request: AWSPreparedRequest, caller: Caller) -> Answer:
    """The answer of `database` to a request of `caller`.

    Raises `StoreClosed` for a database that was closed: this error is no answer, so botocore passes it on to
    the program unchanged, and does not try again. Raises ConnectionClosedError if a fault loses the answer.
    """
    delays: list[float] | None = [] if _AWAITS in str(request.headers.get("User-Agent")) else None
    try:
        response = _respond(database, request, caller, delays)
    except AnswerLost as error:
        raise ConnectionClosedError(error=error, request=request, endpoint_url=request.url) from error
    headers = {
        name.decode("latin-1"): value.decode("latin-1") for name, value in protocol.response_headers(response)
    }
    headers["Content-Length"] = str(len(response.body))
    made = Answer(request.url or "", response.status, headers, response.body)
    if delays:
        made.content_read.delay_seconds = sum(delays)
    return made


def _respond(
    database: Database, request: AWSPreparedRequest, caller: Caller, delays: list[float] | None
) -> Response:
    """The answer in the form of the wire. If a fault holds it back, the seconds are added to `delays`;
    without a list for them, the thread waits."""
    # The two headers that say what a request is. Its sender is known, and no other header has a meaning here.
    given = request.headers
    headers = {name: _bytes(given.get(named, b"")) for name, named in _HEADERS}
    # The JSON protocol's serializer makes text or bytes, never a file.
    body = _bytes(request.body or b"")  # type: ignore[arg-type]
    if database.interest.costs:
        told = _bytes(request.headers.get("amz-sdk-request", b""))
        caller = protocol.attempted(caller, {b"amz-sdk-request": told})
    outcome = _WIRE.read(b"POST", b"/", headers, body, caller=caller)
    if not isinstance(outcome, Call):
        return outcome
    try:
        database.tend()
        wait = None if delays is None else delays.append
        result = database.execute(outcome.operation, outcome.request, outcome.caller, wait)
    except (AnswerLost, StoreClosed):
        raise
    except Exception as error:
        return protocol.answer(None, error, outcome.form, outcome.operation)
    return protocol.answer(result, None, outcome.form, outcome.operation)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)
