"""The wire protocol of DynamoDB as pure functions: bytes in, bytes out, no sockets.

`Wire.read` turns method, target, headers and body of an HTTP request into a `Call` for the database, or
into the `Response` that answers it at once; `encode_result` and `encode_error` turn an outcome into an
answer's body. Headers are a mapping of lower-case names to values, all bytes.

The order of checks: method and path, content encoding, content type, JSON, target, authentication. In
DynamoDB different components do these checks, so refusals have different forms:

    GET /                          200, `healthy: dynamodb.<region>.amazonaws.com `; for browsers, a page
    OPTIONS with an Origin         200, the CORS preflight of a browser
    POST of a form to STS          STS's answer, in XML, by a ring (`rings.Forms`)
    other methods, paths, types    404, `<UnknownOperationException/>`
    the rest                       the JSON error envelope of `hashrange.errors`

The caller's region and account are read from the credential, for example
`AKID/20260101/eu-west-1/dynamodb/aws4_request`. Any access key is accepted, and no signature is verified,
unless the database's observers have a gate (`rings.Gate`).

Refuses to know: connections, HTTP framing (`hashrange.server`), what an operation does.
"""

from __future__ import annotations

import logging
import os
import re
import zlib
from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
import orjson

from hashrange import errors
from hashrange.clock import SystemClock
from hashrange.credentials import MISSING_TOKEN, check_query_parameters, header_parameters
from hashrange.observing.observers import Observers
from hashrange.operations.context import NOTHING, Caller
from hashrange.operations.execution import Execution
from hashrange.pace import codings, texts
from hashrange.storage.failures import CommitError

JSON_TYPE: Final = b"application/x-amz-json-1.0"
_PLAIN_JSON_TYPE: Final = b"application/json"
_FORM_TYPE: Final = b"application/x-www-form-urlencoded"
_XML_TYPE: Final = b"text/xml"
_TARGET: Final = b"DynamoDB_20120810."
_STREAMS_TARGET: Final = b"DynamoDBStreams_20120810."
_STREAMS_OPERATIONS: Final = frozenset({"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"})

_UNKNOWN_OPERATION: Final = b"<UnknownOperationException/>\n"
_CALLERS_CACHED_MAX: Final = 10_000
_AUTHORIZATION_CACHED_BYTES_MAX: Final = 2_048

# Compiled code reads a final name at once; an attribute of a module it has to look up.
_loads: Final = orjson.loads
_dumps: Final = orjson.dumps

_log = logging.getLogger(__name__)

Headers = dict[bytes, bytes]

LOWER_NAMES: Final = {
    b"Accept": b"accept", b"accept": b"accept", b"Accept-Encoding": b"accept-encoding",
    b"accept-encoding": b"accept-encoding", b"amz-sdk-invocation-id": b"amz-sdk-invocation-id",
    b"amz-sdk-request": b"amz-sdk-request", b"Authorization": b"authorization",
    b"authorization": b"authorization", b"Connection": b"connection", b"connection": b"connection",
    b"Content-Length": b"content-length", b"content-length": b"content-length",
    b"Content-Type": b"content-type", b"content-type": b"content-type", b"Date": b"date", b"date": b"date",
    b"Host": b"host", b"host": b"host", b"User-Agent": b"user-agent", b"user-agent": b"user-agent",
    b"X-Amz-Api-Version": b"x-amz-api-version", b"x-amz-api-version": b"x-amz-api-version",
    b"X-Amz-Date": b"x-amz-date", b"x-amz-date": b"x-amz-date",
    b"X-Amz-Security-Token": b"x-amz-security-token", b"x-amz-security-token": b"x-amz-security-token",
    b"X-Amz-Target": b"x-amz-target", b"x-amz-target": b"x-amz-target",
    b"X-Amz-User-Agent": b"x-amz-user-agent", b"x-amz-user-agent": b"x-amz-user-agent",
}  # fmt: skip
"""The names of the headers that SDKs send, as they spell them. Compiled modules share their constants, so the
values are the very objects by which headers are looked up below, and need not be compared with them."""


