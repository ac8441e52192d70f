"""Counters that lose no addition and count none twice; if that is uncertain, they raise an error.

`Counters` keeps each counter in one attribute of one item:

- `add` is one UpdateItem, 1 write unit. Concurrent additions are all counted. If the answer is lost, nobody
  knows whether the addition was counted: `add` raises the error and does not repeat the request.
- `once` and `count` count an event exactly once, however often it is delivered: see the module `once`.

One item takes about 1,000 write units a second, as a partition does. `sharded` has counters for more.

    counters = Counters(client, "blog")
    counters.once("/home", event_id="2026-11-22T10:00:00Z#reader7#/home")   # True: it counts
    counters.once("/home", event_id="2026-11-22T10:00:00Z#reader7#/home")   # False: it was counted
    counters.value("/home")                                        # 1
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hashrange_patterns.batches import get_all
from hashrange_patterns.flows import AsyncClient, Awaiting, Blocking, C, Client, Flow, Performing, performed
from hashrange_patterns.once import WEEK_SECONDS, Addition, check_event, count_once, marker_of, update_of
from hashrange_patterns.requests import Runtime, check_seconds, request
from hashrange_patterns.tables import Address, Item, Table, table_of

COUNTER_ITEM: Final = ("COUNTER#{name}", "TOTAL")


@dataclass(frozen=True, slots=True)
class Event:
    """An event, with its additions to counters.

    `id` distinguishes it from all other events, and is the same in every delivery: for a page view, for
    example, the page, the time and the reader. It must not be a random identifier from the receiver, because
    then each delivery would count as a new event.

    If the program keeps events as items anyway, `item` is that item, as attribute values: its key takes the
    place of the id, which is ignored, and counting puts it.
    """

    id: str
    amounts: Mapping[str, int]
    item: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_event(self.id if self.item is None else "item", self.amounts)


@dataclass(frozen=True, slots=True)
class CounterFlows:
    """The logic of `Counters`."""

    table: Table
    item: tuple[str, str]
    attribute: str
    remember_seconds: int | None
    runtime: Runtime

    def __post_init__(self) -> None:
        check_seconds("remember_seconds", self.remember_seconds)
        if "{name}" not in self.item[0]:
            raise ValueError(
                f"the partition key {self.item[0]!r} must contain {{name}}: all counters are one"
            )

    def address(self, name: str) -> Address:
        """The address of the counter `name`."""
        return Address(self.item[0].format(name=name), self.item[1].format(name=name))

    def add(self, name: str, by: int = 1) -> Flow[int]:
        """Add `by` to the counter `name`, which starts at 0; returns its new value.

        Costs 1 write unit for each KB of the item. Do not repeat it blindly: after an error other than
        throttling, the addition may have been counted. Configure the client not to repeat it either
        (`Config(retries={"total_max_attempts": 1})`), or use `once`.
        """
        update = update_of(self.table, Addition(self.address(name), {self.attribute: by}))
        parameters = {**update, "ReturnValues": "UPDATED_NEW"}
        answer = yield from request(self.runtime, "update_item", parameters, repeatable=False, adds=True)
        return int(answer["Attributes"][self.attribute]["N"])

    def once(self, name: str, by: int = 1, *, event_id: str) -> Flow[bool]:
        """Add `by` to the counter `name` for this event; False if anybody has done so before.

        Costs 4 write units, even for an event that was counted before. Repeats after conflicts and
        throttling; after any error, calling it again with this `event_id` is safe. Events are forgotten after
        `remember_seconds`.
        """
        return (yield from self.count([Event(event_id, {name: by})]))[0]

    def count(self, events: Iterable[Event]) -> Flow[list[bool]]:
        """`once` for many events; returns for each event whether this call counted it.

        Costs 2 write units for each event and 2 for each counter in a transaction of up to 100 items: 2.02
        for each event if all belong to one counter. If it raises, some events may have been counted: call it
        again with all events.
        """
        return (
            yield from count_once(
                self.table, self.runtime, self.remember_seconds, events, self.marker, self._place
            )
        )

    def value(self, name: str, *, consistent: bool = False) -> Flow[int]:
        """The counter's value, 0 if nothing was counted. Costs half a read unit, or 1 if consistent."""
        values = yield from self.values([name], consistent=consistent)
        return values[name]

    def values(self, names: Iterable[str], *, consistent: bool = False) -> Flow[dict[str, int]]:
        """The values of many counters, not necessarily of the same moment.

        Costs half a read unit each, or 1 if consistent.
        """
        addresses = {name: self.address(name) for name in names}
        items = yield from get_all(
            self.runtime, self.table, addresses.values(), attributes=[self.attribute], consistent=consistent
        )
        return {name: self.amount(items.get(address)) for name, address in addresses.items()}

    def amount(self, item: Item | None) -> int:
        """The counter's value in its item."""
        return int(item[self.attribute]["N"]) if item and self.attribute in item else 0

    def marker(self, event: Event) -> Item:
        """The item that shows that an event was counted."""
        if event.item is not None:
            return dict(event.item)
        return self.table.key(marker_of(("counter", *self.item, self.attribute), event.id))

    def _place(self, events: Sequence[Event]) -> Flow[list[list[Addition]]]:
        yield from ()
        return [
            [Addition(self.address(name), {self.attribute: by}) for name, by in event.amounts.items()]
            for event in events
        ]


class _Counters(Performing[CounterFlows, C]):
    def __init__(
        self,
        client: C,
        table: Table | str,
        *,
        item: tuple[str, str] = COUNTER_ITEM,
        attribute: str = "count",
        remember_seconds: int | None = WEEK_SECONDS,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(client, CounterFlows(table_of(table), item, attribute, remember_seconds, runtime))

    add = performed(CounterFlows.add)
    once = performed(CounterFlows.once)
    count = performed(CounterFlows.count)
    value = performed(CounterFlows.value)
    values = performed(CounterFlows.values)


class Counters(_Counters[Client], Blocking[CounterFlows]):
    """Counters in one item each, with a boto3 client.

    `item` gives the key of a counter's item, and `attribute` the attribute of this item that holds the
    counter, so a counter can be part of an item that the program has anyway. The keys of events' items depend
    on both, so two kinds of counters (views, likes) may count events with the same id.
    The items of events expire after `remember_seconds` (a week; None: never); an event that is delivered
    after that counts again.
    """


class AsyncCounters(_Counters[AsyncClient], Awaiting[CounterFlows]):
    """`Counters` with an aiobotocore client."""
