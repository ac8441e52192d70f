"""Scan: all items of a table or index, or of one segment of it, in hash order.

Source: API reference, Scan.
"""

from __future__ import annotations

from hashrange.errors import KEY_MISMATCH, ValidationException
from hashrange.operations.context import Billed, BilledReadBody, Context, Request
from hashrange.operations.reads import pages
from hashrange.operations.reads.read_parameters import Reading, scan_reading
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog
from hashrange.tables.reads import ranges, sources
from hashrange.tables.reads.ranges import ReadSource
from hashrange.values import Item


def prepare(request: Request, context: Context) -> BilledReadBody:
    """The body of a Scan."""
    reading = scan_reading(request, context.scope, billed=context.billed)
    begun = ranges.Begun()

    def body(reader: Reader) -> Billed:
        table = catalog.open_active(reader, reading.table, context.scope)
        source = sources.open_source(
            table, reading.index, consistent=reading.consistent, vector=sources.VECTOR_SCANNED
        )
        start = _start(source, reading.start, reading) if reading.start is not None else None
        pages.check_attributes(source, reading)
        page = begun.take(source)
        if page is not None and page.reached is not None:
            start = ranges.position_after(source, page.reached)
        candidates = ranges.scan_records(
            reader, source, reading.segment, reading.segments, start, likely=reading.limit
        )
        return pages.read(reader, source, reading, candidates, begun, page)

    return body


def _start(source: ReadSource, key: Item, reading: Reading) -> tuple[bytes, bytes]:
    """The position of an ExclusiveStartKey, which must be in the segment."""
    # Only a Scan of the table itself has details in this error. [report] extenddb pull request 86
    detail = f": {KEY_MISMATCH}" if source.index is None else ""
    start = ranges.start_position(source, key, misfit=ranges.INVALID_START + detail)
    if ranges.segment_of(start[0], reading.segments) != reading.segment:
        raise ValidationException(
            "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use "
            "ExclusiveStartKey with correct Segment. "
            f"TotalSegments: {reading.segments} Segment: {reading.segment}"
        )
    return start
