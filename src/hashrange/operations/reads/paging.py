"""What Query and Scan share: which attributes they show, what they read from, and their answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from hashrange import expressions, pace
from hashrange.errors import RequestViolation, ValidationException
from hashrange.expressions import Condition, Projection, Substitutions, legacy
from hashrange.operations import parameters
from hashrange.operations.context import Answer, Request
from hashrange.storage.api import Reader
from hashrange.tables.data import capacity, ranges, records, sources
from hashrange.tables.data.ranges import Page, Source
from hashrange.tables.definitions.table import Table
from hashrange.values import Item, admit_item


class Reading(msgspec.Struct, frozen=True):
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
        scans = filter_parameter == "ScanFilter"
        test = expressions.condition(text, subs, "FilterExpression", tells_size=scans)
    else:
        if older is not None:
            test = legacy.filters(older, request.get("ConditionalOperator"))
        parameters.check_operator(request, older)
    project = parameters.projection(request, subs)
    try:
        select = _select(request, project)
    except RequestViolation as error:
        # [report] dynoxide issue 121, extenddb pull request 211: a Query counts it, a Scan does not.
        raise error.counted() if filter_parameter == "QueryFilter" else error from None
    start = request.get("ExclusiveStartKey")
    if start is not None:
        try:
            admit_item(start)
        except RequestViolation as error:
            raise RequestViolation(f"{ranges.INVALID_START}: {error.message}", error.newer) from None
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
        raise RequestViolation(
            f"Cannot specify the {what} when choosing to get "
            f"{'only the Count' if select == 'COUNT' else select}"
        )
    if select == "SPECIFIC_ATTRIBUTES" and project is None:
        raise RequestViolation(
            "Must specify the AttributesToGet or ProjectionExpression when choosing to get "
            "SPECIFIC_ATTRIBUTES"
        )
    if select == "ALL_PROJECTED_ATTRIBUTES" and request.get("IndexName") is None:
        raise RequestViolation("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
    return select


def open_source(table: Table, reading: Reading) -> Source:
    """The table or index that a request reads from."""
    return sources.open_source(table, reading.request.get("IndexName"), consistent=reading.consistent)


def check_shown(source: Source, reading: Reading) -> None:
    """Refuse to show what a global index does not hold. DynamoDB Local looks at this last."""
    index = source.index
    if index is None or not index.is_global:
        return
    if reading.select == "ALL_ATTRIBUTES" and index.projection != "ALL":
        raise ValidationException(
            "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for "
            f"global secondary index {index.name} because its projection type is not ALL"
        )
    if reading.project is not None:
        sources.check_projected(source, reading.project.attributes)


def check_filter(source: Source, reading: Reading, parameter: str) -> None:
    """A Query's filter may use neither the key that it reads by nor what its index does not project."""
    if reading.test is None:
        return
    for attribute in source.key.attributes():
        if attribute.name in reading.test.attributes:
            raise ValidationException(
                f"{parameter} can only contain non-primary key attributes: "
                f"Primary key attribute: {attribute.name}"
            )
    sources.check_filter(source, reading.test.attributes)


def answer(reader: Reader, source: Source, reading: Reading, page: Page) -> Answer:
    """The answer that shows a page. Members are in DynamoDB's order."""
    count = len(page.records)
    result: Answer = {}
    fetched_units = 0.0
    if reading.select != "COUNT":
        if _needs_fetch(source, reading):
            found, fetched_units = sources.fetch(reader, source, page.records, consistent=reading.consistent)
            shown = _shown(found, None, reading.project)
        else:
            shown = _shown(page.records, page.items, reading.project)
        result["Items"] = shown
    result["Count"] = count
    result["ScannedCount"] = page.scanned
    if page.last is not None:
        item = records.item_of(page.last)
        result["LastEvaluatedKey"] = {name: item[name] for name in source.start_names()}
    if reading.mode is not None:
        units = capacity.read_units(page.size, consistent=reading.consistent)
        consumed = sources.consumed(reading.request["TableName"], source, units, fetched_units)
        result["ConsumedCapacity"] = consumed.wire(reading.mode)
    return result


def _shown(found: list[bytes], decoded: list[Item] | None, project: Projection | None) -> list[Any]:
    if project is None:
        return records.fragments_of(found)
    show = project.apply
    shown = []
    for number, record in enumerate(found):
        pace.point()
        shown.append(show(decoded[number] if decoded is not None else records.item_of(record)))
    return shown


def _needs_fetch(source: Source, reading: Reading) -> bool:
    """Whether a local index must fetch from the table what it does not project."""
    index = source.index
    if index is None or index.is_global or index.projection == "ALL":
        return False
    if reading.project is not None:
        return bool(sources.missing_attributes(source, reading.project.attributes))
    return reading.select == "ALL_ATTRIBUTES"


def test_of(reading: Reading) -> Callable[[Item], bool] | None:
    """The filter as a function, or None."""
    return reading.test.test if reading.test is not None else None
