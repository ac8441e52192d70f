"""Plans a request for conditions: a Query on the table or index whose key they bind, or else a Scan.

A Query needs a value for each attribute of the partition key, may compare the attributes of the sort key
from left to right, and filters by the other conditions. Its filter must not use its own key, nor what an
index does not have. An index has only the items with all attributes of its key: what it leaves out is said.
Of several, the one that leaves nothing out goes first, then one with all attributes, then the narrowest.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from hashrange_console.ask.conditions import Condition, Placeholders
from hashrange_console.items.sources import Key, TableOrIndex
from hashrange_console.reach import Refused
from hashrange_console.values import Value

AUTOMATIC: Final = "*"
"""The choice of a source that leaves it to the plan."""
_RANGES: Final = ("<", "<=", ">", ">=", "between", "begins_with")


@dataclass(frozen=True, slots=True)
class Plan:
    """A request: what it reads and how, without Limit and start.

    `bound` are the conditions that the key serves, `filters` the others. `leaves_out` are attributes whose
    absence keeps an item out of the index. `whole_key`: at most one item has the key. `why_not` says of the
    other sources why they do not serve as a Query.
    """

    source: TableOrIndex
    request: dict[str, Any]
    bound: tuple[Condition, ...] = ()
    filters: tuple[Condition, ...] = ()
    leaves_out: tuple[str, ...] = ()
    whole_key: bool = False
    why_not: list[tuple[str, str]] = field(default_factory=list)

    @property
    def operation(self) -> str:
        return "Query" if self.bound else "Scan"


@dataclass(frozen=True, slots=True)
class _Binding:
    """The conditions that a source's key serves, and the others."""

    source: TableOrIndex
    bound: list[Condition]
    filters: list[Condition]
    leaves_out: tuple[str, ...]

    def rank(self) -> tuple[bool, bool, int, bool, bool]:
        source = self.source
        return (
            bool(self.leaves_out),
            source.projected is not None,
            -len(self.bound),
            bool(source.index),
            source.is_global,
        )


class _Unfit(Exception):
    """A source does not serve the conditions as a Query; the text says why."""


def plan(
    sources: Sequence[TableOrIndex],
    conditions: Sequence[Condition],
    *,
    any_of: bool = False,
    chosen: str = AUTOMATIC,
    descending: bool = False,
) -> Plan:
    """The plan for some conditions, of which all have to hold, or one (`any_of`). `chosen` is the index to
    read, "" for the table. The first source is the table. Raises `Refused`."""
    any_of = any_of and len(conditions) > 1
    offered = [source for source in sources if chosen in (AUTOMATIC, source.index)]
    if not offered:
        raise Refused(f"There is no index {chosen} that can be read.", "ResourceNotFoundException")
    fitting: list[_Binding] = []
    why_not: list[tuple[str, str]] = []
    for source in offered:
        try:
            fitting.append(_bind(source, conditions, any_of=any_of))
        except _Unfit as unfit:
            why_not.append((source.index, str(unfit)))
    if not fitting:
        return _scan(offered[0], conditions, why_not, any_of=any_of)
    best = min(fitting, key=_Binding.rank)
    return _query(best, why_not, descending=descending)


def _bind(source: TableOrIndex, conditions: Sequence[Condition], *, any_of: bool) -> _Binding:
    if any_of:
        raise _Unfit("a Query cannot read for one condition or another")
    bound: list[Condition] = []
    used: list[Condition] = []
    for name, kind in source.partition:
        equal = _equality(conditions, (name, kind))
        if equal is None:
            raise _Unfit(f"needs a value for {name} ({kind})")
        bound.append(equal)
    unbound: list[Key] = list(source.sort)
    while unbound:
        on_sort = _equality(conditions, unbound[0])
        if on_sort is None:
            narrow, used = _range(conditions, unbound[0])
            if narrow is not None:
                bound.append(narrow)
                unbound.pop(0)
            break
        bound.append(on_sort)
        unbound.pop(0)
    served = (*bound, *used)
    filters = [condition for condition in conditions if not any(condition is other for other in served)]
    _check_filter(source, filters)
    leaves_out = tuple(name for name, _ in unbound) if source.index else ()
    return _Binding(source, bound, filters, leaves_out)


def _equality(conditions: Sequence[Condition], key: Key) -> Condition | None:
    return next((condition for condition in conditions if condition.is_on(*key, "=")), None)


def _range(conditions: Sequence[Condition], key: Key) -> tuple[Condition | None, list[Condition]]:
    """The condition that narrows a sort key, and the conditions that it stands for: a lower and an upper end
    make one BETWEEN."""
    fitting = [condition for condition in conditions if condition.is_on(*key, *_RANGES)]
    fitting = [condition for condition in fitting if condition.operator != "begins_with" or key[1] != "N"]
    low = next((condition for condition in fitting if condition.operator == ">="), None)
    high = next((condition for condition in fitting if condition.operator == "<="), None)
    if low is not None and high is not None and _in_order(low.values[0], high.values[0]):
        return Condition((key[0],), "between", (*low.values, *high.values)), [low, high]
    return (fitting[0], [fitting[0]]) if fitting else (None, [])


def _in_order(low: Value, high: Value) -> bool:
    """Whether BETWEEN may have these ends."""
    try:
        return bool(_comparable(low) <= _comparable(high))
    except (InvalidOperation, ValueError):
        return False


def _comparable(value: Value) -> Any:
    match value:
        case {"N": str(number)}:
            return Decimal(number)
        case {"B": str(text)}:
            return base64.b64decode(text)
    return str(value["S"]).encode(errors="surrogatepass")


def _check_filter(source: TableOrIndex, filters: Sequence[Condition]) -> None:
    own = {name for name, _ in source.keys}
    for condition in filters:
        if condition.path[0] in own:
            raise _Unfit(f"a Query cannot filter by its own key: {condition.text}")
        if source.projected is not None and condition.path[0] not in source.projected:
            raise _Unfit(f"does not have {condition.path[0]}, which is not projected")


def _query(best: _Binding, why_not: list[tuple[str, str]], *, descending: bool) -> Plan:
    source = best.source
    placeholders = Placeholders()
    key = " AND ".join(placeholders.condition(condition) for condition in best.bound)
    request = _request(source) | {"KeyConditionExpression": key}
    if best.filters:
        request["FilterExpression"] = " AND ".join(map(placeholders.condition, best.filters))
    request |= placeholders.sent()
    if descending:
        request["ScanIndexForward"] = False
    is_equal = all(condition.operator == "=" for condition in best.bound)
    whole_key = not source.index and is_equal and len(best.bound) == len(source.keys)
    return Plan(
        source, request, tuple(best.bound), tuple(best.filters), best.leaves_out, whole_key, why_not
    )


def _scan(
    source: TableOrIndex, conditions: Sequence[Condition], why_not: list[tuple[str, str]], *, any_of: bool
) -> Plan:
    placeholders = Placeholders()
    request = _request(source)
    if conditions:
        joined = " OR " if any_of else " AND "
        request["FilterExpression"] = joined.join(map(placeholders.condition, conditions))
    request |= placeholders.sent()
    leaves_out = tuple(name for name, _ in source.keys) if source.index else ()
    return Plan(source, request, (), tuple(conditions), leaves_out, why_not=why_not)


def _request(source: TableOrIndex) -> dict[str, Any]:
    request: dict[str, Any] = {"TableName": source.table}
    if source.index:
        request["IndexName"] = source.index
    return request
