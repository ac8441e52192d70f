"""Time travel on the admin plane: the past of tables whose recovery is on (`hashrange.operations.travel`).

    POST /past/read          a GetItem, Query or Scan, as it would have been answered at a moment
    POST /past/versions      the versions of an item, and who made them
    POST /past/differences   the items that differ between two moments
    POST /past/undo          restore items as they were at a moment

A moment is ISO 8601 text or epoch seconds, and a key is an item of the key's attributes, in DynamoDB's JSON.
The work is done on a thread, because it may take long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hashrange.clock import parse_moment
from hashrange.operations.travel import NoPast, Travel
from hashrange.server.admin.application import Endpoint, json, read_json, subject_of
from hashrange.server.admin.aside import aside
from hashrange.server.admin.roles import READ

_PAGE_MAX: Final = 1_000


class ReadPast(msgspec.Struct, forbid_unknown_fields=True):
    """A request of DynamoDB's API, and the moment as of which it is answered."""

    operation: str
    request: dict[str, Any]
    at: str


class Versions(msgspec.Struct, forbid_unknown_fields=True):
    """A page of the versions of an item; `next` is the Next of the previous page."""

    table: str
    key: dict[str, Any]
    limit: int = 100
    next: str | None = None


class Differences(msgspec.Struct, forbid_unknown_fields=True):
    """A page of the items that differ; `until` is now by default, `next` the Next of the previous page."""

    table: str
    since: str
    until: str | None = None
    limit: int = 100
    next: str | None = None


class Undo(msgspec.Struct, forbid_unknown_fields=True):
    """The items to restore, by their keys, and the moment; `all`: all items of the table."""

    table: str
    to: str
    keys: list[dict[str, Any]] = []
    all: bool = False


async def _read(request: Request) -> Response:
    sent = await read_json(request, ReadPast)
    at = _moment(request, sent.at)
    return await _answer(
        request, lambda travel: {"Answer": travel.read(sent.operation, sent.request, at)}
    )


async def _versions(request: Request) -> Response:
    sent = await read_json(request, Versions)
    limit = _limit(sent.limit)
    return await _answer(
        request, lambda travel: travel.versions(sent.table, sent.key, limit, sent.next)
    )


async def _differences(request: Request) -> Response:
    sent = await read_json(request, Differences)
    limit, since = _limit(sent.limit), _moment(request, sent.since)
    until = _moment(request, sent.until) if sent.until is not None else None
    return await _answer(
        request, lambda travel: travel.differences(sent.table, since, until, limit, sent.next)
    )


async def _undo(request: Request) -> Response:
    sent = await read_json(request, Undo)
    to = _moment(request, sent.to)
    if sent.all == bool(sent.keys):
        raise HTTPException(400, "name the keys of the items to undo, or set all to true")
    if sent.all:
        return await _answer(request, lambda travel: {"Counts": travel.undo_all(sent.table, to)})
    return await _answer(request, lambda travel: travel.undo(sent.table, sent.keys, to))


def _moment(request: Request, text: str) -> float:
    try:
        return parse_moment(text, subject_of(request).database.clock.now())
    except ValueError as error:
        raise HTTPException(400, str(error)) from None


def _limit(limit: int) -> int:
    if not 1 <= limit <= _PAGE_MAX:
        raise HTTPException(400, f"limit is {limit}; it may be from 1 to {_PAGE_MAX}")
    return limit


async def _answer(request: Request, work: Callable[[Travel], Any]) -> Response:
    """Do work on a thread, and answer with its result."""
    try:
        return json(await aside(request, lambda database: work(database.travel)))
    except NoPast as error:
        raise HTTPException(400, str(error)) from None


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/past/read",
        "Answer a GetItem, Query or Scan as of a moment.",
        _read,
        takes=ReadPast,
        role=READ,
    ),
    Endpoint(
        "POST",
        "/past/versions",
        "The versions of an item, and who made them.",
        _versions,
        takes=Versions,
        role=READ,
    ),
    Endpoint(
        "POST",
        "/past/differences",
        "The items that differ between two moments.",
        _differences,
        takes=Differences,
        role=READ,
    ),
    Endpoint("POST", "/past/undo", "Restore items as they were at a moment.", _undo, takes=Undo),
)
