"""What Query and Scan share: which attributes they show, what they read from, and their answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hashrange import expressions
from hashrange.errors import ValidationException
from hashrange.expressions import Condition, Projection, Substitutions, legacy
from hashrange.operations import parameters
from hashrange.operations.context import Answer, Request
from hashrange.storage.api import Reader
from hashrange.tables import capacity, indexes, keys, ranges, records
from hashrange.tables.ranges import Page, Source
from hashrange.tables.table import Table
from hashrange.values import Item, admit_item

_GSI_CONSISTENT = "Consistent reads are not supported on global secondary indexes"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a Query or Scan asks for, beside where it reads."""

    request: Request
    test: Condition | None
    project: Projection | None
    select: str | None
    limit: int | None
    consistent: bool
    mode: str | None
    start: Item | None


def prepare(request: Request, subs: Substitutions, filter_parameter: str) -> Reading:
    """Check and compile the parameters that Query and Scan have in common."""
    text = request.get("FilterExpression")
    older = request.get(filter_parameter)
    test: Condition | None = None
    if text is not None:
        test = expressions.condition(text, subs, "FilterExpression")
    else:
        parameters.check_operator(request, older)
        if older is not None:
            test = legacy.filters(older, request.get("ConditionalOperator"))
    project = parameters.projection(request, subs)
    select = _select(request, project)
    start = request.get("ExclusiveStartKey")
    if start is not None:
        try:
            admit_item(start)
        except ValidationException as error:
            raise ValidationException(f"{ranges.INVALID_START}: {error.message}") from None
    return Reading(
        request,
        test,
        project,
        select,
        request.get("Limit"),
        request.get("ConsistentRead") is True,
        capacity.wanted(request),
        start,
    )


def _select(request: Request, project: Projection | None) -> str | None:
    select: str | None = request.get("Select")
    if project is not None and select not in (None, "SPECIFIC_ATTRIBUTES"):
        what = "AttributesToGet" if request.get("AttributesToGet") is not None else "ProjectionExpression"
        raise ValidationException(
            f"Cannot specify the {what} when choosing to get "
            f"{'only the Count' if select == 'COUNT' else select}"
        )
    if select == "SPECIFIC_ATTRIBUTES" and project is None:
        raise ValidationException(
            "Must specify the AttributesToGet or ProjectionExpression when choosing to get "
            "SPECIFIC_ATTRIBUTES"
        )
    if select == "ALL_PROJECTED_ATTRIBUTES" and request.get("IndexName") is None:
        raise ValidationException(
            "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"
        )
    return select


def open_source(table: Table, reading: Reading) -> Source:
    """The table or index that a request reads from, checked against what it asks for."""
    name = reading.request.get("IndexName")
    if name is None:
        return Source(table, None)
    index = table.index(name)
    if index is None:
        raise ValidationException(f"The table does not have the specified index: {name}")
    if index.is_global:
        if reading.consistent:
            raise ValidationException(_GSI_CONSISTENT)
        if index.backfilling or index.status in ("CREATING", "DELETING"):
            raise ValidationException(
                f"Cannot read from backfilling global secondary index: {name}"
            )
        if index.projection != "ALL":
            _check_projected(table, Source(table, index), reading)
    return Source(table, index)


def _check_projected(table: Table, source: Source, reading: Reading) -> None:
    """A GSI shows only what it projects: there is no fetch from the table."""
    index = source.index
    if index is None:
        return
    if reading.select == "ALL_ATTRIBUTES":
        raise ValidationException(
            "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for "
            f"global secondary index {index.name} because its projection type is not ALL"
        )
    if reading.project is not None:
        missing = sorted(reading.project.attributes - indexes.projected_names(table, index))
        if missing:
            raise ValidationException(
                "One or more parameter values were invalid: Global secondary index "
                f"{index.name} does not project [{', '.join(missing)}]"
            )


def check_filter(source: Source, reading: Reading, parameter: str) -> None:
    """A Query's filter may not use the attributes of the key that it reads by."""
    if reading.test is None:
        return
    for attribute in source.key.attributes():
        if attribute.name in reading.test.attributes:
            raise ValidationException(
                f"{parameter} can only contain non-primary key attributes: "
                f"Primary key attribute: {attribute.name}"
            )


def answer(reader: Reader, source: Source, reading: Reading, page: Page) -> Answer:
    """The answer that shows a page. Members are in DynamoDB's order."""
    count = len(page.records)
    result: Answer = {}
    fetched_units = 0.0
    if reading.select != "COUNT":
        if _needs_fetch(source, reading):
            shown, fetched_units = _fetched(reader, source, reading, page)
        else:
            shown = _shown(page.records, page.items, reading.project)
        result["Items"] = shown
    result["Count"] = count
    result["ScannedCount"] = page.scanned
    if page.last is not None:
        item = records.item_of(page.last)
        result["LastEvaluatedKey"] = {name: item[name] for name in source.start_names()}
    if reading.mode is not None:
        consumed = capacity.Consumed(reading.request["TableName"])
        units = capacity.read_units(page.size, consistent=reading.consistent)
        if source.index is None:
            consumed.add(units)
        else:
            consumed.add_index(source.index.name, units, is_global=source.index.is_global)
            consumed.add(fetched_units)
        result["ConsumedCapacity"] = consumed.wire(reading.mode)
    return result


def _shown(found: list[bytes], decoded: list[Item] | None, project: Projection | None) -> list[Any]:
    if project is None:
        return [records.fragment_of(record) for record in found]
    show = project.apply
    return [show(item) for item in (decoded if decoded is not None else map(records.item_of, found))]


def _needs_fetch(source: Source, reading: Reading) -> bool:
    """Whether a local index must fetch from the table what it does not project."""
    index = source.index
    if index is None or index.is_global or index.projection == "ALL":
        return False
    if reading.project is not None:
        return not reading.project.attributes <= indexes.projected_names(source.table, index)
    return reading.select == "ALL_ATTRIBUTES"


def _fetched(reader: Reader, source: Source, reading: Reading, page: Page) -> tuple[list[Any], float]:
    """The page's items fetched from the table, and the units that it costs: each item rounds up."""
    table = source.table
    addresses = [
        (table.space, *keys.address_of_item(table.key, records.item_of(record))) for record in page.records
    ]
    found = [record for record in reader.get_many(addresses) if record is not None]
    units = sum(
        capacity.read_units(records.size_of(record), consistent=reading.consistent) for record in found
    )
    return _shown(found, None, reading.project), units


def test_of(reading: Reading) -> Callable[[Item], bool] | None:
    """The filter as a function, or None."""
    return reading.test.test if reading.test is not None else None
