"""Query: items of one partition of a table or index, in the order of the sort key.

Source: API reference, Query.
"""

from __future__ import annotations

from hashrange.errors import ValidationException
from hashrange.operations.context import Billed, BilledReadBody, Context, Request
from hashrange.operations.reads import key_ranges, pages
from hashrange.operations.reads.key_ranges import KeyRange
from hashrange.operations.reads.read_parameters import query_reading
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog
from hashrange.tables.reads import ranges, sources

_OUTSIDE = "The provided starting key is outside query boundaries based on provided conditions"
_OUT_OF_RANGE = "The provided starting key does not match the range key predicate"


def prepare(request: Request, context: Context) -> BilledReadBody:
    """The body of a Query."""
    reading = query_reading(request, context.scope, billed=context.billed)
    is_legacy = request.get("KeyConditionExpression") is None
    begun = ranges.Begun()
    reverse = request.get("ScanIndexForward") is False
    filter_parameter = "QueryFilter" if request.get("QueryFilter") is not None else "Filter Expression"

    def body(reader: Reader) -> Billed:
        table = catalog.open_active(reader, reading.table, context.scope)
        source = sources.open_source(table, reading.index, consistent=reading.consistent)
        position = ranges.start_position(source, reading.start) if reading.start is not None else None
        selected = key_ranges.select(source, reading.comparisons, is_legacy=is_legacy)
        start = _start(position, selected) if position is not None else None
        pages.check_attributes(source, reading, filter_parameter)
        page = begun.take(source)
        if page is not None and page.reached is not None:
            start = ranges.position_after(source, page.reached)[1]
        candidates = ranges.query_records(
            reader,
            source,
            selected.partition,
            selected.low,
            selected.high,
            reverse=reverse,
            start=start,
            likely=reading.limit,
        )
        return pages.read(reader, source, reading, candidates, begun, page)

    return body


def _start(position: tuple[bytes, bytes], selected: KeyRange) -> bytes:
    """The sort bytes of an ExclusiveStartKey, which must be in the range that is read."""
    partition, start = position
    # The range comes first: [report] dynalite's recordings.
    if start < selected.low or (selected.high is not None and start >= selected.high):
        raise ValidationException(_OUT_OF_RANGE)
    if partition != selected.partition:
        raise ValidationException(_OUTSIDE)
    return start
