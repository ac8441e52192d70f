"""Adds to counters exactly once per event, however often the event is delivered.

A transaction puts the event's item, on the condition that there is none, and adds to the counters. Two
mistakes are common in such programs, and avoided here:

- Only the failed condition of the event's own item means that the event was counted before. A conflict with
  another transaction, or throttling, cancels the transaction as well; it is repeated then, and the event is
  not lost.
- An answer may be lost after the commit. Because of the transaction's token, the repeated request gets the
  answer of the first one, so the event is neither counted twice nor reported as a duplicate.

Many events go into one transaction, of at most 100 items, and additions to one counter are summed: 99 events
of one counter cost 200 write units; one by one they would cost 396. If some events were counted before, the
others go into another transaction.

Refuses to know the things that are counted: a function gives the additions of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from hashrange_patterns.flows import Flow
from hashrange_patterns.requests import Runtime, failed_members, transact
from hashrange_patterns.tables import Address, Item, Table, number

TRANSACTION_ITEMS_MAX: Final = 100
WEEK_SECONDS: Final = 7 * 86_400


@dataclass(frozen=True, slots=True)
class Addition:
    """What an event adds to one item: amounts by attribute.

    `condition` guards the item where it may have gone; `expires_at` is when it may go.
    """

    address: Address
    amounts: Mapping[str, int]
    condition: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    expires_at: int | None = None


class Identified(Protocol):
    """An event, with the id that distinguishes it from all others."""

    @property
    def id(self) -> str: ...


E = TypeVar("E", bound=Identified)


class _Refused(Exception):
    """A transaction was canceled: by events that were counted before, and by counters that moved."""

    def __init__(self, error: Exception, duplicates: list[int]) -> None:
        super().__init__(str(error))
        self.error = error
        self.duplicates = duplicates


@dataclass(frozen=True, slots=True)
class Once(Generic[E]):
    """Counts events of type E exactly once.

    `marker` places an event's item, and `place` the additions of events, anew for each transaction: where
    counters move, `moved` is told of the addresses whose condition failed, and the next call of `place` gives
    others.
    """

    table: Table
    runtime: Runtime
    marker: Callable[[E], Address]
    place: Callable[[Sequence[E]], Flow[list[list[Addition]]]]
    moved: Callable[[Iterable[Address]], None]
    remember_seconds: int | None

    def count(self, events: Sequence[E]) -> Flow[list[bool]]:
        """Count `events`; for each, whether this call counted it (and not an earlier one)."""
        first = {event.id: index for index, event in reversed(list(enumerate(events)))}
        counted = [False] * len(events)
        waiting = sorted(first.values())
        idle = 0
        while waiting:
            additions = yield from self.place([events[index] for index in waiting])
            taken = _fitting(additions)
            try:
                yield from self._transact([events[index] for index in waiting[:taken]], additions[:taken])
            except _Refused as refused:
                # Neither committed nor one event fewer: a counter moved. Not for ever, or something else is
                # wrong.
                idle = 0 if refused.duplicates else idle + 1
                if idle >= self.runtime.attempts_max:
                    raise refused.error from None
                gone = {waiting[number] for number in refused.duplicates}
                waiting = [index for index in waiting if index not in gone]
            else:
                for index in waiting[:taken]:
                    counted[index] = True
                waiting = waiting[taken:]
        return counted

    def _transact(self, events: Sequence[E], additions: Sequence[list[Addition]]) -> Flow[None]:
        """Commit all of it, or raise `_Refused`."""
        merged = _merged(addition for of_event in additions for addition in of_event)
        members = [self._marker(event) for event in events]
        members += [self._update(addition) for addition in merged]
        try:
            yield from transact(self.runtime, members)
        except Exception as error:
            failed = failed_members(error)
            self.moved(merged[member - len(events)].address for member in failed if member >= len(events))
            duplicates = [member for member in failed if member < len(events)]
            raise _Refused(error, duplicates) from error

    def _marker(self, event: E) -> Item:
        item = self.table.key(self.marker(event))
        if self.remember_seconds is not None:
            item[self.table.expires_at] = number(self.runtime.now() + self.remember_seconds)
        return {
            "Put": {
                "TableName": self.table.name,
                "Item": item,
                "ConditionExpression": "attribute_not_exists(#pk)",
                "ExpressionAttributeNames": {"#pk": self.table.partition_key},
            }
        }

    def _update(self, addition: Addition) -> Item:
        return {"Update": update_of(self.table, addition)}


def update_of(table: Table, addition: Addition) -> dict[str, Any]:
    """The arguments of an UpdateItem that makes `addition`."""
    names = dict(addition.names)
    values: Item = {}
    adds = []
    for position, (attribute, amount) in enumerate(addition.amounts.items()):
        if not isinstance(amount, int):
            raise TypeError(f"a counter takes whole numbers, and {amount!r} is a {type(amount).__name__}")
        names[f"#a{position}"] = attribute
        values[f":a{position}"] = number(amount)
        adds.append(f"#a{position} :a{position}")
    expression = "ADD " + ", ".join(adds)
    if addition.expires_at is not None:
        names["#expires_at"] = table.expires_at
        values[":expires_at"] = number(addition.expires_at)
        expression += " SET #expires_at = :expires_at"
    update = {
        "TableName": table.name,
        "Key": table.key(addition.address),
        "UpdateExpression": expression,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }
    if addition.condition is not None:
        update["ConditionExpression"] = addition.condition
    return update


def _fitting(additions: Sequence[list[Addition]]) -> int:
    """How many of the events, from the first on, fit into one transaction: at least one.

    An event that is too large by itself is left for DynamoDB to refuse.
    """
    addresses: set[Address] = set()
    for number_of_events, of_event in enumerate(additions, 1):
        addresses |= {addition.address for addition in of_event}
        if number_of_events + len(addresses) > TRANSACTION_ITEMS_MAX:
            return max(1, number_of_events - 1)
    return len(additions)


def _merged(additions: Iterable[Addition]) -> list[Addition]:
    """One addition for each address: a transaction may name an item once."""
    merged: dict[Address, Addition] = {}
    for addition in additions:
        known = merged.get(addition.address)
        if known is None:
            merged[addition.address] = addition
            continue
        amounts = dict(known.amounts)
        for attribute, amount in addition.amounts.items():
            amounts[attribute] = amounts.get(attribute, 0) + amount
        merged[addition.address] = Addition(
            known.address, amounts, known.condition, known.names, known.expires_at
        )
    return list(merged.values())
