"""The tables of a server, on the admin plane.

    GET  /v1/tables               state and size of each table, and the progress of builds
    GET  /v1/imports/{id}/errors  the items that an import left out

Work that grows with the number of tables is done in pages, because it runs on the data plane's event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from hashrange import pace
from hashrange.server.admin.application import Endpoint, read_query, subject_of
from hashrange.server.admin.port import Subject

TABLES_PER_PAGE: Final = 20
"""A page of this size takes a fraction of a millisecond."""

ERRORS_PER_PAGE: Final = 500


class IndexState(msgspec.Struct):
    """An index of a table.

    name: its name.
    kind: global, local or vector.
    status: CREATING, UPDATING, DELETING or ACTIVE.
    entries: how many entries it has.
    bytes: the size of its entries.
    progress: which share of it is built, from 0 to 1.
    """

    name: str
    kind: str
    status: str
    entries: int
    bytes: int
    progress: float


class TimeToLiveState(msgspec.Struct):
    """The time to live of a table.

    attribute: the attribute with the time.
    status: ENABLING or ENABLED.
    progress: which share of the items is queued, from 0 to 1.
    """

    attribute: str
    status: str
    progress: float


class StreamState(msgspec.Struct):
    """The stream of a table.

    label: its label.
    view_type: what its records have.
    shards: how many shards it has.
    open_shards: how many of them get new records.
    """

    label: str
    view_type: str
    shards: int
    open_shards: int


class HistoryState(msgspec.Struct):
    """The past of a table.

    since: the moment from which it is kept, in epoch seconds.
    spans: in how many parts it is stored.
    holds: what needs it.
    """

    since: float
    spans: int
    holds: list[str]


class RestoreState(msgspec.Struct):
    """From what a table is restored.

    source: the table or the backup.
    moment: the moment, in epoch seconds.
    progress: which share is restored, from 0 to 1.
    """

    source: str
    moment: float
    progress: float


class TableState(msgspec.Struct):
    """A table.

    name: its full name, which begins with ACCOUNT/REGION/ where accounts or regions are separate.
    status: CREATING, UPDATING, DELETING or ACTIVE.
    items: how many items it has.
    bytes: the size of its items.
    created: when it was made, in epoch seconds.
    indexes: its indexes.
    time_to_live: its time to live; null without one.
    stream: its stream; null without one.
    history: what is kept of its past; null if nothing is.
    restore: from what it is restored; null otherwise.
    """

    name: str
    status: str
    items: int
    bytes: int
    created: float
    indexes: list[IndexState]
    time_to_live: TimeToLiveState | None
    stream: StreamState | None
    history: HistoryState | None
    restore: RestoreState | None


class TableStates(msgspec.Struct):
    """All tables.

    tables: the tables, by their full names.
    """

    tables: list[TableState]


class ImportPointer(msgspec.Struct, rename="camel"):
    """Where an item stands.

    bucket: the bucket.
    key: the key of the object.
    itemIndex: the number of the item in the object, from 0.
    """

    bucket: str
    key: str
    item_index: int


class ItemError(msgspec.Struct):
    """An item that an import left out, in the form in which AWS logs it.

    itemS3Pointer: where the item stands.
    importArn: the import.
    errorMessages: why.
    """

    pointer: ImportPointer = msgspec.field(name="itemS3Pointer")
    arn: str = msgspec.field(name="importArn")
    messages: list[str] = msgspec.field(name="errorMessages")


class ImportErrors(msgspec.Struct):
    """A page of the items that an import left out.

    errors: at most 500 of the items.
    after: what to send as `after` for the next page; absent at the end.
    """

    errors: list[ItemError]
    after: int | UnsetType = UNSET


class ImportErrorsQuery(msgspec.Struct):
    """The query.

    after: the `after` of the previous page.
    """

    after: Annotated[int, msgspec.Meta(ge=0)] = 0


async def _tables(request: Request) -> Annotated[Response, TableStates]:
    shown = [
        msgspec.json.encode(msgspec.convert(page, list[TableState]))[1:-1]
        async for page in pages(subject_of(request))
    ]
    return Response(b'{"tables":[%b]}' % b",".join(shown), media_type="application/json")


async def pages(subject: Subject) -> AsyncIterator[list[dict[str, Any]]]:
    """All tables, in pages; between pages the event loop runs requests of the data plane."""
    after = ""
    while page := subject.database.overview(after, TABLES_PER_PAGE):
        yield page
        after = page[-1]["name"]
        pace.give_way(time.perf_counter())
        await asyncio.sleep(0)


async def _import_errors(request: Request) -> ImportErrors:
    first, id_ = read_query(request, ImportErrorsQuery).after, request.path_params["id"]
    errors = subject_of(request).database.import_errors(id_, first, ERRORS_PER_PAGE)
    more = first + ERRORS_PER_PAGE if len(errors) == ERRORS_PER_PAGE else UNSET
    return ImportErrors(msgspec.convert(errors, list[ItemError]), more)


ENDPOINTS: Final = (
    Endpoint("GET", "/v1/tables", "State and size of each table, and the progress of builds.", _tables),
    Endpoint(
        "GET",
        "/v1/imports/{id}/errors",
        "The items that the import with this id left out, and why.",
        _import_errors,
        query=ImportErrorsQuery,
    ),
)
