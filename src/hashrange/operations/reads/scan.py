"""Scan: all items of a table or index, or of one segment of it, in hash order.

Source: API reference, Scan.
"""

from __future__ import annotations

from hashrange.errors import KEY_MISMATCH, ValidationException
from hashrange.operations import parameters
from hashrange.operations.context import Answer, Context, ReadBody, Request, table_name
from hashrange.operations.reads import paging
from hashrange.storage.api import Reader
from hashrange.tables.data import keys, ranges
from hashrange.tables.definitions import catalog

_EXPRESSIONS = ("ProjectionExpression", "FilterExpression")
_LEGACY = ("AttributesToGet", "ScanFilter", "ConditionalOperator")


def prepare(request: Request, context: Context) -> ReadBody:
    """The body of a Scan."""
    parameters.check_styles(request, _EXPRESSIONS, _LEGACY, valued=("FilterExpression",))
    segment, segments = _segment(request)
    subs = parameters.substitutions(request)
    reading = paging.prepare(request, subs, "ScanFilter")
    subs.check_all_used()
    name = table_name(request["TableName"])
    test = paging.test_of(reading)

    def body(reader: Reader) -> Answer:
        table = catalog.open_active(reader, name)
        keys.check_scalars(table, subs.nested)
        source = paging.open_source(table, reading)
        start: tuple[bytes, bytes] | None = None
        if reading.start is not None:
            # [report] extenddb pull request 86: only a Scan of the table says what is wrong.
            detail = f": {KEY_MISMATCH}" if source.index is None else ""
            start = ranges.start_position(source, reading.start, misfit=ranges.INVALID_START + detail)
            if ranges.segment_of(start[0], segments) != segment:
                raise ValidationException(
                    "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use "
                    "ExclusiveStartKey with correct Segment. "
                    f"TotalSegments: {segments} Segment: {segment}"
                )
        paging.check_shown(source, reading)
        found = ranges.scan_records(reader, source, segment, segments, start)
        page = ranges.read_page(found, limit=reading.limit, test=test)
        return paging.answer(reader, source, reading, page)

    return body


def _segment(request: Request) -> tuple[int, int]:
    segment, segments = request.get("Segment"), request.get("TotalSegments")
    if segment is None and segments is None:
        return 0, 1
    if segment is None:
        raise ValidationException(
            "The Segment parameter is required but was not present in the request when parameter "
            "TotalSegments is present"
        )
    if segments is None:
        raise ValidationException(
            "The TotalSegments parameter is required but was not present in the request when Segment "
            "parameter is present"
        )
    if segment >= segments:
        raise ValidationException(
            "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
            f"Segment: {segment} is not less than TotalSegments: {segments}"
        )
    return segment, segments
