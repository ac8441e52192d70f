"""A counter in many items (shards), for more additions than one item takes; the number of shards can be
changed.

Shard 0 is the item that `Counters` would use, so an existing counter may be sharded. The other shards have
their own partitions. The layout, another item, says how many there are:

    shards   how many may hold amounts: readers sum these
    open     how many are added to: writers choose among these
    epoch    changes with the layout, and with every move of an amount

These rules make the counter exact in any order of requests:

- A writer may know only an older layout. So it adds to a shard other than 0 on the condition that the shard
  exists and is not closed; a writer whose condition fails reads the layout again.
- New shards and the layout are written in one transaction. Shards are removed one by one: `open` is lowered,
  and the last shard is closed, so that its amount does not change any more. Then one transaction adds the
  amount to shard 0, deletes the shard, and changes `shards` and `epoch`. If a process dies in between, the
  next `reshard` goes on from this state.
- A reader reads the layout, the shards, and the layout again. If the epoch changed, amounts moved, and the
  reader starts again.

Refuses to decide how many shards there should be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hashrange_patterns.batches import get_all
from hashrange_patterns.counters import COUNTER_ITEM, CounterFlows, Event
from hashrange_patterns.flows import AsyncClient, Awaiting, Blocking, C, Client, Flow, Performing, performed
from hashrange_patterns.once import WEEK_SECONDS, Addition, count_once, update_of
from hashrange_patterns.requests import Runtime, get, is_condition_failure, request, unmet
from hashrange_patterns.tables import Address, Item, Table, number, table_of

SHARDS_MAX: Final = 1_000
# The shards that a transaction adds at most, beside the layout.
_ADDED_MAX: Final = 99
_REMEMBERED_MAX: Final = 10_000
_OPEN: Final = "attribute_exists(#pk) AND attribute_not_exists(#closed)"


@dataclass(frozen=True, slots=True)
class Layout:
    """How many shards a counter has."""

    shards: int = 1
    open: int = 1
    epoch: int = 0


@dataclass(slots=True)
class Layouts:
    """The layouts that a process knows; they are cached for a while. An old layout costs a failed write, but
    loses no count."""

    known_seconds: float
    known: dict[str, tuple[Layout, float]] = field(default_factory=dict)

    def get(self, name: str, now: float) -> Layout | None:
        layout, until = self.known.get(name, (None, 0.0))
        return layout if now < until else None

    def set(self, name: str, layout: Layout, now: float) -> None:
        if len(self.known) >= _REMEMBERED_MAX:
            self.known.clear()
        self.known[name] = (layout, now + self.known_seconds)

    def forget(self, name: str) -> None:
        self.known.pop(name, None)


@dataclass(frozen=True, slots=True)
class ShardedCounterFlows:
    """The logic of `ShardedCounters`."""

    counters: CounterFlows
    shards: int
    layouts: Layouts

    def __post_init__(self) -> None:
        _check_shards(self.shards)

    def add(self, name: str, by: int = 1) -> Flow[None]:
        """Add `by` to one of the counter's shards.

        Costs 1 write unit; `Counters.add` says what an error means.
        """
        runtime = self.counters.runtime
        idle = 0
        while True:
            [[addition]] = yield from self._place([Event("one", {name: by})])
            try:
                update = update_of(self.counters.table, addition)
                yield from request(runtime, "update_item", update, repeatable=False, adds=True)
                return
            except Exception as error:
                idle += 1
                if not is_condition_failure(error) or idle >= runtime.attempts_max:
                    raise
            self.layouts.forget(name)

    def once(self, name: str, by: int = 1, *, event_id: str) -> Flow[bool]:
        """Add `by` for this event; False if that was done before.

        Costs 4 write units: see `Counters.once`.
        """
        return (yield from self.count([Event(event_id, {name: by})]))[0]

    def count(self, events: Iterable[Event]) -> Flow[list[bool]]:
        """`once` for many events, as `Counters.count`.

        A counter's additions in one transaction go to one shard.
        """
        counters = self.counters
        names: dict[Address, str] = {}

        def place(events: Sequence[Event]) -> Flow[list[list[Addition]]]:
            placed = yield from self._place(events)
            for event, additions in zip(events, placed, strict=True):
                names.update(zip((addition.address for addition in additions), event.amounts, strict=True))
            return placed

        def moved(addresses: Iterable[Address]) -> None:
            for address in addresses:
                self.layouts.forget(names[address])

        table, runtime, remember_seconds = counters.table, counters.runtime, counters.remember_seconds
        return (
            yield from count_once(table, runtime, remember_seconds, events, counters.marker, place, moved)
        )

    def value(self, name: str) -> Flow[int]:
        """The sum of all shards.

        It includes everything counted before the call, and perhaps some additions made during it. Costs 2
        read units, and 1 for each shard.
        """
        runtime = self.counters.runtime
        layout = yield from self.layout(name)
        for attempt in range(runtime.attempts_max):
            addresses = [self.shard(name, shard) for shard in range(layout.shards)]
            items = yield from get_all(
                runtime,
                self.counters.table,
                addresses,
                attributes=[self.counters.attribute],
                consistent=True,
            )
            before, layout = layout, (yield from self.layout(name))
            if layout.epoch == before.epoch:
                return sum(self.counters.amount(item) for item in items.values())
            yield runtime.pause(attempt)
        raise Moving(f"the shards of {name!r} changed during each of {runtime.attempts_max} reads")

    def reshard(self, name: str, shards: int) -> Flow[None]:
        """Give the counter `shards` shards, from 1 to 1000, while it is counted and read.

        Costs 2 write units for each shard added; 10, and 2 read units, for each shard removed. If it raises,
        or its process dies, the counter is still correct; call it again.
        """
        _check_shards(shards)
        while True:
            layout = yield from self.layout(name)
            if layout.shards > layout.open:
                yield from self._drain_last(name, layout)
            elif layout.open > shards:
                yield from self._set_layout(name, layout, replace(layout, open=shards))
            elif layout.open < shards:
                target = min(shards, layout.shards + _ADDED_MAX)
                added = [self._put_shard(name, shard) for shard in range(layout.shards, target)]
                yield from self._set_layout(name, layout, Layout(target, target), added)
            else:
                self.layouts.forget(name)
                return

    def shard(self, name: str, shard: int) -> Address:
        """The address of a shard."""
        address = self.counters.address(name)
        if shard == 0:
            return address
        return Address(f"{address.partition}#{shard}", f"{address.sort}#SHARD#{self.counters.attribute}")

    def _place(self, events: Sequence[Event]) -> Flow[list[list[Addition]]]:
        """The additions of each event, to a random shard of each counter."""
        chosen: dict[str, int] = {}
        for name in dict.fromkeys(name for event in events for name in event.amounts):
            layout = yield from self._known_layout(name)
            chosen[name] = int(self.counters.runtime.chance() * layout.open)
        return [
            [self._addition(name, chosen[name], by) for name, by in event.amounts.items()] for event in events
        ]

    def _addition(self, name: str, shard: int, by: int) -> Addition:
        amounts = {self.counters.attribute: by}
        return Addition(self.shard(name, shard), amounts, _OPEN if shard else "")

    def _known_layout(self, name: str) -> Flow[Layout]:
        runtime = self.counters.runtime
        known = self.layouts.get(name, runtime.now())
        if known is not None:
            return known
        layout = yield from self.layout(name)
        if layout.epoch == 0 and self.shards > 1:
            # Never sharded: a counter begins with as many shards as the program asks for.
            yield from self.reshard(name, self.shards)
            layout = yield from self.layout(name)
        self.layouts.set(name, layout, runtime.now())
        return layout

    def _layout_address(self, name: str) -> Address:
        address = self.counters.address(name)
        return Address(address.partition, f"{address.sort}#SHARDS#{self.counters.attribute}")

    def layout(self, name: str) -> Flow[Layout]:
        """How many shards the counter has now. Costs 1 read unit."""
        item = yield from get(self.counters.runtime, self.counters.table, self._layout_address(name))
        if item is None:
            return Layout()
        return Layout(int(item["shards"]["N"]), int(item["open"]["N"]), int(item["epoch"]["N"]))

    def _set_layout(self, name: str, old: Layout, new: Layout, members: Sequence[Item] = ()) -> Flow[None]:
        """Replace the layout, and perform `members`, if nobody replaced `old` meanwhile."""
        table = self.counters.table
        item = {
            **table.key(self._layout_address(name)),
            "shards": number(new.shards),
            "open": number(new.open),
            "epoch": number(old.epoch + 1),
        }
        yield from unmet(self.counters.runtime, [{"Put": table.put(item, **_epoch_is(old))}, *members])

    def _put_shard(self, name: str, shard: int) -> Item:
        item = {**self.counters.table.key(self.shard(name, shard)), self.counters.attribute: number(0)}
        return {"Put": self.counters.table.put(item)}

    def _drain_last(self, name: str, layout: Layout) -> Flow[None]:
        """Move the last shard's amount to shard 0, and remove the shard."""
        table = self.counters.table
        last = layout.shards - 1
        shard = self.shard(name, last)
        close = table.at(
            shard, update="SET #closed = :true", condition="attribute_exists(#pk)", true={"BOOL": True}
        )
        unchanged = table.at(self._layout_address(name), **_epoch_is(layout))
        # Together with the layout: a new shard with the same number must not be closed.
        if (yield from unmet(self.counters.runtime, [{"ConditionCheck": unchanged}, {"Update": close}])):
            return
        amount = self.counters.amount((yield from get(self.counters.runtime, table, shard)))
        moved = Addition(self.shard(name, 0), {self.counters.attribute: amount})
        delete = table.at(shard, condition="attribute_exists(#closed)")
        members: list[Item] = [{"Delete": delete}, {"Update": update_of(table, moved)}]
        yield from self._set_layout(name, layout, replace(layout, shards=last), members)


