"""Checks and compiles the parameters of a Query or a Scan, in DynamoDB's order:

    styles that do not mix; the values of placeholders; the legacy filter, then AttributesToGet; the values of
    ExclusiveStartKey; a Scan's segment or a Query's KeyConditions; the maps of placeholders; the expressions
    of the key condition, the filter and the projection; Select; placeholders that are not used; and whether
    an expression is a condition of keys

[report] dynalite's recordings, and paritysuite's captures of 2026 for the last two; the place of Select, and
the place of a Query's ExclusiveStartKey relative to its expressions, are [assumed]. A legacy parameter and
the expression that replaced it become values of the same type, so later code does not distinguish them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from hashrange import expressions
from hashrange.errors import RequestViolation, ValidationException
from hashrange.expressions import (
    Condition,
    KeyComparison,
    MapViolation,
    Projection,
    Substitutions,
    legacy,
)
from hashrange.operations import parameters
from hashrange.operations.context import Request, table_name
from hashrange.operations.reads.key_ranges import WRONG_COUNT
from hashrange.tables.items import capacity
from hashrange.tables.reads import ranges
from hashrange.values import Item, admit_item

_QUERY_EXPRESSIONS = ("ProjectionExpression", "FilterExpression", "KeyConditionExpression")
_QUERY_LEGACY = ("AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions")
_QUERY_VALUED = ("FilterExpression", "KeyConditionExpression")
_SCAN_EXPRESSIONS = ("ProjectionExpression", "FilterExpression")
_SCAN_LEGACY = ("AttributesToGet", "ScanFilter", "ConditionalOperator")
_SCAN_VALUED = ("FilterExpression",)


class Reading(msgspec.Struct, frozen=True):
    """The checked and compiled parameters of a Query or a Scan.

    `given_table` is the table as the request names it, `table` its name. `comparisons` are a Query's key
    condition; a Scan reads `segment` of `segments`. The page begins after the key `start`. `mode` says which
    consumed capacity to show. `nested` are the top-level attributes of paths in expressions that have more
    than one part.
    """

    given_table: str
    table: str
    index: str | None
    comparisons: Sequence[KeyComparison]
    segment: int
    segments: int
    start: Item | None
    filter: Condition | None
    project: Projection | None
    select: str | None
    limit: int | None
    consistent: bool
    mode: str | None
    nested: frozenset[str]

    @property
    def test(self) -> Callable[[Item], bool] | None:
        """The filter as a function, or None."""
        return self.filter.test if self.filter is not None else None


def query_reading(request: Request, scope: str, *, billed: bool) -> Reading:
    """The parameters of a Query."""
    mode = capacity.wanted(request, billed=billed)
    parameters.check_styles(request, _QUERY_EXPRESSIONS, _QUERY_LEGACY, valued=_QUERY_VALUED)
    subs = _substitutions(request, scans=False)
    test = _legacy_filter(request, "QueryFilter")
    project = _attributes_to_get(request)
    start = _start_key(request)
    text = request.get("KeyConditionExpression")
    comparisons = _legacy_key_condition(request) if text is None else []
    condition = expressions.key_condition(text, subs) if text is not None else None
    if request.get("FilterExpression") is not None:
        test = expressions.condition(request["FilterExpression"], subs, "FilterExpression")
    if request.get("ProjectionExpression") is not None:
        project = expressions.projection(request["ProjectionExpression"], subs)
    try:
        select = _select(request, project)
    except RequestViolation as error:
        # A Query reports this error with a count, a Scan without one. [report] dynoxide issue 121, extenddb
        # pull request 211
        raise error.counted() from None
    subs.check_all_used()
    if condition is not None:
        # A condition that is not a key condition is reported after unused placeholders.
        comparisons = condition.comparisons()
    return _reading(request, scope, subs, comparisons, (0, 1), test, project, select, start, mode)


def scan_reading(request: Request, scope: str, *, billed: bool) -> Reading:
    """The parameters of a Scan."""
    mode = capacity.wanted(request, billed=billed)
    parameters.check_styles(request, _SCAN_EXPRESSIONS, _SCAN_LEGACY, valued=_SCAN_VALUED)
    subs = _substitutions(request, scans=True)
    test = _legacy_filter(request, "ScanFilter")
    project = _attributes_to_get(request)
    start = _start_key(request)
    part = _segment(request)
    if request.get("FilterExpression") is not None:
        test = expressions.condition(
            request["FilterExpression"], subs, "FilterExpression", tells_size=True
        )
    if request.get("ProjectionExpression") is not None:
        project = expressions.projection(request["ProjectionExpression"], subs)
    select = _select(request, project)
    subs.check_all_used()
    return _reading(request, scope, subs, [], part, test, project, select, start, mode)


def _substitutions(request: Request, *, scans: bool) -> Substitutions:
    """The placeholders. Wrong values are reported before the errors of ExclusiveStartKey, wrong maps after
    them."""
    try:
        return parameters.substitutions(request)
    except MapViolation:
        _start_key(request)
        if scans:
            _segment(request)
        raise


def _reading(
    request: Request,
    scope: str,
    subs: Substitutions,
    comparisons: list[KeyComparison],
    part: tuple[int, int],
    test: Condition | None,
    project: Projection | None,
    select: str | None,
    start: Item | None,
    mode: str | None,
) -> Reading:
    given = request["TableName"]
    return Reading(
        given,
        table_name(given, scope),
        request.get("IndexName"),
        comparisons,
        part[0],
        part[1],
        start,
        test,
        project,
        select,
        request.get("Limit"),
        request.get("ConsistentRead") is True,
        mode,
        subs.nested,
    )


def _legacy_filter(request: Request, parameter: str) -> Condition | None:
    members = request.get(parameter)
    test = legacy.filters(members, request.get("ConditionalOperator")) if members is not None else None
    parameters.check_operator(request, members)
    return test


def _attributes_to_get(request: Request) -> Projection | None:
    names = request.get("AttributesToGet")
    return legacy.attributes_to_get(names) if names is not None else None


def _start_key(request: Request) -> Item | None:
    """The ExclusiveStartKey, with checked values."""
    start: Item | None = request.get("ExclusiveStartKey")
    if start is not None:
        try:
            admit_item(start)
        except RequestViolation as error:
            raise RequestViolation(f"{ranges.INVALID_START}: {error.message}", error.newer) from None
        except ValidationException as error:
            raise ValidationException(f"{ranges.INVALID_START}: {error.message}") from None
    return start


def _legacy_key_condition(request: Request) -> list[KeyComparison]:
    conditions = request.get("KeyConditions")
    if conditions is None:
        raise ValidationException(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."
        )
    if not conditions:
        raise ValidationException(WRONG_COUNT)
    return legacy.key_conditions(conditions)


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