_NOBODY: Final = Caller()


class Form(msgspec.Struct, frozen=True, gc=False):
    """The form of an answer: its content type, and headers beside the usual ones."""

    content_type: bytes = JSON_TYPE
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Call(Execution):
    """A call of an API operation in an HTTP request. `form` is the form of the answer; None is the usual
    form. It has no operation until `Wire.read_into` has read it."""

    __slots__ = ("form",)

    def __init__(self) -> None:
        super().__init__("", NOTHING, _NOBODY)
        self.form: Form | None = None


class Response(msgspec.Struct, frozen=True, gc=False):
    """An answer. `headers` are its headers without Content-Type and those that `response_headers` adds.

    `error` is the code of its error, or "". `request_id` is set if the log names the id already.
    """

    status: int
    body: bytes
    content_type: bytes = JSON_TYPE
    headers: tuple[tuple[bytes, bytes], ...] = ()
    error: str = ""
    request_id: bytes = b""


ADMIN_HEADER: Final = b"X-Hashrange-Admin"
"""The header of the answer to GET / that says where the admin plane is."""
NO_ADMIN: Final = "none"


class Wire:
    """Reads requests. One object serves all connections; it caches callers, and nothing else of a request.

    `region` and `account_id` are for callers whose credentials name none. `operations` are the names of the
    operations that exist; without it every name passes, and the database refuses unknown ones. `observers`
    are the database's. `admin_url` is where the admin plane listens, which GET / tells commands. `page`
    makes the HTML for browsers, from the Host header of their request.
    """

    __slots__ = (
        "_account_id",
        "_admin",
        "_callers",
        "_last",
        "_observers",
        "_operations",
        "_page",
        "_region",
        "_targets",
    )

    def __init__(
        self,
        *,
        region: str,
        account_id: str,
        operations: Container[str] | None = None,
        observers: Observers | None = None,
        admin_url: str | None = None,
        page: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._page = page
        self._region = region
        self._admin = (ADMIN_HEADER, (admin_url or NO_ADMIN).encode())
        self._account_id = account_id
        self._operations = operations
        self._observers = observers
        self._callers: dict[bytes, Caller] = {}
        # The beginning of the header that was read last, up to the signature; at first one that none has.
        self._last: tuple[bytes, Caller] = (b"\0", Caller())
        self._targets: dict[bytes, str] = {}  # a cache, for operations that exist

    @property
    def anyone(self) -> Caller:
        """The caller whose credentials name no region and no account."""
        return Caller(self._region, self._account_id)

    @property
    def identifies(self) -> bool:
        """Whether the senders of requests are identified by their signatures."""
        gate = None if self._observers is None else self._observers.gate
        return gate is not None and gate.identifies

    def read(
        self,
        method: bytes,
        target: bytes,
        headers: Headers,
        body: bytes | bytearray,
        *,
        caller: Caller | None = None,
        sent: bytes | bytearray | None = None,
    ) -> Call | Response:
        """As `read_into`, with a new call."""
        call = Call()
        return self.read_into(call, method, target, headers, body, caller=caller, sent=sent) or call

    def read_into(
        self,
        call: Call,
        method: bytes,
        target: bytes,
        headers: Headers,
        body: bytes | bytearray,
        *,
        caller: Caller | None = None,
        sent: bytes | bytearray | None = None,
    ) -> Response | None:
        """Read the call in a request; or return the answer to a request that is refused or has no call.

        With `caller` the request needs no credentials, because its sender is known already. `sent` is the
        body before it was decoded, which the signature covers.
        """
        if method != b"POST" or (target != b"/" and target.partition(b"?")[0] != b"/"):
            return self._read_other(method, target, headers)
        content_type = headers.get(b"content-type", b"")
        form = None
        if content_type != JSON_TYPE or b"origin" in headers:
            content_type = content_type.partition(b";")[0].strip().lower()
            if not content_type and not body:
                # [report] dynalite's recordings: a body has a type; nothing at all is answered as JSON is.
                content_type = _PLAIN_JSON_TYPE
            if content_type != JSON_TYPE and content_type != _PLAIN_JSON_TYPE:
                if content_type == _FORM_TYPE:
                    return self._read_form(method, target, headers, body)
                return _unknown_operation(method, target, headers)
            form = Form(content_type, _cors_headers(headers))
        target_header = headers.get(b"x-amz-target", b"")
        try:
            if not body and caller is None:
                # [report] Alternator's authors: who sends nothing is asked first who he is; dynalite's
                # recordings: if he asks for an operation that exists.
                self._operation(target_header)
                self._caller(target, headers)
            # (most texts are small: `texts` is not compiled)
            request = _loads(body) if len(body) <= texts.WINDOW_BYTES else texts.loads(body)
            if type(request) is not dict:
                raise errors.SerializationException()
            operation = self._targets.get(target_header) or self._operation(target_header)
            if caller is None:
                caller = self._caller(target, headers)
            observers = self._observers
            if observers is not None and observers.heads:
                if observers.gate is not None:
                    caller = observers.gate.admit(caller, method, target, headers, sent or body)
                caller = attempted(caller, headers)
        except ValueError:
            # DynamoDB's answer to text that is not JSON has no message.
            return encode_error(errors.SerializationException(), form)
        except Exception as error:
            return encode_error(error, form, target_header.decode("latin-1"))
        call.operation = operation
        call.request = request
        call.caller = caller
        call.form = form
        return None

    def read_encoded(
        self,
        call: Call,
        method: bytes,
        target: bytes,
        headers: Headers,
        body: bytes | bytearray,
        bytes_max: int,
    ) -> Response | None:
        """Like `read_into`, for a request that may have a Content-Encoding. It may take long. The decoded
        body has at most `bytes_max`.

        [report] measured on the service: gzip, also of several members, and deflate are read. What cannot be
        decoded is answered with status 500; its words are [assumed].
        """
        coding = headers.get(b"content-encoding")
        if coding is None or method != b"POST" or target.partition(b"?")[0] != b"/":
            return self.read_into(call, method, target, headers, body)
        try:
            content = codings.decoded(coding, body, bytes_max)
        except codings.TooLargeError:
            return Response(413, b"", b"", _cors_headers(headers))
        except ValueError as error:
            named, refused = request_id(), errors.InternalServerError(errors.INTERNAL)
            fields = {"request_id": named.decode(), "problem": str(error)}
            _log.warning("request with a body that cannot be decoded", extra={"fields": fields})
            answer = _dumps(refused.wire())
            return Response(500, answer, JSON_TYPE, _cors_headers(headers), refused.code, named)
        return self.read_into(call, method, target, headers, content, sent=body)

    def _read_form(
        self, method: bytes, target: bytes, headers: Headers, body: bytes | bytearray
    ) -> Response:
        """The answer to a form: programs ask STS who they are, or for a role, before they use the data."""
        # Imported here, because most servers never get a form.
        from hashrange import rings

        gate = self._observers.gate if self._observers is not None else None
        sent = rings.Sent(method, target, headers, body)
        caller = partial(self._caller, target, headers)
        try:
            answers: rings.Forms | None = rings.rings().find("forms")
        except rings.Missing as error:
            named, refused = request_id(), errors.InternalServerError(str(error))
            answer = _dumps(refused.wire())
            return Response(500, answer, JSON_TYPE, _cors_headers(headers), refused.code, named)
        answered = None
        if answers is not None:
            answered = answers(sent, caller, gate, SystemClock().now, request_id())
        if answered is None:
            return _unknown_operation(method, target, headers)
        if answered.error:
            fields = {"request_id": answered.request_id.decode(), "error": answered.error}
            _log.warning("request to STS rejected", extra={"fields": fields})
        return Response(
            answered.status,
            answered.body,
            _XML_TYPE,
            _cors_headers(headers),
            answered.error,
            answered.request_id,
        )

    def _operation(self, target: bytes) -> str:
        if target.startswith(_TARGET):
            name = target[len(_TARGET) :].decode("latin-1")
            known = name not in _STREAMS_OPERATIONS
        elif target.startswith(_STREAMS_TARGET):
            name = target[len(_STREAMS_TARGET) :].decode("latin-1")
            known = name in _STREAMS_OPERATIONS
        else:
            raise errors.UnknownOperationException()
        if not known or (self._operations is not None and name not in self._operations):
            raise errors.UnknownOperationException()
        if self._operations is not None:
            self._targets[target] = name
        return name

    def _caller(self, target: bytes, headers: Headers) -> Caller:
        authorization = headers.get(b"authorization")
        if len(target) > 1 and b"?" in target:
            query = target.partition(b"?")[2].decode("latin-1")
            parameters = dict(parse_qsl(query, keep_blank_values=True))
            if "X-Amz-Algorithm" in parameters:
                if authorization is not None:
                    raise errors.InvalidSignatureException(_TWO_AUTHORIZATIONS)
                return self._scope_caller(query_credential(parameters))
        if authorization is None:
            raise errors.MissingAuthenticationTokenException(MISSING_TOKEN)
        # Except for the signature, this header is the same in all requests that a client makes on one day.
        dated = b"x-amz-date" in headers or b"date" in headers
        last, last_caller = self._last
        if dated and authorization.startswith(last) and authorization[len(last) :].isalnum():
            return last_caller
        signed, name, signature = authorization.rpartition(b"Signature=")
        cacheable = dated and signature.isalnum()
        if cacheable:
            caller = self._callers.get(signed)
            if caller is not None:
                self._last = signed + name, caller
                return caller
        caller = self._scope_caller(header_credential(authorization, headers))
        if cacheable and len(signed) <= _AUTHORIZATION_CACHED_BYTES_MAX:
            if len(self._callers) >= _CALLERS_CACHED_MAX:
                self._callers.clear()
            self._callers[signed] = caller
        return caller

    def _scope_caller(self, credential: str) -> Caller:
        parts = credential.split("/")
        access_key = parts[0]
        region = parts[-3] if len(parts) >= 5 and _REGION.fullmatch(parts[-3]) else self._region
        account_id = access_key if _ACCOUNT_ID.fullmatch(access_key) else self._account_id
        return Caller(region, account_id, access_key)

    def _read_other(self, method: bytes, target: bytes, headers: Headers) -> Response:
        if method == b"OPTIONS" and b"origin" in headers:
            return _preflight(headers)
        path = target.partition(b"?")[0]
        if method in (b"GET", b"HEAD") and path == b"/":
            if self._page is not None and b"text/html" in headers.get(b"accept", b""):
                shown = self._page(headers.get(b"host", b""))
                return Response(200, shown, b"text/html; charset=utf-8", _PAGE_HEADERS)
            healthy = f"healthy: dynamodb.{self._region}.amazonaws.com ".encode()
            return Response(200, healthy, b"text/plain", (*_cors_headers(headers), self._admin))
        if method == b"GET" and path == b"/favicon.ico":
            # Every browser asks for it, so it is nothing to log.
            return Response(404, b"", b"")
        return _unknown_operation(method, target, headers)


_PAGE_HEADERS: Final = (
    (b"Vary", b"Accept"),
    (b"Content-Security-Policy", b"default-src 'none'; style-src 'unsafe-inline'; img-src data:"),
)
_REGION: Final = re.compile(r"[a-z0-9-]{1,64}")
_ACCOUNT_ID: Final = re.compile(r"[0-9]{12}")


_AGENT_BYTES_MAX: Final = 512
_ATTEMPT: Final = re.compile(rb"\battempt=([0-9]{1,4})\b")


def attempted(caller: Caller, headers: Headers) -> Caller:
    """The caller with its User-Agent, and with the attempt that its SDK counts in the header
    amz-sdk-request."""
    agent = headers.get(b"user-agent", b"")[:_AGENT_BYTES_MAX].decode("latin-1")
    match = _ATTEMPT.search(headers.get(b"amz-sdk-request", b""))
    return caller._replace(attempt=1 if match is None else int(match[1]), agent=agent)


# -- Signature Version 4: only the parts that name the caller ---------------------------------------------

_TWO_AUTHORIZATIONS: Final = (
    "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."
)


def header_credential(authorization: bytes, headers: Headers) -> str:
    """The credential that an Authorization header names. Raises as `header_parameters`."""
    return header_parameters(authorization, headers)["Credential"]


def query_credential(parameters: Mapping[str, str]) -> str:
    """The credential that the query string of a presigned request names. Raises
    IncompleteSignatureException."""
    check_query_parameters(parameters)
    return parameters["X-Amz-Credential"]


# -- Answers ----------------------------------------------------------------------------------------------


_USUAL: Final = Form()


def encode_result(result: dict[str, Any]) -> bytes:
    """The body of a successful answer."""
    if result:
        return _dumps(result)
    return b"" if result is NOTHING else b"{}"


_REFUSALS: Final = frozenset({
    "ExpiredTokenException", "IncompleteSignatureException", "InvalidSignatureException",
    "MissingAuthenticationTokenException", "UnknownOperationException", "UnrecognizedClientException",
})  # fmt: skip
"""Errors of clients that are not made or not set up for this server. They are logged for its operator."""
_SHOWN_BYTES_MAX: Final = 200


def encode_error(error: Exception, form: Form | None = None, operation: str = "") -> Response:
    """The answer for `error`.

    An exception that is no `ServiceError` is a fault of this program: it is logged with its traceback, and
    the answer is an InternalServerError without details. Faults and refusals are logged with the request's
    id, by which a user can ask the operator about an answer.
    """
    fault = None
    if not isinstance(error, errors.ServiceError):
        fault, error = error, errors.InternalServerError(errors.INTERNAL)
    code = error.code
    named = b""
    if error.status >= 500 or code in _REFUSALS:
        named = request_id()
        fields = {"request_id": named.decode(), "operation": operation[:_SHOWN_BYTES_MAX], "error": code}
        if fault is not None:
            _log.error("internal error", exc_info=fault, extra={"fields": fields})
        elif error.status >= 500:
            # A store that refuses writes has logged this itself, once for thousands of them.
            level = logging.DEBUG if isinstance(error.__cause__, CommitError) else logging.ERROR
            _log.log(level, "request failed", extra={"fields": fields})
        else:
            # A program that uses the database in process sees the text, and not the fields.
            _log.warning("request rejected: %s %r", code, fields["operation"], extra={"fields": fields})
    form = form or _USUAL
    return Response(error.status, orjson.dumps(error.wire()), form.content_type, form.headers, code, named)


def success(body: bytes, form: Form | None = None) -> Response:
    """The answer to a call that succeeded. `body` comes from `encode_result`."""
    form = form or _USUAL
    return Response(200, body, form.content_type, form.headers)


def answer(
    result: dict[str, Any] | None, error: Exception | None, form: Form | None = None, operation: str = ""
) -> Response:
    """The answer to a call of `operation` that ended with `result` or with `error`."""
    if error is not None:
        return encode_error(error, form, operation)
    try:
        body = b"" if result is NOTHING else orjson.dumps(result or {})
    except (TypeError, ValueError) as unencodable:
        return encode_error(unencodable, form, operation)
    return success(body, form)


def response_headers(response: Response) -> list[tuple[bytes, bytes]]:
    """All headers of an answer, except those of HTTP's framing."""
    headers = [
        (b"x-amzn-RequestId", response.request_id or request_id()),
        (b"x-amz-crc32", b"%d" % zlib.crc32(response.body)),
    ]
    if response.content_type:
        headers.append((b"Content-Type", response.content_type))
    headers.extend(response.headers)
    return headers


# -- Browsers ---------------------------------------------------------------------------------------------

CORS_HEADERS: Final = (
    (b"Access-Control-Allow-Origin", b"*"),
    (
        b"Access-Control-Expose-Headers",
        b"x-amzn-RequestId,x-amzn-ErrorType,x-amz-request-id,x-amz-id-2,x-amzn-ErrorMessage,x-amz-crc32,Date",
    ),
)
_PREFLIGHT_SECONDS: Final = b"172800"


def _cors_headers(headers: Headers) -> tuple[tuple[bytes, bytes], ...]:
    return CORS_HEADERS if b"origin" in headers else ()


def _unknown_operation(method: bytes, target: bytes, headers: Headers) -> Response:
    named = request_id()
    # The query is not logged, because the query of a presigned request holds its signature.
    path = target.partition(b"?")[0][:_SHOWN_BYTES_MAX]
    fields = {
        "request_id": named.decode(),
        "method": method.decode("latin-1"),
        "path": path.decode("latin-1"),
    }
    fields["content_type"] = headers.get(b"content-type", b"")[:_SHOWN_BYTES_MAX].decode("latin-1")
    _log.warning("request of no operation", extra={"fields": fields})
    code = errors.UnknownOperationException.__name__
    return Response(404, _UNKNOWN_OPERATION, b"", _cors_headers(headers), code, named)


def _preflight(headers: Headers) -> Response:
    """The answer to a preflight: it allows everything that the page asks for, as DynamoDB does.

    The server has refused pages that may not use it before (`server.access`).
    """
    allowed = [*CORS_HEADERS, (b"Access-Control-Max-Age", _PREFLIGHT_SECONDS)]
    for asked, name in (
        (b"access-control-request-headers", b"Access-Control-Allow-Headers"),
        (b"access-control-request-method", b"Access-Control-Allow-Methods"),
    ):
        value = headers.get(asked)
        # The value goes into a header of the answer, so it must not contain the end of a line.
        if value is not None and b"\r" not in value and b"\n" not in value:
            allowed.append((name, value))
    return Response(200, b"", b"", tuple(allowed))


# -- Request ids ------------------------------------------------------------------------------------------
#
# DynamoDB's ids are 52 characters of base32hex, the last 26 of which are the same in all ids. No client
# verifies an id; ids only must not repeat. These ids have 24 random characters, which are drawn again after
# 1,024 ids, and 2 characters that count in a scattered order.

_ALPHABET: Final = b"0123456789ABCDEFGHIJKLMNOPQRSTUV"
_IDS_PER_PREFIX: Final = 32**2
_SPREAD: Final = 677  # odd, so that `n * _SPREAD % 32**2` takes every value once
_ENDINGS: Final = tuple(
    bytes((_ALPHABET[n >> 5 & 31], _ALPHABET[n & 31])) + b"VV4KQNSO5AEMVJF66Q9ASUAAJG"
    for n in range(0, _IDS_PER_PREFIX * _SPREAD, _SPREAD)
)


class _RequestIds:
    """A prefix and its endings are drawn together, so that no two threads get the same id."""

    __slots__ = ("_drawn",)

    def __init__(self) -> None:
        self._draw()

    def _draw(self) -> None:
        prefix = bytes(_ALPHABET[byte & 31] for byte in os.urandom(24))
        self._drawn: tuple[bytes, Iterator[bytes]] = (prefix, iter(_ENDINGS))

    def __call__(self) -> bytes:
        while True:
            prefix, endings = self._drawn
            for ending in endings:
                return prefix + ending
            self._draw()


request_id: Final = _RequestIds()
"""Make a request id."""
