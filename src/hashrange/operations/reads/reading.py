"""Checks and compiles the parameters of a Query or a Scan, in DynamoDB's order.

A legacy parameter and the expression that replaced it become values of the same type, so later code does not
distinguish them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from hashrange import expressions
from hashrange.errors import RequestViolation, ValidationException
from hashrange.expressions import Condition, KeyComparison, Projection, Substitutions, legacy
from hashrange.operations import parameters
from hashrange.operations.context import Request, table_name
from hashrange.tables.data import capacity, ranges
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
    subs = parameters.substitutions(request)
    # The order of DynamoDB Local: errors of a legacy key condition come before those of its filter, errors of
    # an expression after them. A condition that is not one of keys is reported after unused placeholders.
    text = request.get("KeyConditionExpression")
    comparisons = _legacy_key_condition(request) if text is None else []
    test, project, select, start = _shared(request, subs, "QueryFilter")
    condition = expressions.key_condition(text, subs) if text is not None else None
    subs.check_all_used()
    if condition is not None:
        comparisons = condition.comparisons()
    return _reading(request, scope, subs, comparisons, (0, 1), test, project, select, start, mode)


def scan_reading(request: Request, scope: str, *, billed: bool) -> Reading:
    """The parameters of a Scan."""
    mode = capacity.wanted(request, billed=billed)
    parameters.check_styles(request, _SCAN_EXPRESSIONS, _SCAN_LEGACY, valued=_SCAN_VALUED)
    subs = parameters.substitutions(request)
    test, project, select, start = _shared(request, subs, "ScanFilter")
    subs.check_all_used()
    part = _segment(request)
    return _reading(request, scope, subs, [], part, test, project, select, start, mode)


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


def _legacy_key_condition(request: Request) -> list[KeyComparison]:
    conditions = request.get("KeyConditions")
    if conditions is None:
        raise ValidationException(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."
        )
    if not conditions:
        raise ValidationException("Conditions must be at least length 1")
    return legacy.key_conditions(conditions)


def _shared(
    request: Request, subs: Substitutions, filter_parameter: str
) -> tuple[Condition | None, Projection | None, str | None, Item | None]:
    """Filter, projection, Select and ExclusiveStartKey."""
    test = _filter(request, subs, filter_parameter)
    project = parameters.projection(request, subs)
    try:
        select = _select(request, project)
    except RequestViolation as error:
        # A Query reports this error with a count, a Scan without. [report] dynoxide issue 121, extenddb pull
        # request 211
        raise error.counted() if filter_parameter == "QueryFilter" else error from None
    start = request.get("ExclusiveStartKey")
    if start is not None:
        try:
            admit_item(start)
        except RequestViolation as error:
            raise RequestViolation(f"{ranges.INVALID_START}: {error.message}", error.newer) from None
        except ValidationException as error:
            raise ValidationException(f"{ranges.INVALID_START}: {error.message}") from None
    return test, project, select, start


def _filter(request: Request, subs: Substitutions, filter_parameter: str) -> Condition | None:
    text = request.get("FilterExpression")
    if text is not None:
        scans = filter_parameter == "ScanFilter"
        return expressions.condition(text, subs, "FilterExpression", tells_size=scans)
    older = request.get(filter_parameter)
    test = legacy.filters(older, request.get("ConditionalOperator")) if older is not None else None
    parameters.check_operator(request, older)
    return test


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
