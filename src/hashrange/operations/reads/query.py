"""Query: items of one partition of a table or index, in the order of the sort key.

Source: API reference, Query.
"""

from __future__ import annotations

from hashrange.errors import ValidationException
from hashrange.operations.context import Billed, BilledReadBody, Context, Request
from hashrange.operations.reads import key_ranges, pages
from hashrange.operations.reads.key_ranges import KeyRange
from hashrange.operations.reads.reading import Reading, query_reading
from hashrange.storage.api import Reader
from hashrange.tables.data import keys, ranges, sources
from hashrange.tables.data.ranges import Source
from hashrange.tables.definitions import catalog
from hashrange.values import Item

_OUTSIDE = "The provided starting key is outside query boundaries based on provided conditions"
_OUT_OF_RANGE = "The provided starting key does not match the range key predicate"


def prepare(request: Request, context: Context) -> BilledReadBody:
    """The body of a Query."""
    reading = query_reading(request, context.scope, billed=context.billed)
    is_legacy = request.get("KeyConditionExpression") is None
    reverse = request.get("ScanIndexForward") is False
    filter_parameter = "QueryFilter" if request.get("QueryFilter") is not None else "Filter Expression"

    def body(reader: Reader) -> Billed:
        table = catalog.open_active(reader, reading.table, context.scope)
        source = sources.open_source(table, reading.index, consistent=reading.consistent)
        keys.check_scalars(table, reading.nested)
        selected = key_ranges.select(source, reading.comparisons, is_legacy=is_legacy)
        start = _start(source, reading.start, selected) if reading.start is not None else None
        _check_filter(source, reading, filter_parameter)
        pages.check_shown(source, reading)
        begun = ranges.begun_page(source)
        if begun is not None:
            start = ranges.position_after(source, begun)[1]
        found = ranges.query_records(
            reader,
            source,
            selected.partition,
            selected.low,
            selected.high,
            reverse=reverse,
            start=start,
            likely=reading.limit,
        )
        return pages.read(reader, source, reading, found, begun)

    return body


def _start(source: Source, key: Item, selected: KeyRange) -> bytes:
    """The sort bytes of an ExclusiveStartKey, which must be in the range that is read."""
    partition, start = ranges.start_position(source, key)
    if partition != selected.partition:
        raise ValidationException(_OUTSIDE)
    if start < selected.low or (selected.high is not None and start >= selected.high):
        raise ValidationException(_OUT_OF_RANGE)
    return start


def _check_filter(source: Source, reading: Reading, parameter: str) -> None:
    """Refuse a filter with key attributes of the table or index that is read, or with attributes that the
    index does not project."""
    if reading.filter is None:
        return
    for attribute in source.key.attributes():
        if attribute.name in reading.filter.attributes:
            raise ValidationException(
                f"{parameter} can only contain non-primary key attributes: "
                f"Primary key attribute: {attribute.name}"
            )
    sources.check_filter(source, reading.filter.attributes)
