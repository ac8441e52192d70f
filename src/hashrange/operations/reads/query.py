"""Query: items of one partition of a table or index, in the order of the sort key.

Source: API reference, Query.
"""

from __future__ import annotations

from hashrange import expressions
from hashrange.errors import ValidationException
from hashrange.expressions import KeyComparison, Substitutions, legacy
from hashrange.operations import parameters
from hashrange.operations.context import Answer, Context, ReadBody, Request, table_name
from hashrange.operations.reads import key_conditions, paging
from hashrange.storage.api import Reader
from hashrange.tables.data import keys, ranges
from hashrange.tables.definitions import catalog

_EXPRESSIONS = ("ProjectionExpression", "FilterExpression", "KeyConditionExpression")
_LEGACY = ("AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions")
_VALUED = ("FilterExpression", "KeyConditionExpression")
_OUTSIDE = "The provided starting key is outside query boundaries based on provided conditions"
_NO_CONDITIONS = "Conditions must be at least length 1"
_OUT_OF_RANGE = "The provided starting key does not match the range key predicate"


def prepare(request: Request, context: Context) -> ReadBody:
    """The body of a Query."""
    parameters.check_styles(request, _EXPRESSIONS, _LEGACY, valued=_VALUED)
    subs = parameters.substitutions(request)
    # The order of DynamoDB Local: a legacy key condition before its filter, an expression after it.
    older = request.get("KeyConditionExpression") is None
    comparisons = _comparisons(request, subs) if older else []
    reading = paging.prepare(request, subs, "QueryFilter")
    if not older:
        comparisons = _comparisons(request, subs)
    subs.check_all_used()
    name = table_name(request["TableName"])
    reverse = request.get("ScanIndexForward") is False
    test = paging.test_of(reading)
    filter_parameter = "QueryFilter" if request.get("QueryFilter") is not None else "Filter Expression"

    def body(reader: Reader) -> Answer:
        table = catalog.open_active(reader, name)
        keys.check_scalars(table, subs.nested)
        source = paging.open_source(table, reading)
        selected = key_conditions.match(source, comparisons)
        start: bytes | None = None
        if reading.start is not None:
            partition, start = ranges.start_position(source, reading.start)
            if partition != selected.partition:
                raise ValidationException(_OUTSIDE)
            if start < selected.low or (selected.high is not None and start >= selected.high):
                raise ValidationException(_OUT_OF_RANGE)
        paging.check_filter(source, reading, filter_parameter)
        paging.check_shown(source, reading)
        found = ranges.query_records(
            reader, source, selected.partition, selected.low, selected.high, reverse=reverse, start=start
        )
        page = ranges.read_page(found, limit=reading.limit, test=test)
        return paging.answer(reader, source, reading, page)

    return body


def _comparisons(request: Request, subs: Substitutions) -> list[KeyComparison]:
    text = request.get("KeyConditionExpression")
    if text is not None:
        return expressions.key_condition(text, subs)
    conditions = request.get("KeyConditions")
    if conditions is not None:
        if not conditions:
            raise ValidationException(_NO_CONDITIONS)
        return legacy.key_conditions(conditions)
    raise ValidationException(
        "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."
    )
