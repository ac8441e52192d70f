"""Makes the answer of a Query or a Scan from a page, and refuses attributes that an index cannot show."""

from __future__ import annotations

from collections.abc import Iterator

from hashrange import pace
from hashrange.errors import ValidationException
from hashrange.operations.context import Answer, Billed
from hashrange.operations.reads.read_parameters import Reading
from hashrange.storage.api import Reader
from hashrange.tables.items import capacity, keys, records
from hashrange.tables.reads import ranges, sources
from hashrange.tables.reads.ranges import Begun, Page, ReadSource

_NONE: frozenset[str] = frozenset()


def check_attributes(source: ReadSource, reading: Reading, filter_parameter: str | None = None) -> None:
    """Refuse attributes that the filter of a Query must not have, paths into key attributes, and attributes
    that an index does not hold.

    `filter_parameter` is the parameter of a Query's filter; the filter of a Scan may have any attributes. The
    order is that of dynalite's recordings [report] up to paths into keys, and then DynamoDB Local's.
    """
    filtered = reading.filter.attributes if reading.filter is not None and filter_parameter else _NONE
    for attribute in source.key.attributes():
        if attribute.name in filtered:
            raise ValidationException(
                f"{filter_parameter} can only contain non-primary key attributes: "
                f"Primary key attribute: {attribute.name}"
            )
    index = source.index
    if (
        index is not None
        and index.is_global
        and reading.select == "ALL_ATTRIBUTES"
        and index.projection != "ALL"
    ):
        raise ValidationException(
            "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for "
            f"global secondary index {index.name} because its projection type is not ALL"
        )
    keys.check_scalars(source.table, reading.nested)
    sources.check_filter(source, filtered)
    if reading.project is not None:
        sources.check_projected(source, reading.project.attributes)


def read(
    reader: Reader,
    source: ReadSource,
    reading: Reading,
    candidates: Iterator[bytes],
    begun: Begun,
    page: Page | None,
) -> Billed:
    """The answer that shows a page of the records `candidates`, and its bill. `page` is the part of the page
    that was read before; if the turn ends, `begun` may keep it. Members are in DynamoDB's order."""
    shows = reading.select != "COUNT"
    fetches = shows and _needs_fetch(source, reading)
    project = reading.project.apply if reading.project is not None else None
    limit = reading.limit
    entries: list[bytes] = []
    if fetches:
        limit = sources.FETCHED_MAX if limit is None else min(limit, sources.FETCHED_MAX)
        candidates = sources.noted(candidates, entries)
    show = project if shows and not fetches else None
    if page is None:
        page = Page([], None if show is None else [])
    result: Answer = {}
    fetched_units = 0.0
    try:
        ranges.read_page(candidates, limit=limit, test=reading.test, show=show, page=page)
        if fetches:
            kept, fetched_units = sources.fetch(reader, source, entries, page, consistent=reading.consistent)
            result["Items"] = records.list_of(kept, project)
        elif shows:
            result["Items"] = records.list_of(page.records) if page.shown is None else page.shown
    except pace.TurnOver:
        begun.keep(source, page)
        raise
    result["Count"] = len(page.records)
    result["ScannedCount"] = page.scanned
    if page.last is not None:
        result["LastEvaluatedKey"] = ranges.key_in(source, page.last)
    if reading.mode is None:
        return result, capacity.NO_BILL
    units = capacity.read_units(page.size, consistent=reading.consistent)
    consumed = sources.consumed(reading.given_table, source, units, fetched_units)
    if reading.mode:
        result["ConsumedCapacity"] = consumed.wire(reading.mode)
    return result, (consumed,)


def _needs_fetch(source: ReadSource, reading: Reading) -> bool:
    """Whether attributes that a local index does not project must be fetched from the table."""
    index = source.index
    if index is None or index.is_global or index.projection == "ALL":
        return False
    if reading.project is not None:
        return bool(sources.missing_attributes(source, reading.project.attributes))
    return reading.select == "ALL_ATTRIBUTES"
