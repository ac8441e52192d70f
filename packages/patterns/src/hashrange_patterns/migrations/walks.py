"""Walks over the items of a table: one that changes them, segment by segment, and one that only looks.

A look reads a sample, or all, and says what a change would do: so it plans a change, shows its differences,
and finds what a change has left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hashrange_patterns.flows import Flow
from hashrange_patterns.migrations.edits import Change, Edit, Shape, edit_of
from hashrange_patterns.migrations.records import PARTITION, Progress, Record, Run
from hashrange_patterns.migrations.steps import described
from hashrange_patterns.requests import Runtime, is_condition_failure, request
from hashrange_patterns.tables import Item, Table

PAGE_ITEMS: Final = 100
"""Items between two notes of the progress: as many are looked at again after a kill."""
_SEGMENTS_MAX: Final = 1_000_000
_BYTES_PER_WRITE_UNIT: Final = 1_024


class Contended(Exception):
    """An item changed during each attempt to change it."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A step that changes items, in one of its directions, on a table with these keys."""

    step: Change | Shape
    up: bool
    table: Table
    keys: tuple[str, ...]
    indexes: tuple[tuple[str, ...], ...]
    items: int
    """About how many items the table has, as DescribeTable says: on AWS some hours old."""

    def edit(self, item: Item) -> Edit | None:
        """What the step does to an item; None if nothing."""
        if self._is_own(item):
            return None
        return edit_of(item, self.keys, self.step.making(self.table, up=self.up), self.step.reads)

    def _is_own(self, item: Item) -> bool:
        """Whether the item is one of the migrations' own."""
        partition = item.get(self.table.partition_key, {}).get("S")
        return partition in (PARTITION, f"LOCK#{PARTITION}")

    def seen(self, items: Sequence[Item]) -> list[Item]:
        """Those of the items that are not the migrations' own."""
        return [item for item in items if not self._is_own(item)]

    def units(self, edit: Edit, item: Item) -> int:
        """The write units of an edit, those of indexes that have the item included."""
        after = _after(item, edit)
        size = max(_size(item), _size(after))
        holding = sum(all(key in item or key in after for key in index) for index in self.indexes)
        return math.ceil(size / _BYTES_PER_WRITE_UNIT) * (1 + holding)


def walk_of(runtime: Runtime, table: Table, step: Change | Shape, *, up: bool) -> Flow[Walk]:
    """The walk of a step over `table`."""
    description = yield from described(runtime, table.name)
    keys = tuple(key["AttributeName"] for key in description["KeySchema"])
    indexes = tuple(
        tuple(key["AttributeName"] for key in index["KeySchema"])
        for index in (
            *description.get("GlobalSecondaryIndexes", ()),
            *description.get("LocalSecondaryIndexes", ()),
        )
    )
    return Walk(step, up, table, keys, indexes, description["ItemCount"])


def change_segment(run: Run, walk: Walk, record: Record, segment: int) -> Flow[Progress]:
    """Change the items of a segment, from where it was left; returns how far it is then: at its end."""
    progress = yield from run.progress(record, segment)
    while not progress.done:
        parameters: dict[str, Any] = {
            "TableName": walk.table.name,
            "Segment": segment,
            "TotalSegments": record.segments,
            "Limit": PAGE_ITEMS,
            "ConsistentRead": True,
        }
        if progress.next is not None:
            parameters["ExclusiveStartKey"] = progress.next
        page = yield from run.send("scan", parameters)
        items, changed = walk.seen(page["Items"]), 0
        for item in items:
            changed += yield from _changed(run, walk, item)
        progress = Progress(
            page.get("LastEvaluatedKey"),
            "LastEvaluatedKey" not in page,
            progress.seen + len(items),
            progress.changed + changed,
        )
        yield from run.save_progress(record, segment, progress)
    return progress


