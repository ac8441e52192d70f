"""A log line for each request, with `--log-requests` or `--log-level debug`.

    request operation=PutItem table=events status=200 error= ms=0.412 units=1.0 request_id=…
    request operation= table= status=404 error=UnknownOperationException ms= units= request_id=…

The line names the operation, the table and the outcome, and never a value: no key, no item, no expression, no
PartiQL statement. Bytes that are not proper HTTP are not logged as a request. The line has units if the
request asked for its consumed capacity.

The same places feed the audit log (`rings.Audit`). It hangs here and not on the watch of a database, because
it has the requests that are refused before they reach the database, the addresses of clients, and the ids of
answers.

A data plane without a log has no `Tracer`, so that requests cost nothing more than a comparison.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from hashrange import pace
from hashrange.errors import InternalServerError, ServiceError
from hashrange.protocol import Call, Headers, Response
from hashrange.rings import Audit

LOGGER: Final = "hashrange.requests"
"""The name of the logger that gets a line for each request, with `--log-requests`."""

_log = logging.getLogger(LOGGER)

# A valid request names a hundred tables at most, each with at most 255 characters.
_TABLES_MAX: Final = 100
_TABLES_CHARS_MAX: Final = 100 * 256


class _Consumed(msgspec.Struct):
    """The member of an answer that the line tells. The decoder skips the others."""

    ConsumedCapacity: Any = None


_consumed: Final = msgspec.json.Decoder(_Consumed).decode

_TRACER: Final = "request log"
Failed = Callable[[str, Exception], None]
"""Called with the name of an observer, and the error with which it has failed."""

_KEY_ID: Final = re.compile(rb"Credential=([^/,\s]{1,128})/")
_REQUEST_ID: Final = re.compile(rb"\r\nx-amzn-RequestId: ([0-9A-V]+)\r\n")


class TracedCall(NamedTuple):
    """The parts of a call that its line shows; `audited` are those of its entry in the audit log."""

    operation: str
    tables: str
    asks_for_units: bool
    audited: object


class Tracer:
    """Traces the requests of a server: by lines of the log if it `logs`, and in the `audit` log.

    Requests may have any form. If one cannot be traced, `failed` is told, and the request goes on.
    """

    __slots__ = ("_failed", "_logs", "audit")

    def __init__(self, logs: bool, audit: Audit | None, failed: Failed) -> None:
        self._logs = logs
        self._failed = failed
        self.audit = audit

    def note(self, call: Call, peer: str) -> TracedCall:
        """The parts of a call that are shown, noted because large requests are freed before their answer."""
        try:
            return self._note(call, peer)
        except Exception as error:
            self._failed(_TRACER, error)
            bare = None
            if self.audit is not None:
                bare = self.audit.note(call.caller, call.operation, {}, peer)
            return TracedCall(call.operation, "", False, bare)

    def _note(self, call: Call, peer: str) -> TracedCall:
        request = call.request
        audited = None
        if self.audit is not None:
            audited = self.audit.note(call.caller, call.operation, request, peer)
        names = sorted(set(islice(_tables(request), _TABLES_MAX))) if self._logs else []
        asks_for_units = request.get("ReturnConsumedCapacity") not in (None, "NONE")
        return TracedCall(call.operation, ",".join(names)[:_TABLES_CHARS_MAX], asks_for_units, audited)

    def request(
        self,
        noted: TracedCall,
        body: bytes | memoryview | None,
        error: Exception | None,
        seconds: float,
        answer: bytes,
    ) -> None:
        """Trace a call that ended. `body` is the body of its answer, `answer` all bytes that the client
        gets."""
        try:
            self._request(noted, body, error, seconds, answer)
        except Exception as failure:
            self._failed(_TRACER, failure)

    def _request(
        self,
        noted: TracedCall,
        body: bytes | memoryview | None,
        error: Exception | None,
        seconds: float,
        answer: bytes,
    ) -> None:
        if self.audit is not None and noted.audited is not None:
            self.audit.ended(noted.audited, error, _request_id(answer))
        if not self._logs:
            return
        status, code = 200, ""
        if error is not None:
            answered_error = error if isinstance(error, ServiceError) else InternalServerError("")
            status, code = answered_error.status, answered_error.code
        units = None
        if body is not None and noted.asks_for_units:
            units = _units(_consumed(body).ConsumedCapacity)
        _line(
            operation=noted.operation,
            table=noted.tables,
            status=status,
            error=code,
            ms=round(seconds * 1e3, 3),
            units="" if units is None else units,
            answer=answer,
        )

    def response(self, response: Response, answer: bytes, headers: Headers, peer: str) -> None:
        """Trace the answer to a request that had no call. It is audited if it is a refusal."""
        try:
            self._response(response, answer, headers, peer)
        except Exception as error:
            self._failed(_TRACER, error)

    def _response(self, response: Response, answer: bytes, headers: Headers, peer: str) -> None:
        if self._logs:
            _line("", "", response.status, response.error, "", "", answer)
        if self.audit is not None and response.error:
            operation = headers.get(b"x-amz-target", b"").rpartition(b".")[2].decode("latin-1")
            found = _KEY_ID.search(headers.get(b"authorization", b""))
            access_key = "" if found is None else found[1].decode("latin-1")
            self.audit.refused(operation, access_key, response.error, peer, _request_id(answer))


def tracer(failed: Failed, audit: Audit | None = None) -> Tracer | None:
    """The tracer of a server; None if its requests are not traced. `failed` is called when tracing fails."""
    logs = _log.isEnabledFor(logging.DEBUG)
    return Tracer(logs, audit, failed) if logs or audit is not None else None


def address(peer: Any) -> str:
    """The address in a transport's name of its peer."""
    return str(peer[0]) if isinstance(peer, tuple) and peer else ""


def _line(
    operation: str, table: str, status: int, error: str, ms: object, units: object, answer: bytes
) -> None:
    fields = {
        "operation": operation,
        "table": table,
        "status": status,
        "error": error,
        "ms": ms,
        "units": units,
        "request_id": _request_id(answer),
    }
    _log.debug("request", extra={"fields": fields})


def _request_id(answer: bytes) -> str:
    match = _REQUEST_ID.search(answer[:1024])
    return match[1].decode() if match is not None else ""


def _tables(request: dict[str, Any]) -> Iterator[str]:
    """The tables and streams that a request names, which may have any form."""
    for member in ("TableName", "ResourceArn", "StreamArn"):
        if isinstance(name := request.get(member), str):
            yield name
    if isinstance(items := request.get("RequestItems"), dict):
        yield from items
    for item in _list(request.get("TransactItems")):
        pace.step()
        for action in item.values() if isinstance(item, dict) else ():
            if isinstance(action, dict) and isinstance(name := action.get("TableName"), str):
                yield name


def _units(consumed: Any) -> float | None:
    """The capacity units of an answer, over all its tables."""
    units = [
        entry["CapacityUnits"]
        for entry in _list(consumed)
        if isinstance(entry, dict) and "CapacityUnits" in entry
    ]
    return sum(units) if units else None


def _list(value: Any) -> Iterable[Any]:
    if isinstance(value, list):
        return value
    return () if value is None else (value,)
