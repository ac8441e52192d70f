"""Downloads of the items that a Query or a Scan finds, or of those that were selected.

A download is written page by page while it is sent, and ends when the browser goes away.
"""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Final

import orjson
from starlette.responses import Response, StreamingResponse

from hashrange.console import looks
from hashrange.console.items.found import Finding
from hashrange.console.reach import Refused, View
from hashrange.console.values import Item, Raw, Value, plain
from hashrange.interchange import dynamodb_json

FORMATS: Final = {"csv": "CSV", "json": "JSON lines", "dynamodb": "DynamoDB JSON lines"}
COLUMNS_MAX: Final = 10_000
_TYPES: Final = {"csv": "text/csv; charset=utf-8", "json": "application/x-ndjson"}
_ENDINGS: Final = {"csv": "csv", "json": "jsonl", "dynamodb": "json"}

Writer = Callable[[list[Item]], bytes]
"""Makes the bytes of some items."""


async def download(view: View) -> Response:
    """A file of items."""
    table = view.request.path_params["table"]
    format_ = view.given("format")
    if format_ not in FORMATS:
        raise Refused(f"{format_!r} is no format of a download: use {', '.join(FORMATS)}.")
    finding = await Finding.of(view, table)
    keys = view.request.query_params.getlist("key")
    header, writer = b"", _WRITERS.get(format_)
    if writer is None:
        names = await _columns(view, finding, keys)
        header, writer = _csv([names]), partial(_csv_lines, names)
    pages = _pages(finding, keys)
    # What is refused is refused here, before the download begins.
    first: list[Item] = await anext(pages, [])
    headers = {
        **looks.HEADERS,
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="{table.rpartition("/")[2]}.{_ENDINGS[format_]}"',
    }
    body = _body(first, pages, writer, header)
    return StreamingResponse(body, 200, headers, _TYPES.get(format_, "application/x-ndjson"))


async def _pages(finding: Finding, keys: list[str]) -> AsyncIterator[list[Item]]:
    """The items of some keys, or all that are found."""
    if not keys:
        async for items in finding.pages():
            yield items
    for key in keys:
        item = await finding.item(key)
        yield [] if item is None else [item]


async def _body(
    first: list[Item], pages: AsyncIterator[list[Item]], writer: Writer, header: bytes
) -> AsyncIterator[bytes]:
    yield header + await asyncio.to_thread(writer, first)
    async for items in pages:
        if text := await asyncio.to_thread(writer, items):
            yield text


async def _columns(view: View, finding: Finding, keys: list[str]) -> list[str]:
    """The columns of a CSV: those that the address names, or the attributes of all items, for which all
    items are read once more. Raises `Refused`."""
    if chosen := view.request.query_params.getlist("col"):
        return chosen
    names = dict.fromkeys(finding.key_names)
    async for items in _pages(finding, keys):
        for item in items:
            names |= dict.fromkeys(item)
        if len(names) > COLUMNS_MAX:
            raise Refused(
                f"The items have more than {COLUMNS_MAX:,} attributes, too many for a CSV. Choose columns, "
                "or use another format."
            )
    return list(names)


def _csv(rows: list[list[str]]) -> bytes:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue().encode()


def _field(value: Value | None) -> str:
    """A value in a CSV: a text, a number and a binary value as they are, another value as plain JSON."""
    if value is None:
        return ""
    kind, inner = next(iter(value.items()))
    return str(inner) if kind in ("S", "N", "B") else orjson.dumps(_exact(plain(value))).decode()


def _csv_lines(names: list[str], items: list[Item]) -> bytes:
    return _csv([[_field(item.get(name)) for name in names] for item in items])


def _plain_lines(items: list[Item]) -> bytes:
    return b"".join(
        orjson.dumps(_exact({name: plain(value) for name, value in item.items()})) + b"\n" for item in items
    )


def _typed_lines(items: list[Item]) -> bytes:
    return b"".join(dynamodb_json.write(orjson.dumps(item)) for item in items)


def _exact(value: Any) -> Any:
    """A plain value whose numbers are written with all their digits."""
    match value:
        case Raw():
            return orjson.Fragment(str(value))
        case dict():
            return {name: _exact(content) for name, content in value.items()}
        case list():
            return [_exact(content) for content in value]
        case _:
            return value


_WRITERS: Final[dict[str, Writer]] = {"json": _plain_lines, "dynamodb": _typed_lines}
