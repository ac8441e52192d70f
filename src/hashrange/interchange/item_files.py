"""The items of a file in JSON, compressed or not: read by the form of its content, whatever its name is.

    lines       {"Item": {…}}, as an export to S3 has them and ImportTable takes them; or an item a line
    a list      of items, or of {"Item": {…}} or {"PutRequest": {"Item": {…}}}
    an answer   of Scan or Query: {"Items": [{…}, …], "Count": …}
    requests    of BatchWriteItem: {table: [{"PutRequest": {"Item": {…}}}, …]}
    an item     as an object over several lines

Items are plain, or in DynamoDB's JSON. Lines are read one by one, any other form as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final, Literal

from hashrange.interchange.compression import DAMAGED, Readable, compression_of, reader
from hashrange.interchange.lines import LINE_BYTES_MAX, lines
from hashrange.interchange.object_rows import Rows
from hashrange.interchange.plain_json import DECODER, NoItem, is_container, item_of, listed, unwrapped
from hashrange.interchange.rows import Bad
from hashrange.values import Item

DOCUMENT_BYTES_MAX: Final = 256 * 1024 * 1024
"""The largest file that is read as a whole."""

_BEGINNING_BYTES: Final = 4096
_TOO_LARGE: Final = (
    f"it is one JSON document of more than {DOCUMENT_BYTES_MAX} bytes; write an item per line, as "
    '{"Item": {"id": {"S": "x"}}}'
)


def rows(opened: BinaryIO, table: str) -> Iterator[Item | Bad]:
    """The items of a file in JSON that are for `table`, from its beginning on, or what is wrong with a row.

    Ask `compression.unreadable` first. Raises NoItem for a file that is one value in JSON and no list of
    items.
    """
    opened.seek(0)
    compression = compression_of(opened)
    try:
        form = _form_of(reader(opened, compression))
        opened.seek(0)
        if form == "document":
            yield from _of_document(reader(opened, compression), table)
        elif form == "items":
            yield from _of_lines(reader(opened, compression))
        else:
            yield from map(_typed, Rows(opened, "DYNAMODB_JSON", compression))
    except DAMAGED as error:
        yield Bad(f"The file cannot be decompressed as {compression}: {error}", is_end=True)


def is_json(opened: BinaryIO) -> bool:
    """Whether a file begins as JSON does that holds items."""
    opened.seek(0)
    try:
        beginning = reader(opened, compression_of(opened)).read(_BEGINNING_BYTES)
    except DAMAGED:
        return False
    return beginning.lstrip()[:1] in (b"{", b"[")


def _form_of(opened: Readable) -> Literal["document", "items", "export"]:
    """The form of a file, which its first line shows."""
    first = next((line for line, _ in lines(opened, 0) if line is None or line.strip()), b"")
    if first is None:
        return "document"  # too long for a line
    value = _decoded(first)
    if first.lstrip()[:1] == b"[" or (first.lstrip()[:1] == b"{" and value is None) or is_container(value):
        return "document"
    return "items" if isinstance(value, dict) and not isinstance(value.get("Item"), dict) else "export"


def _decoded(line: bytes) -> Any:
    """The value of a line in JSON, or None."""
    try:
        return DECODER.decode(line)
    except (ValueError, RecursionError):
        return None


def _of_document(opened: Readable, table: str) -> Iterator[Item | Bad]:
    parts, left = [], DOCUMENT_BYTES_MAX + 1
    while left > 0 and (part := opened.read(left)):
        parts.append(part)
        left -= len(part)
    if left <= 0:
        raise NoItem(_TOO_LARGE)
    try:
        document = DECODER.decode(b"".join(parts))
    except (ValueError, RecursionError) as error:
        raise NoItem(
            f"it begins as a list or an object over several lines, and is not JSON: {error}"
        ) from None
    for member in listed(document, table):
        yield _row(member)


def _of_lines(opened: Readable) -> Iterator[Item | Bad]:
    for line, _ in lines(opened, 0):
        if line is None:
            yield Bad(f"The line has more than {LINE_BYTES_MAX} bytes")
        elif line.strip():
            value = _decoded(line)
            yield Bad("The line cannot be read as JSON") if value is None else _row(value)


def _row(value: Any) -> Item | Bad:
    try:
        return item_of(unwrapped(value))
    except NoItem as error:
        return Bad(str(error))


def _typed(row: Item | Bad) -> Item | Bad:
    """A row of an export, whose item may also be plain."""
    if isinstance(row, Bad) or any(isinstance(value, dict) for value in row.values()):
        return row
    return _row(row)
