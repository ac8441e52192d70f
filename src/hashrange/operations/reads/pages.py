"""Makes the answer of a Query or a Scan from a page, and refuses attributes that an index cannot show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hashrange.errors import ValidationException
from hashrange.operations.context import Answer, Billed
from hashrange.operations.reads.reading import Reading
from hashrange.storage.api import Reader
from hashrange.tables.data import capacity, keys, ranges, records, sources
from hashrange.tables.data.ranges import Begun, Source
from hashrange.values import Item

_NONE: frozenset[str] = frozenset()


def check_attributes(source: Source, reading: Reading, filter_parameter: str | None = None) -> None:
    """Refuse attributes that the filter of a Query must not have, that are keys and no maps, or that an index
    does not hold.

    `filter_parameter` is the one that a Query has; the filter of a Scan may have any attributes. [report]
    dynalite's recordings for all that comes before paths into keys; the rest is DynamoDB Local's order.
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
    reader: Reader, source: Source, reading: Reading, found: Iterator[bytes], begun: Begun | None
) -> Billed:
    """The answer that shows a page of what is `found`, after what was `begun`, and its bill. Members are in
    DynamoDB's order."""
    shows = reading.select != "COUNT"
    fetches = shows and _needs_fetch(source, reading)
    project = reading.project.apply if reading.project is not None else None
    entries: list[bytes] = []
    if fetches:
        found = sources.noted(found, entries)
    show = project if shows and not fetches else None
    # A page that fetches begins again if its turn ends: its `entries` are not those of the records alone.
    space = None if fetches else source.space
    page = ranges.read_page(
        found, limit=reading.limit, test=reading.test, show=show, space=space, begun=begun
    )
    count = len(page.records)
    result: Answer = {}
    fetched_units = 0.0
    if shows:
        kept = page.records
        if fetches:
            kept, fetched_units = sources.fetch(reader, source, entries, kept, consistent=reading.consistent)
        result["Items"] = _shown(kept, project) if page.shown is None else page.shown
    result["Count"] = count
    result["ScannedCount"] = page.scanned
    if page.last is not None:
        item = records.item_of(page.last)
        result["LastEvaluatedKey"] = {name: item[name] for name in source.start_names()}
    if reading.mode is None:
        return result, capacity.NO_BILL
    units = capacity.read_units(page.size, consistent=reading.consistent)
    consumed = sources.consumed(reading.given_table, source, units, fetched_units)
    if reading.mode:
        result["ConsumedCapacity"] = consumed.wire(reading.mode)
    return result, (consumed,)


def _shown(found: list[bytes], project: Callable[[Item], Item] | None) -> list[Any]:
    if project is None:
        return records.fragments_of(found)
    return [records.shown(record, project) for record in found]


def _needs_fetch(source: Source, reading: Reading) -> bool:
    """Whether attributes that a local index does not project must be fetched from the table."""
    index = source.index
    if index is None or index.is_global or index.projection == "ALL":
        return False
    if reading.project is not None:
        return bool(sources.missing_attributes(source, reading.project.attributes))
    return reading.select == "ALL_ATTRIBUTES"