def _changed(run: Run, walk: Walk, item: Item) -> Flow[bool]:
    """Change an item; False if there is nothing to change, or no longer."""
    key = {name: item[name] for name in walk.keys}
    for attempt in range(run.runtime.attempts_max):
        edit = walk.edit(item)
        if edit is None:
            return False
        operation, parameters = edit.write(walk.table.name, run.runtime.token())
        try:
            yield from run.send(operation, parameters)
        except Exception as error:
            if not is_condition_failure(error):
                raise
        else:
            return True
        if attempt:
            yield run.runtime.pause(attempt)
        answer = yield from run.send(
            "get_item", {"TableName": walk.table.name, "Key": key, "ConsistentRead": True}
        )
        if "Item" not in answer:
            return False
        item = answer["Item"]
    raise Contended(
        f"the item {key} changed during each of {run.runtime.attempts_max} attempts: "
        "name the attributes that the change needs by Change(..., reads=[...])"
    )


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at `looked_at` items of a table found; the other numbers are estimates of the whole table,
    unless `is_complete`."""

    items: int = 0
    looked_at: int = 0
    to_change: int = 0
    read_units: float = 0.0
    write_units: float = 0.0
    is_complete: bool = True
    differences: tuple[tuple[Item, Mapping[str, tuple[Any, Any]]], ...] = ()
    """The keys of some items, and by attribute the values before and after."""


def look(runtime: Runtime, walks: Sequence[Walk], *, sample: int | None, show: int = 0) -> Flow[Look]:
    """What the last of `walks`, after the others, would change, by a sample of about so many items or by all;
    with the differences of `show` items.

    The walks are over one table. The items of a sample are those of segments that chance names.
    """
    walk = walks[-1]
    total = 1 if sample is None else min(max(walk.items // PAGE_ITEMS, 1), _SEGMENTS_MAX)
    found, left = Look(), list(range(total))
    while left and (sample is None or found.looked_at < sample):
        segment = left.pop(int(runtime.chance() * len(left)))
        parameters: dict[str, Any] = {
            "TableName": walk.table.name,
            "Segment": segment,
            "TotalSegments": total,
            "ConsistentRead": True,
            "ReturnConsumedCapacity": "TOTAL",
        }
        while sample is None or found.looked_at < sample:
            if sample is not None:
                parameters["Limit"] = sample - found.looked_at
            page = yield from request(runtime, "scan", parameters, repeatable=True)
            read = page.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
            found = _looked(replace(found, read_units=found.read_units + read), walks, page["Items"], show)
            if "LastEvaluatedKey" not in page:
                break
            parameters["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        else:
            left.append(segment)  # (not read to its end)
            break
    if not left:
        return replace(found, items=found.looked_at)
    share = max(walk.items, found.looked_at) / found.looked_at
    return replace(
        found,
        items=max(walk.items, found.looked_at),
        to_change=round(found.to_change * share),
        read_units=found.read_units * share,
        write_units=found.write_units * share,
        is_complete=False,
    )


def _looked(found: Look, walks: Sequence[Walk], items: Sequence[Item], show: int) -> Look:
    """`found`, and what more items add."""
    *earlier, walk = walks
    seen = walk.seen(items)
    to_change, units, differences = found.to_change, found.write_units, list(found.differences)
    for item in seen:
        for one in earlier:
            if item and (edit := one.edit(item)):
                item = _after(item, edit)
        if item and (edit := walk.edit(item)):
            to_change += 1
            units += walk.units(edit, item)
            if len(differences) < show:
                differences.append((edit.key, edit.differences))
    return replace(
        found,
        looked_at=found.looked_at + len(seen),
        to_change=to_change,
        write_units=units,
        differences=tuple(differences),
    )


def _after(item: Item, edit: Edit) -> Item:
    """The whole item after an edit, which may have seen only a part of it; empty if it is deleted."""
    if not edit.after:
        return {}
    return {name: value for name, value in item.items() if name not in edit.before} | edit.after


def _size(item: Mapping[str, Any]) -> int:
    """About the bytes of an item."""
    return sum(len(name.encode()) + _size_of_value(value) for name, value in item.items())


def _size_of_value(attribute: Mapping[str, Any]) -> int:
    [(kind, value)] = attribute.items()
    match kind:
        case "S":
            return len(value.encode())
        case "B":
            return len(value)
        case "N":
            return len(value) // 2 + 1
        case "SS" | "NS" | "BS":
            return sum(_size_of_value({kind[0]: member}) for member in value)
        case "M":
            return 3 + _size(value) + len(value)
        case "L":
            return 3 + sum(1 + _size_of_value(member) for member in value)
    return 1
