"""Downloads of the items that a Query or a Scan finds, or of those that were selected.

A download is written page by page while it is sent, and ends when the browser goes away.

A spreadsheet runs a cell as a formula that begins with "=" or the like, and the writer of an item chooses
the cell. So in a CSV for spreadsheets such a text has an apostrophe before it (OWASP, "CSV Injection"). The
CSV with types, from which items are imported again, has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Final

from starlette.responses import Response, StreamingResponse

from hashrange.interchange import csv_types
from hashrange.interchange.item_texts import csv_field, csv_lines, plain_lines, typed_lines
from hashrange_console import looks
from hashrange_console.items.found import Finding
from hashrange_console.reach import Refused, View
from hashrange_console.values import Item, Value

FORMATS: Final = {
    "csv": (
        "CSV for spreadsheets",
        "Texts that a spreadsheet would run as formulas begin with an apostrophe.",
    ),
    "csv-typed": (
        "CSV with types",
        "Texts that look like another type have quotes, so imported again the items are equal.",
    ),
    "json": ("JSON lines", "An item a line, with all digits. Sets and binary values lose their types."),
    "dynamodb": ("DynamoDB JSON lines", "An item a line, with every type: to import again, here or in AWS."),
}
"""The formats by their names: titles, and what they write."""
COLUMNS_MAX: Final = 10_000
_CSV_TYPE: Final = "text/csv; charset=utf-8"
_TYPES: Final = {"csv": _CSV_TYPE, "csv-typed": _CSV_TYPE, "json": "application/x-ndjson"}
_ENDINGS: Final = {"csv": "csv", "csv-typed": "typed.csv", "json": "jsonl", "dynamodb": "json"}
_BEGIN_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

Writer = Callable[[list[Item]], bytes]
"""Makes the bytes of some items."""


async def download(view: View) -> Response:
    """A file of items."""
    table = view.request.path_params["table"]
    format_ = view.given("format")
    if format_ not in FORMATS:
        raise Refused(f"{format_!r} is not a format of a download: use {', '.join(FORMATS)}.")
    finding = await Finding.of(view, table)
    keys = view.request.query_params.getlist("key")
    header, writer = b"", _WRITERS.get(format_)
    if writer is None:
        names = await _columns(view, finding, keys)
        if format_ == "csv":
            heads, fields = [_field({"S": name}) for name in names], dict.fromkeys(names, _field)
        else:
            heads, fields = names, {name: csv_field if name in finding.typed else _typed for name in names}
        header, writer = csv_lines([heads]), partial(_csv_of, fields)
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


def _field(value: Value | None) -> str:
    """A value in a CSV for spreadsheets: one that would be a formula has an apostrophe before it."""
    text = csv_field(value)
    is_number = value is not None and "N" in value
    return f"'{text}" if text.startswith(_BEGIN_FORMULAS) and not is_number else text


def _typed(value: Value | None) -> str:
    """A value as the import reads it back by its looks."""
    return "" if value is None else csv_types.write(value)


def _csv_of(fields: Mapping[str, Callable[[Value | None], str]], items: list[Item]) -> bytes:
    return csv_lines([[field(item.get(name)) for name, field in fields.items()] for item in items])


_WRITERS: Final[dict[str, Writer]] = {"json": plain_lines, "dynamodb": typed_lines}
