"""UpdateContributorInsights, DescribeContributorInsights and ListContributorInsights.

These switch the counting of keys on and off; `hashrange.insights` counts. On AWS the counts are in
CloudWatch, under the names of the rules that DescribeContributorInsights lists. There are 100 rules in a
region: insights beyond that fail after they were enabled.

Source: API reference; Developer Guide, "CloudWatch contributor insights for DynamoDB: How it works"; [report]
ack-api-quirks DDB-TABLE-089 to 097, 112, 116 and 337 to 344.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec

from hashrange.errors import RESOURCE_NOT_FOUND, ResourceNotFoundException, ValidationException
from hashrange.limits import INSIGHT_RULES_MAX, LIST_INSIGHTS_PAGE_MAX
from hashrange.operations.context import Answer, Context, ReadBody, Request, WriteBody, table_name
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog, states
from hashrange.tables.definitions.table import Index, Insights, Table

BOTH: Final = "ACCESSED_AND_THROTTLED_KEYS"

_WRONG_STATE: Final = "Table or Index is not in a valid state to update Key Access Insights: "
_TOO_MANY: Final = (
    "Amazon CloudWatch Contributor Insights rule limit reached. Please disable Contributor Insights for "
    "other tables/indexes OR disable other CloudWatch Contributor Insights rules before retrying."
)
_TOKEN: Final = re.compile("(?:[0-9a-f]{2})+").fullmatch


def prepare_update(request: Request, context: Context) -> WriteBody:
    """The body of an UpdateContributorInsights."""
    name = table_name(request["TableName"], context.scope)
    index_name = request.get("IndexName") or ""
    enables = request["ContributorInsightsAction"] == "ENABLE"
    mode = request.get("ContributorInsightsMode") or BOTH

    def body(txn: Transaction) -> Answer:
        table, index = _open(txn, name, index_name, context)
        _check_at_rest(table, index)
        before = table.insights_of(index_name)
        place = table.space if index is None else index.space
        after = _disabled(before, context)
        if enables:
            after = _enabled(txn, table, index, before, mode, place, context)
        if after is not before and after is not None:
            changed = msgspec.structs.replace(table, insights={**table.insights, index_name: after})
            catalog.save(txn, states.settled(changed, context.now, context.settings))
        return _shown(name, index_name, after)

    return body


def prepare_describe(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeContributorInsights."""
    name = table_name(request["TableName"], context.scope)
    index_name = request.get("IndexName") or ""

    def body(reader: Reader) -> Answer:
        table, index = _open(reader, name, index_name, context)
        insights = table.insights_of(index_name)
        shown = _shown(name, index_name, insights)
        if insights is None:
            return shown
        shown["LastUpdateDateTime"] = insights.changed
        if insights.status in ("ENABLED", "DISABLING") and not insights.exhausted:
            shown["ContributorInsightsRuleList"] = rules(table, index, insights)
        if insights.exhausted and insights.status != "ENABLING":
            shown["FailureException"] = {
                "ExceptionName": "LimitExceededException",
                "ExceptionDescription": _TOO_MANY,
            }
        return shown

    return body


def prepare_list(request: Request, context: Context) -> ReadBody:
    """The body of a ListContributorInsights: of one table, or of all, each before its indexes. What is
    DISABLED is not listed."""
    given = request.get("TableName")
    only = table_name(given, context.scope) if given is not None else None
    size = min(max(request.get("MaxResults") or LIST_INSIGHTS_PAGE_MAX, 1), LIST_INSIGHTS_PAGE_MAX)
    token = request.get("NextToken")
    after = _place_in(token) if token else None

    def body(reader: Reader) -> Answer:
        if only is not None:
            tables: Iterator[Table] = iter([_open(reader, only, "", context)[0]])
        else:
            tables = _tables(reader, context, after[0] if after is not None else "")
        listed = (
            (table.name, index_name, insights)
            for table in tables
            for index_name, insights in _of(table)
            if insights.status != "DISABLED" and (after is None or (table.name, index_name) > after)
        )
        page = list(islice(listed, size + 1))
        answer: Answer = {"ContributorInsightsSummaries": [_shown(*place) for place in page[:size]]}
        if len(page) > size:
            answer["NextToken"] = "\n".join(page[size - 1][:2]).encode().hex()
        return answer

    return body


