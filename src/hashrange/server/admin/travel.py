"""Time travel on the admin plane: the past of tables whose recovery is on (`hashrange.travel`).

    POST /past/read          a GetItem, Query or Scan, as it would have been answered at a moment
    POST /past/versions      what an item was, and who changed it
    POST /past/differences   which items are not the same at two moments
    POST /past/undo          write back what items were at a moment

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
from hashrange.server.admin.application import Endpoint, json, read_json, subject_of
from hashrange.server.admin.aside import aside
from hashrange.travel import NoPast, Travel

_PAGE_MAX: Final = 1_000


class ReadPast(msgspec.Struct, forbid_unknown_fields=True):
    """A request of DynamoDB's API, and the moment at which it is to be answered."""

    operation: str
    request: dict[str, Any]
    at: str


class Versions(msgspec.Struct, forbid_unknown_fields=True):
    """A page of the versions of an item; `next` is the Next of the page before."""

    table: str
    key: dict[str, Any]
    limit: int = 100
    next: str | None = None


class Differences(msgspec.Struct, forbid_unknown_fields=True):
    """A page of the items that differ; `until` is now where it is not given, `next` the Next of the page
    before."""

    table: str
    since: str
    until: str | None = None
    limit: int = 100
    next: str | None = None


class Undo(msgspec.Struct, forbid_unknown_fields=True):
    """The items to bring back, by their keys, and the moment to which; `all`: all items of the table."""

    table: str
    to: str
    keys: list[dict[str, Any]] = []
    all: bool = False


async def _read(request: Request) -> Response:
    wanted = await read_json(request, ReadPast)
    at = _moment(request, wanted.at)
    return await _answer(
        request, lambda travel: {"Answer": travel.read(wanted.operation, wanted.request, at)}
    )


async def _versions(request: Request) -> Response:
    wanted = await read_json(request, Versions)
    limit = _limit(wanted.limit)
    return await _answer(
        request, lambda travel: travel.versions(wanted.table, wanted.key, limit, wanted.next)
    )


async def _differences(request: Request) -> Response:
    wanted = await read_json(request, Differences)
    limit, since = _limit(wanted.limit), _moment(request, wanted.since)
    until = _moment(request, wanted.until) if wanted.until is not None else None
    return await _answer(
        request, lambda travel: travel.differences(wanted.table, since, until, limit, wanted.next)
    )


async def _undo(request: Request) -> Response:
    wanted = await read_json(request, Undo)
    to = _moment(request, wanted.to)
    if wanted.all == bool(wanted.keys):
        raise HTTPException(400, "name the keys of the items to undo, or say that it is to be all of them")
    if wanted.all:
        return await _answer(request, lambda travel: {"Counts": travel.undo_all(wanted.table, to)})
    return await _answer(request, lambda travel: travel.undo(wanted.table, wanted.keys, to))


def _moment(request: Request, text: str) -> float:
    try:
        return parse_moment(text, subject_of(request).database.clock.now())
    except ValueError as error:
        raise HTTPException(400, str(error)) from None


def _limit(given: int) -> int:
    if not 1 <= given <= _PAGE_MAX:
        raise HTTPException(400, f"limit is {given}; it may be from 1 to {_PAGE_MAX}")
    return given


async def _answer(request: Request, work: Callable[[Travel], Any]) -> Response:
    """Do work on a thread, and answer what it returns."""
    try:
        return json(await aside(request, lambda database: work(database.travel)))
    except NoPast as error:
        raise HTTPException(400, str(error)) from None


ENDPOINTS: Final = (
    Endpoint("POST", "/past/read", "Answer a GetItem, Query or Scan as of a moment.", _read, takes=ReadPast),
    Endpoint("POST", "/past/versions", "What an item was, and who changed it.", _versions, takes=Versions),
    Endpoint(
        "POST",
        "/past/differences",
        "The items that are not the same at two moments.",
        _differences,
        takes=Differences,
    ),
    Endpoint("POST", "/past/undo", "Write back what items were at a moment.", _undo, takes=Undo),
)
