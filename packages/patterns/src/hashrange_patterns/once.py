"""Adds to counters exactly once per event, however often the event is delivered.

A transaction puts the event's item, on the condition that there is none, and adds to the counters. Such
programs often make two mistakes, which are avoided here:

- Only the failed condition of the event's own item means that the event was counted before. A conflict with
  another transaction, or throttling, cancels the transaction as well; it is repeated then, and the event is
  not lost.
- An answer may be lost after the commit. Because of the transaction's token, the repeated request gets the
  answer of the first one, so the event is neither counted twice nor reported as a duplicate.

Many events go into one transaction, of at most 100 items, and additions to the same counter are summed: 99
events of a counter cost 200 write units; one by one they would cost 396. If some events were counted before,
the others go into another transaction.

Refuses to know what is counted: a function gives the additions of events.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from hashrange_patterns.flows import Flow
from hashrange_patterns.requests import Runtime, failed_members, transact
from hashrange_patterns.tables import Address, Item, Table, number

TRANSACTION_ITEMS_MAX: Final = 100
WEEK_SECONDS: Final = 7 * 86_400
# A partition key holds 2,048 bytes.
_ID_BYTES_MAX: Final = 1_024


@dataclass(frozen=True, slots=True)
class Addition:
    """What an event adds to an item: amounts by attribute.

    `condition` guards an item that may have been removed; `expires_at` is when it may expire.
    """

    address: Address
    amounts: Mapping[str, int]
    condition: str = ""
    expires_at: int | None = None


def check_event(event_id: str, amounts: Mapping[str, int]) -> None:
    """Raise ValueError for an event without an id, or without additions."""
    if not event_id:
        raise ValueError("an event needs an id of its own, and this event's id is empty")
    if not amounts:
        raise ValueError(f"the event {event_id!r} adds to no counter")


def marker_of(scope: tuple[str, ...], event_id: str) -> Address:
    """The address of an event's item: a partition of its own, so that events do not make a counter hot.

    `scope` says what is counted: the events of different scopes are different, whatever their ids. Its last
    part is readable in the key. An id that is too long for a key is represented by its digest.
    """
    beginning = f"EVENT#{scope[-1]}#{_digest(chr(0).join(scope))[:12]}"
    if len(event_id.encode()) > _ID_BYTES_MAX:
        return Address(f"{beginning}#{_digest(event_id)}", "DIGEST")
    return Address(f"{beginning}#{event_id}", "EVENT")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


E = TypeVar("E")


def count_once(
    table: Table,
    runtime: Runtime,
    remember_seconds: int | None,
    events: Iterable[E],
    marker: Callable[[E], Item],
    place: Callable[[Sequence[E]], Flow[list[list[Addition]]]],
    moved: Callable[[Iterable[Address]], None] = lambda _: None,
) -> Flow[list[bool]]:
    """Count each of `events` exactly once; for each, whether this call counted it (and not an earlier one).

    `marker` gives an event's item, whose key distinguishes it from all others. `place` gives the additions of
    events, again for each transaction: if counters have moved, `moved` is called with the addresses whose
    conditions failed, and the next call of `place` gives others.
    """

    def put_marker(event: E) -> Item:
        item = dict(marker(event))
        if remember_seconds is not None:
            item[table.expires_at] = number(runtime.now() + remember_seconds)
        return {"Put": table.put(item, condition="attribute_not_exists(#pk)")}

    events = list(events)
    addresses = [table.address(marker(event)) for event in events]
    first = {address: index for index, address in reversed(list(enumerate(addresses)))}
    counted = [False] * len(events)
    waiting = sorted(first.values())
    idle = 0
    while waiting:
        additions = yield from place([events[index] for index in waiting])
        fitting = _fitting(additions)
        batch = waiting[:fitting]
        merged = _merged(addition for of_event in additions[:fitting] for addition in of_event)
        members = [put_marker(events[index]) for index in batch]
        members += [{"Update": update_of(table, addition)} for addition in merged]
        try:
            yield from transact(runtime, members)
        except Exception as error:
            failed = failed_members(error)
            moved(merged[member - fitting].address for member in failed if member >= fitting)
            duplicates = {batch[member] for member in failed if member < fitting}
            # No event was counted before, so a counter must have moved. If this repeats, something else
            # is wrong.
            idle = 0 if duplicates else idle + 1
            if idle >= runtime.attempts_max:
                raise
            waiting = [index for index in waiting if index not in duplicates]
        else:
            for index in batch:
                counted[index] = True
            waiting = waiting[fitting:]
    return counted


def update_of(table: Table, addition: Addition) -> dict[str, Any]:
    """The arguments of an UpdateItem that makes `addition`."""
    names, values = {}, {}
    for place, (attribute, amount) in enumerate(addition.amounts.items()):
        if not isinstance(amount, int):
            raise TypeError(f"a counter takes whole numbers, and {amount!r} is a {type(amount).__name__}")
        names[f"a{place}"], values[f"a{place}"] = attribute, number(amount)
    update = "ADD " + ", ".join(f"#{place} :{place}" for place in names)
    if addition.expires_at is not None:
        values["expires_at"] = number(addition.expires_at)
        update += " SET #expires_at = :expires_at"
    return table.at(addition.address, names, update=update, condition=addition.condition, **values)


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
        earlier = merged.get(addition.address)
        if earlier is None:
            merged[addition.address] = addition
            continue
        amounts = dict(earlier.amounts)
        for attribute, amount in addition.amounts.items():
            amounts[attribute] = amounts.get(attribute, 0) + amount
        merged[addition.address] = replace(earlier, amounts=amounts)
    return list(merged.values())
