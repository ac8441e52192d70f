"""Time travel on the admin plane: the past of tables whose recovery is on (`hashrange.operations.travel`).

    POST /v1/past/read          a GetItem, Query or Scan, as it would have been answered at a moment
    POST /v1/past/versions      the versions of an item, and who made them
    POST /v1/past/differences   the items that differ between two moments
    POST /v1/past/undo          restore items as they were at a moment

A moment is ISO 8601 text or epoch seconds, and a key is an item of the key's attributes, in DynamoDB's JSON.
The work is done on a thread, because it may take long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from hashrange.clock import parse_moment
from hashrange.operations.travel import NoPast, Travel
from hashrange.server.admin.application import Endpoint, read_json, subject_of
from hashrange.server.admin.aside import aside
from hashrange.server.admin.roles import READ

_PAGE_MAX: Final = 1_000

T = TypeVar("T")


class ReadPast(msgspec.Struct, forbid_unknown_fields=True):
    """A request of DynamoDB's API, and the moment as of which it is answered.

    operation: GetItem, Query or Scan.
    request: its request; TableName is the full name of the table.
    at: the moment, in ISO 8601, in epoch seconds, or as `10m` (ago).
    """

    operation: str
    request: dict[str, Any]
    at: str


class Versions(msgspec.Struct, forbid_unknown_fields=True):
    """A page of the versions of an item.

    table: the full name of the table.
    key: the item's key, in DynamoDB's JSON.
    limit: how many versions at most, from 1 to 1,000.
    next: the Next of the previous page; without it the first page is meant.
    """

    table: str
    key: dict[str, Any]
    limit: int = 100
    next: str | None = None


class Differences(msgspec.Struct, forbid_unknown_fields=True):
    """A page of the items that differ between two moments.

    table: the full name of the table.
    since: the first moment.
    until: the second moment; without it the present.
    limit: how many items at most, from 1 to 1,000.
    next: the Next of the previous page; without it the first page is meant.
    """

    table: str
    since: str
    until: str | None = None
    limit: int = 100
    next: str | None = None


class Undo(msgspec.Struct, forbid_unknown_fields=True):
    """The items to restore, and the moment.

    table: the full name of the table.
    to: the moment.
    keys: the keys of at most 100 items, in DynamoDB's JSON.
    all: all items of the table, in place of `keys`.
    """

    table: str
    to: str
    keys: list[dict[str, Any]] = []
    all: bool = False


class ReadOfPast(msgspec.Struct, rename="pascal"):
    """What the request would have been answered.

    Answer: the answer of DynamoDB's API.
    """

    answer: dict[str, Any]


class Version(msgspec.Struct, rename="pascal"):
    """What an item was from a moment on.

    Moment: the moment, in ISO 8601.
    Item: the item in DynamoDB's JSON; null: there was none.
    By: the access key id of the request; null where it is not known, and for the expiry.
    Cause: request, expiry, or begin for the state at the beginning of what is kept.
    """

    moment: str
    item: dict[str, Any] | None
    by: str | None
    cause: Literal["request", "expiry", "begin"]


class VersionsOfItem(msgspec.Struct, rename="pascal"):
    """A page of the versions of an item.

    Versions: the versions, newest first.
    Next: what to send as `next` for the next page; null at the end.
    """

    versions: list[Version]
    next: str | None


class Difference(msgspec.Struct, rename="pascal"):
    """An item that differs.

    Key: its key.
    Before: the item at the first moment; null: there was none.
    After: the item at the second moment; null: there was none.
    Moment: when it was last changed between them, in ISO 8601.
    """

    key: dict[str, Any]
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    moment: str


class DifferencesOfTable(msgspec.Struct, rename="pascal"):
    """A page of the items that differ.

    Differences: the items, in the order of a Scan.
    Next: what to send as `next` for the next page, which may follow an empty one; null at the end.
    """

    differences: list[Difference]
    next: str | None


class Undone(msgspec.Struct, rename="pascal"):
    """What became of an item.

    Key: its key.
    Done: restored, deleted (there was none at the moment), or unchanged.
    """

    key: dict[str, Any]
    done: Literal["restored", "deleted", "unchanged"]


class UndoneCounts(msgspec.Struct):
    """How many items of a table became what.

    restored: how many are as they were.
    deleted: how many are gone, because there was none at the moment.
    unchanged: how many had already become as they were.
    """

    restored: int
    deleted: int
    unchanged: int


class UndoneItems(msgspec.Struct, rename="pascal"):
    """What was undone.

    Undone: each of the named items, in their order; absent after `all`.
    Counts: the numbers of items after `all`; absent otherwise.
    """

    undone: list[Undone] | msgspec.UnsetType = msgspec.UNSET
    counts: UndoneCounts | msgspec.UnsetType = msgspec.UNSET


async def _read(request: Request) -> ReadOfPast:
    sent = await read_json(request, ReadPast)
    at = _moment(request, sent.at)
    return await _answer(request, lambda travel: ReadOfPast(travel.read(sent.operation, sent.request, at)))


async def _versions(request: Request) -> VersionsOfItem:
    sent = await read_json(request, Versions)
    limit = _limit(sent.limit)

    def work(travel: Travel) -> VersionsOfItem:
        return msgspec.convert(travel.versions(sent.table, sent.key, limit, sent.next), VersionsOfItem)

    return await _answer(request, work)


async def _differences(request: Request) -> DifferencesOfTable:
    sent = await read_json(request, Differences)
    limit, since = _limit(sent.limit), _moment(request, sent.since)
    until = _moment(request, sent.until) if sent.until is not None else None

    def work(travel: Travel) -> DifferencesOfTable:
        found = travel.differences(sent.table, since, until, limit, sent.next)
        return msgspec.convert(found, DifferencesOfTable)

    return await _answer(request, work)


async def _undo(request: Request) -> UndoneItems:
    sent = await read_json(request, Undo)
    to = _moment(request, sent.to)
    if sent.all == bool(sent.keys):
        raise HTTPException(400, "name the keys of the items to undo, or set all to true")

    def work(travel: Travel) -> UndoneItems:
        if sent.all:
            return UndoneItems(counts=UndoneCounts(**travel.undo_all(sent.table, to)))
        return msgspec.convert(travel.undo(sent.table, sent.keys, to), UndoneItems)

    return await _answer(request, work)


def _moment(request: Request, text: str) -> float:
    try:
        return parse_moment(text, subject_of(request).database.clock.now())
    except ValueError as error:
        raise HTTPException(400, str(error)) from None


def _limit(limit: int) -> int:
    if not 1 <= limit <= _PAGE_MAX:
        raise HTTPException(400, f"limit is {limit}; it may be from 1 to {_PAGE_MAX}")
    return limit


async def _answer(request: Request, work: Callable[[Travel], T]) -> T:
    """What work returns, which is done on a thread."""
    try:
        return await aside(request, lambda database: work(database.travel))
    except NoPast as error:
        raise HTTPException(400, str(error)) from None


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/v1/past/read",
        "What a GetItem, Query or Scan would have been answered at a moment.",
        _read,
        takes=ReadPast,
        role=READ,
    ),
    Endpoint(
        "POST",
        "/v1/past/versions",
        "The versions of an item, and who made them.",
        _versions,
        takes=Versions,
        role=READ,
    ),
    Endpoint(
        "POST",
        "/v1/past/differences",
        "The items that differ between two moments.",
        _differences,
        takes=Differences,
        role=READ,
    ),
    Endpoint(
        "POST",
        "/v1/past/undo",
        "Restore items as they were at a moment.",
        _undo,
        takes=Undo,
    ),
)
