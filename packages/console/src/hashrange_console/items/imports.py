"""Writing the items of an uploaded file, piece by piece. The browser asks for each piece, so it can stop."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any, Final

import msgspec
from starlette.responses import Response

from hashrange import limits
from hashrange.errors import ServiceError
from hashrange.interchange import csv_types
from hashrange.interchange.plain_json import NoItem
from hashrange.interchange.rows import Bad
from hashrange.server.admin.application import json, read_json
from hashrange.values import admit_item
from hashrange_console import looks
from hashrange_console.items.pieces import FORMATS, FileRow, Layout, recognised, rows
from hashrange_console.reach import Refused, View
from hashrange_console.tables.listing import keys_of
from hashrange_console.values import NAMES, Item, cell, columns

WORK_SECONDS: Final = 1.0
"""How long a request writes items, before it answers how far it has come."""
PREVIEW_ROWS: Final = 10
SAMPLE_ROWS: Final = 1_000
"""The most rows by which the types of columns are proposed."""
COLUMNS_MAX: Final = 24
_CONFLICT: Final = "ConditionalCheckFailedException"
_PACKED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
"""How files in gzip, Zstandard and ZIP begin."""
_RETRIES: Final = 20
_RETRY_SECONDS: Final = 0.05


class Piece(msgspec.Struct, forbid_unknown_fields=True):
    """A piece of a file, which begins at a row. `layout`: how it is read, as the answer to the piece before
    said. `keep`: leave items alone that are there already."""

    table: str
    name: str
    piece: bytes
    is_first: bool
    is_last: bool
    layout: Layout
    keep: bool = False


async def page(view: View) -> Response:
    """The page on which a file is chosen."""
    table = view.request.path_params["table"]
    described = (await view.read("DescribeTable", {"TableName": table}))["Table"]
    return await looks.page("items/import.html", view=view, table=table, keys=keys_of(described))


async def preview(view: View) -> Response:
    """The first items of a file, with their types, and what is wrong with them."""
    sent = await read_json(view.request, Piece, limits.REQUEST_BODY_BYTES_MAX)
    described = (await view.read("DescribeTable", {"TableName": sent.table}))["Table"]
    proposes = sent.is_first and not sent.layout.kinds
    start, found = _begin(sent, described)
    if proposes and sent.layout.format == "csv":
        sent.layout.kinds = _proposed(sent, start, described)
        start, found = _begin(sent, described)
    first = list(islice(found, PREVIEW_ROWS))
    keys = keys_of(described)
    items = [row.outcome for row in first if not isinstance(row.outcome, Bad)]
    problems = [(_line(sent, start, row), why) for row in first if (why := _problem(row, keys))]
    names, hidden = columns(items, [name for name, _, _ in keys], COLUMNS_MAX)
    html = await looks.part(
        "items/preview.html",
        format=FORMATS[sent.layout.format],
        delimiter={"\t": "tabs"}.get(sent.layout.delimiter, sent.layout.delimiter),
        columns=names,
        hidden=hidden,
        kinds={name: _kinds(items, name) for name in names},
        rows=[[cell(item.get(name)) for name in names] for item in items],
        problems=problems,
        chosen=sent.layout.kinds,
        offered=csv_types.KINDS,
    )
    return json({"html": html, "rows": len(first), "kinds": sent.layout.kinds})


def _proposed(sent: Piece, start: int, described: dict[str, Any]) -> dict[str, str]:
    """The types of the columns of a CSV that are of no key, as its first rows look."""
    layout = msgspec.structs.replace(sent.layout, kinds={}, rest="S")
    found = islice(rows(layout, sent.piece[start:], sent.is_last, {}, []), SAMPLE_ROWS)
    items = [row.outcome for row in found if not isinstance(row.outcome, Bad)]
    keys = {definition["AttributeName"] for definition in described["AttributeDefinitions"]}
    return {
        name: "AUTO" if sent.layout.rest == "AUTO" else csv_types.proposed(item[name]["S"] for item in items)
        for name in layout.header
        if name not in keys
    }


async def write(view: View) -> Response:
    """Write the items of a piece, and say how far they were written."""
    sent = await read_json(view.request, Piece, limits.REQUEST_BODY_BYTES_MAX)
    described = (await view.read("DescribeTable", {"TableName": sent.table}))["Table"]
    start, rows = _begin(sent, described)
    loop = asyncio.get_running_loop()
    until = loop.time() + WORK_SECONDS
    writing = _Writing(view, sent, keys_of(described)[0][0])
    reached, is_over = 0, True
    batch: list[FileRow] = []
    for row in rows:
        batch.append(row)
        if len(batch) == limits.BATCH_WRITE_ITEMS_MAX:
            await writing.write(batch, start)
            reached, batch = batch[-1].end, []
            if loop.time() > until:
                is_over = False
                break
    await writing.write(batch, start)
    if batch:
        reached = batch[-1].end
    is_end = any(isinstance(row.outcome, Bad) and row.outcome.is_end for row in batch)
    return json(
        {
            "reached": start + reached,
            "lines": sent.piece.count(b"\n", 0, start + reached),
            "layout": msgspec.to_builtins(sent.layout),
            "written": writing.written,
            "kept": writing.kept,
            "errors": sorted(writing.errors, key=lambda error: int(error["line"])),
            "is_over": is_end or (is_over and (sent.is_last or sent.layout.is_over)),
        }
    )


def _begin(sent: Piece, described: dict[str, Any]) -> tuple[int, Any]:
    """Where the rows of a piece begin, and the rows."""
    start = 0
    if sent.piece.startswith(_PACKED) and sent.is_first:
        raise Refused("This file is compressed. Unpack it first, or use the command `hashrange import`.")
    if sent.is_first:
        try:
            given = sent.layout
            sent.layout, start = recognised(sent.name, sent.piece, sent.table)
            is_typed = sent.name.lower().endswith(csv_types.TYPED_SUFFIX)
            sent.layout.kinds, sent.layout.rest = given.kinds, "AUTO" if is_typed else given.rest
        except NoItem as error:
            raise Refused(f"This file cannot be imported here: {error}.") from None
    if sent.layout.format not in FORMATS:
        raise Refused(f"{sent.layout.format!r} is not a format of a file.")
    types = {
        definition["AttributeName"]: definition["AttributeType"]
        for definition in described["AttributeDefinitions"]
    }
    keys = [name for name, _, _ in keys_of(described)]
    return start, rows(sent.layout, sent.piece[start:], sent.is_last, types, keys)


def _line(sent: Piece, start: int, row: FileRow) -> int:
    """The line of a row in the piece, counted from 1."""
    return sent.piece.count(b"\n", 0, start) + row.line + 1


def _problem(row: FileRow, keys: list[tuple[str, str, str]]) -> str:
    """What is wrong with a row, "" if it is an item of the table as far as its values tell."""
    if isinstance(row.outcome, Bad):
        return row.outcome.message
    for name, _, kind in keys:
        if kind not in row.outcome.get(name, {}):
            return f"The item has no key attribute {name} that is a {NAMES[kind]}."
    try:
        admit_item(row.outcome)
    except ServiceError as error:
        return error.message or error.code
    return ""


def _kinds(items: list[Item], name: str) -> list[str]:
    return sorted({kind for item in items for kind in item.get(name, ())})


class _Writing:
    """Writes rows, and counts what became of them."""

    def __init__(self, view: View, sent: Piece, key: str) -> None:
        self._view = view
        self._sent = sent
        self._key = key
        self.written = 0
        self.kept = 0
        self.errors: list[dict[str, Any]] = []

    async def write(self, batch: list[FileRow], start: int) -> None:
        """Write some rows: as a batch, or one by one where the batch is refused."""
        puts: list[tuple[FileRow, Item]] = []
        for row in batch:
            if isinstance(row.outcome, Bad):
                self._tell(row, start, row.outcome.message)
            else:
                puts.append((row, row.outcome))
        if not puts:
            return
        if not self._sent.keep and await self._write_batch([item for _, item in puts]):
            self.written += len(puts)
            return
        for row, item in puts:
            try:
                await self._put(item)
            except Refused as error:
                if error.code == _CONFLICT:
                    self.kept += 1
                else:
                    self._tell(row, start, str(error))
            else:
                self.written += 1

    async def _write_batch(self, items: list[Item]) -> bool:
        """Whether all items of a batch were written."""
        left: Any = {self._sent.table: [{"PutRequest": {"Item": item}} for item in items]}
        for _ in range(_RETRIES):
            try:
                answer = await self._view.change("BatchWriteItem", {"RequestItems": left})
            except Refused:
                return False
            left = answer.get("UnprocessedItems")
            if not left:
                return True
            await asyncio.sleep(_RETRY_SECONDS)
        return False

    async def _put(self, item: Item) -> None:
        request: dict[str, Any] = {"TableName": self._sent.table, "Item": item}
        if self._sent.keep:
            request |= {
                "ConditionExpression": "attribute_not_exists(#k)",
                "ExpressionAttributeNames": {"#k": self._key},
            }
        await self._view.change("PutItem", request)

    def _tell(self, row: FileRow, start: int, why: str) -> None:
        self.errors.append({"line": _line(self._sent, start, row), "why": why[:500]})
