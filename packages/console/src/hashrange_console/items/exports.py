"""Downloads of the items that a Query or a Scan finds, or of those that were selected.

A download is written page by page while it is sent, and ends when the browser goes away.

A spreadsheet runs a cell as a formula that begins with "=" or the like, and whoever may write an item chooses
the cell. So in a CSV for spreadsheets such a text has an apostrophe before it (OWASP, "CSV Injection"). The
CSV with types, from which items are imported again, has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any, Final

import orjson
from starlette.responses import Response, StreamingResponse

from hashrange.interchange import csv_types, dynamodb_json
from hashrange_console import looks
from hashrange_console.items.found import Finding
from hashrange_console.reach import Refused, View
from hashrange_console.values import Item, Raw, Value, plain

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
_NEED_QUOTES: Final = ',"\r\n'
_BEGIN_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

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
        if format_ == "csv":
            heads, fields = [_field({"S": name}) for name in names], dict.fromkeys(names, _field)
        else:
            heads, fields = names, {name: _plain if name in finding.typed else _typed for name in names}
        header, writer = _csv([heads]), partial(_csv_lines, fields)
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
    """Rows as RFC 4180 has them, but with line ends of one character. (Python's csv then leaves carriage
    returns without quotes, before Python 3.13.)"""
    # (an empty line would be no row)
    lines = [",".join(map(_quoted, row)) or '""' for row in rows]
    return "".join(f"{line}\n" for line in lines).encode()


def _quoted(text: str) -> str:
    needs_quotes = any(character in text for character in _NEED_QUOTES)
    return '"{}"'.format(text.replace('"', '""')) if needs_quotes else text


def _field(value: Value | None) -> str:
    """A value in a CSV for spreadsheets: one that would be a formula has an apostrophe before it."""
    text = _plain(value)
    is_number = value is not None and "N" in value
    return f"'{text}" if text.startswith(_BEGIN_FORMULAS) and not is_number else text


def _plain(value: Value | None) -> str:
    """A value as a text: a text, a number and a binary value as they are, another value as plain JSON."""
    if value is None:
        return ""
    kind, inner = next(iter(value.items()))
    return str(inner) if kind in ("S", "N", "B") else orjson.dumps(_exact(plain(value))).decode()


def _typed(value: Value | None) -> str:
    """A value as the import reads it back by its looks."""
    return "" if value is None else csv_types.write(value)


def _csv_lines(fields: Mapping[str, Callable[[Value | None], str]], items: list[Item]) -> bytes:
    return _csv([[field(item.get(name)) for name, field in fields.items()] for item in items])


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
