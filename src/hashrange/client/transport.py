"""Answers botocore's prepared requests from a database of this process, in place of a connection.

botocore offers each request to the handlers of its ``before-send`` event before it opens a connection, and
takes the answer of the first handler that has one. `answer` makes this answer: the request and the answer
pass through `protocol` as they would over HTTP, so parameters, results, errors, paginators, waiters and
retries are botocore's own.

aiobotocore takes the same answer, but awaits its content: `Content` is bytes that can be awaited.

There is no server that does background work, so each request first does the background work that is due.
Thread-safe. Refuses to know which requests are answered (`client`, `testing.hook`).
"""

from __future__ import annotations

import zlib
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError

from hashrange import protocol
from hashrange.errors import AnswerLost
from hashrange.operations import REGISTRY
from hashrange.operations.context import Caller
from hashrange.protocol import Call, Response, Wire
from hashrange.storage.failures import StoreClosed

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest

    from hashrange.database import Database


class Content(bytes):
    """The content of an answer: bytes for botocore, and an awaitable of them for aiobotocore, which waits if
    a fault delays the answer."""

    delay_seconds = 0.0

    def __await__(self) -> Generator[Any, None, bytes]:
        seconds, self.delay_seconds = self.delay_seconds, 0.0  # it is awaited several times
        if seconds > 0:
            # Imported here, because programs without aiobotocore do not need it.
            import asyncio

            yield from asyncio.sleep(seconds).__await__()
        return self


class Headers(dict[str, str]):
    """The headers of an answer. Their names are in lower case, and are looked up in any case, as in
    botocore's own `HeadersDict`, which takes five times as long."""

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.lower())

    def __setitem__(self, name: str, value: str) -> None:
        super().__setitem__(name.lower(), value)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name.lower())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(name.lower())

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name.lower(), default)

    def copy(self) -> Headers:
        return Headers(self)


class Answer(AWSResponse):
    """An answer that did not come from a connection."""

    def __init__(self, url: str, status: int, headers: Headers, content: bytes) -> None:
        # (botocore's own __init__ would copy the headers)
        self.url = url
        self.status_code = status
        self.headers = headers  # type: ignore[assignment]
        self.raw = None
        self.content_read = Content(content)

    @property
    def content(self) -> Content:
        """The whole body."""
        return self.content_read


_AWAITS: Final = "aiobot"  # aiobotocore and aioboto3 say so in their User-Agent

_COUNTED_HEADERS: Final = (b"amz-sdk-request", b"user-agent")

_WIRE: Final = Wire(region=Caller().region, account_id=Caller().account_id, operations=REGISTRY)


def answer(database: Database, request: AWSPreparedRequest, caller: Caller) -> Answer:
    """The answer of `database` to a request of `caller`.

    Raises `StoreClosed` for a database that was closed: this error is not an answer, so botocore passes it to
    the program unchanged, and does not retry. Raises ConnectionClosedError if a fault loses the answer.
    """
    delays: list[float] | None = None
    # Only a fault delays an answer.
    if database.observers.active is not None and _AWAITS in str(request.headers.get("User-Agent")):
        delays = []
    try:
        response = _respond(database, request, caller, delays)
    except AnswerLost as error:
        raise ConnectionClosedError(error=error, request=request, endpoint_url=request.url) from error
    answer_ = Answer(request.url or "", response.status, _headers(response), response.body)
    if delays:
        answer_.content_read.delay_seconds = sum(delays)
    return answer_


def _headers(response: Response) -> Headers:
    """Like `protocol.response_headers`, in the form of botocore."""
    body = response.body
    headers = Headers({
        "x-amzn-requestid": (response.request_id or protocol.request_id()).decode("latin-1"),
        "x-amz-crc32": str(zlib.crc32(body)),
        "content-length": str(len(body)),
    })  # fmt: skip
    if response.content_type:
        headers["content-type"] = response.content_type.decode("latin-1")
    for name, value in response.headers:
        headers[name.decode("latin-1")] = value.decode("latin-1")
    return headers


def _respond(
    database: Database, request: AWSPreparedRequest, caller: Caller, delays: list[float] | None
) -> Response:
    """The answer in the form of the wire. If a fault delays it, the seconds are appended to `delays`; without
    this list the thread waits."""
    # Only the header that names the operation is read. The sender is known, the request is JSON like all
    # requests of a DynamoDB client, and no other header has a meaning here.
    sent_headers = request.headers
    headers = {
        b"content-type": protocol.JSON_TYPE,
        b"x-amz-target": _bytes(sent_headers.get("X-Amz-Target", b"")),
    }
    # The JSON protocol's serializer makes text or bytes, never a file.
    body = _bytes(request.body or b"")  # type: ignore[arg-type]
    if database.observers.bills:
        heads = {name: _bytes(sent_headers.get(name.decode(), b"")) for name in _COUNTED_HEADERS}
        caller = protocol.attempted(caller, heads)
    outcome = _WIRE.read(b"POST", b"/", headers, body, caller=caller)
    if not isinstance(outcome, Call):
        return outcome
    try:
        database.tend()
        wait = None if delays is None else delays.append
        result = database.perform(outcome, wait)
    except (AnswerLost, StoreClosed):
        raise
    except Exception as error:
        return protocol.answer(None, error, outcome.form, outcome.operation)
    return protocol.answer(result, None, outcome.form, outcome.operation)


def _bytes(text: str | bytes) -> bytes:
    if type(text) is bytes:
        return text
    return text.encode() if isinstance(text, str) else bytes(text)
