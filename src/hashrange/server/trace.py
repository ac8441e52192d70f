"""A log line for each request, with `--log-requests` or `--log-level debug`.

    request operation=PutItem table=events status=200 error= ms=0.412 units=1.0 request_id=…
    request operation= table= status=404 error=UnknownOperationException ms= units= request_id=…

The line names the operation, the table and the outcome, and never a value: no key, no item, no expression, no
PartiQL statement. Bytes that are not proper HTTP are not logged as a request. The line has units if the
request asked for its consumed capacity.

The data plane calls `wanted` first, and the rest only if it returns true, so that requests cost nothing more
without this log.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from hashrange import pace
from hashrange.errors import InternalServerError, ServiceError
from hashrange.protocol import Call, Response

LOGGER: Final = "hashrange.requests"

_log = logging.getLogger(LOGGER)

# A valid request names a hundred tables at most, each with at most 255 characters.
_TABLES_MAX: Final = 100
_TABLES_CHARS_MAX: Final = 100 * 256


class _Consumed(msgspec.Struct):
    """The member of an answer that the line tells. The decoder skips the others."""

    ConsumedCapacity: Any = None


_consumed: Final = msgspec.json.Decoder(_Consumed).decode

_REQUEST_ID: Final = re.compile(rb"\r\nx-amzn-RequestId: ([0-9A-V]+)\r\n")


def wanted() -> bool:
    """Whether requests are to be logged."""
    return _log.isEnabledFor(logging.DEBUG)


class Noted(NamedTuple):
    """The parts of a call that its line shows."""

    operation: str
    tables: str
    asks_for_units: bool


def note(call: Call) -> Noted:
    """The parts of a call that its line shows, noted because large requests are freed before their answer."""
    request = call.request
    names = sorted(set(islice(_tables(request), _TABLES_MAX)))
    asks_for_units = request.get("ReturnConsumedCapacity") not in (None, "NONE")
    return Noted(call.operation, ",".join(names)[:_TABLES_CHARS_MAX], asks_for_units)


def request(
    noted: Noted,
    body: bytes | memoryview | None,
    error: Exception | None,
    seconds: float,
    answer: bytes,
) -> None:
    """Log a call that ended. `body` is the body of its answer, `answer` all bytes that the client gets."""
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


def response(response: Response, answer: bytes) -> None:
    """Log the answer to a request that had no call."""
    _line("", "", response.status, response.error, "", "", answer)


def _line(
    operation: str, table: str, status: int, error: str, ms: object, units: object, answer: bytes
) -> None:
    match = _REQUEST_ID.search(answer[:1024])
    fields = {
        "operation": operation,
        "table": table,
        "status": status,
        "error": error,
        "ms": ms,
        "units": units,
        "request_id": match[1].decode() if match is not None else "",
    }
    _log.debug("request", extra={"fields": fields})


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