class Moving(Exception):
    """A sum could not be read: amounts moved between shards during each attempt."""


def _epoch_is(layout: Layout) -> dict[str, Any]:
    """The condition, on the layout's item, that the layout has not changed: see `Table.at`."""
    if layout.epoch == 0:
        return {"condition": "attribute_not_exists(#epoch)"}
    return {"condition": "#epoch = :epoch", "epoch": layout.epoch}


def _check_shards(shards: int) -> None:
    if not 1 <= shards <= SHARDS_MAX:
        raise ValueError(f"a counter has from 1 to {SHARDS_MAX} shards, not {shards}")


class _ShardedCounters(Performing[ShardedCounterFlows, C]):
    def __init__(
        self,
        client: C,
        table: Table | str,
        shards: int,
        *,
        item: tuple[str, str] = COUNTER_ITEM,
        attribute: str = "count",
        remember_seconds: int | None = WEEK_SECONDS,
        layout_seconds: float = 60.0,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        counters = CounterFlows(table_of(table), item, attribute, remember_seconds, runtime)
        super().__init__(client, ShardedCounterFlows(counters, shards, Layouts(layout_seconds)))

    add = performed(ShardedCounterFlows.add)
    once = performed(ShardedCounterFlows.once)
    count = performed(ShardedCounterFlows.count)
    value = performed(ShardedCounterFlows.value)
    layout = performed(ShardedCounterFlows.layout)
    reshard = performed(ShardedCounterFlows.reshard)


class ShardedCounters(_ShardedCounters[Client], Blocking[ShardedCounterFlows]):
    """Counters in many items each, with a boto3 client.

    A counter begins with `shards` items; `reshard` changes that. A process learns of a change after
    `layout_seconds` at the latest, or from its first write that fails. Otherwise it works like `Counters`;
    but do not read a sharded counter with `Counters`, which sees only shard 0.
    """


class AsyncShardedCounters(_ShardedCounters[AsyncClient], Awaiting[ShardedCounterFlows]):
    """`ShardedCounters` with an aiobotocore client."""