def rules(table: Table, index: Index | None, insights: Insights) -> list[str]:
    """The names of the rules: for partition keys, and for sort keys if there are any; which of them are
    accessed most (C) and throttled most (T)."""
    place = table.name if index is None else f"{table.name}-{index.name}"
    kinds = ["PKC", "PKT"] if insights.mode == BOTH else ["PKT"]
    if (table.key if index is None else index.key).sort:
        kinds += ["SKC", "SKT"] if insights.mode == BOTH else ["SKT"]
    return [f"DynamoDBContributorInsights-{kind}-{place}-{insights.begun}" for kind in kinds]


def _open(reader: Reader, name: str, index_name: str, context: Context) -> tuple[Table, Index | None]:
    """The table, and the global index if one is named."""
    table = catalog.open_any(reader, name, context.scope, context.caller.region)
    if not index_name:
        return table, None
    index = table.index(index_name)
    if index is None or not index.is_global:
        raise ResourceNotFoundException(
            f"{RESOURCE_NOT_FOUND}: Index: {index_name} not found for table: {name}"
        )
    return table, index


def _check_at_rest(table: Table, index: Index | None) -> None:
    """Refuse a table that is CREATING, and an index that is. [report] DDB-TABLE-116"""
    if table.status == "CREATING":
        raise ValidationException(f"{_WRONG_STATE}TableStatus must be ACTIVE to enable ContributorInsights.")
    if index is not None and index.status == "CREATING":
        raise ValidationException(f"{_WRONG_STATE}IndexStatus must be ACTIVE to enable ContributorInsights.")


def _enabled(
    txn: Transaction,
    table: Table,
    index: Index | None,
    before: Insights | None,
    mode: Any,
    place: int,
    context: Context,
) -> Insights:
    """Insights after ENABLE, which changes nothing if the mode is the same, and else makes them ENABLING.
    [report] DDB-TABLE-092, 338 and 341"""
    now = context.now
    if before is not None and before.mode == mode and before.status in ("ENABLED", "ENABLING"):
        return before
    keeps = before is not None and before.status in ("ENABLED", "ENABLING") and not before.exhausted
    begun = before.begun if before is not None and keeps else int(now * 1_000)
    until = now + context.settings.update_seconds
    after = Insights(place, "ENABLING", mode, now, begun, until)
    index_name = "" if index is None else index.name
    others = sum(
        len(rules(other, other.index(name) if name else None, insights))
        for other in _tables(txn, context, "")
        for name, insights in _of(other)
        if insights.status in ("ENABLED", "ENABLING")
        and not insights.exhausted
        and (other.name, name) != (table.name, index_name)
    )
    exhausted = others + len(rules(table, index, after)) > INSIGHT_RULES_MAX
    return msgspec.structs.replace(after, exhausted=exhausted)


def _disabled(before: Insights | None, context: Context) -> Insights | None:
    """Insights after DISABLE."""
    if before is None or before.status in ("DISABLED", "DISABLING"):
        return before
    until = context.now + context.settings.update_seconds
    failed = before.exhausted and before.status == "FAILED"
    return msgspec.structs.replace(
        before, status="DISABLING", changed=context.now, until=until, exhausted=failed
    )


def _tables(reader: Reader, context: Context, after: str) -> Iterator[Table]:
    """The tables of the caller that have or had insights, from the one called `after` on."""
    for table in catalog.of_scope(reader, context.scope, after):
        if table.insights:
            yield table


def _of(table: Table) -> Iterator[tuple[str, Insights]]:
    """The insights of a table and of its indexes, the table first."""
    for name in sorted(table.insights):
        insights = table.insights_of(name)
        if insights is not None:
            yield name, insights


def _shown(table: str, index: str, insights: Insights | None) -> dict[str, Any]:
    """What all answers show of insights."""
    shown: dict[str, Any] = {"TableName": table}
    if index:
        shown["IndexName"] = index
    if insights is None:
        return {**shown, "ContributorInsightsStatus": "DISABLED"}
    shown["ContributorInsightsStatus"] = insights.status
    shown["ContributorInsightsMode"] = insights.mode
    return shown


def _place_in(token: str) -> tuple[str, str]:
    """The table and the index in a NextToken. The message is [assumed], as for other lists."""
    text = bytes.fromhex(token).decode("utf-8", "replace") if _TOKEN(token) else ""
    name, separator, index = text.partition("\n")
    if not separator:
        raise ValidationException(f"Invalid Request: Provided nextToken is invalid: {token}")
    return name, index
