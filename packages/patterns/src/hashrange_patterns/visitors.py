"""Unique visitors per page and day: exact, with an item for each visitor, or approximate, with a sketch.

`UniqueVisitors` puts an item for each visitor, page and day, and counts it in the same transaction. It is
exact, and can list the visitors; a first visit costs 4 write units, a repeated visit half a read unit.

`ApproximateVisitors` keeps one HyperLogLog sketch for each page and day (Apache DataSketches, in a binary
attribute, about 2 KB), with a standard error of 1.6 percent for any number of visitors. Visitors are added
in batches; a batch costs one read and one write, and no write if it has no new visitor. Sketches can be
merged: merging the sketches of a month's days counts each visitor of the month once. Merging twice changes
nothing, so a lost answer does no harm. Needs `datasketches`.

    visitors = UniqueVisitors(client, "blog")
    visitors.seen("/home", "reader7", at)      # True: new that day
    visitors.count("/home", at.date())         # 1

Refuses to know visitors: a visitor is any text that stands for one person.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from hashrange_patterns.batches import get_all, query_all, sort_between
from hashrange_patterns.flows import AsyncClient, Awaiting, Blocking, Client, Flow, awaiting, blocking
from hashrange_patterns.once import WEEK_SECONDS, Addition, update_of
from hashrange_patterns.requests import (
    Runtime,
    check_seconds,
    failed_members,
    is_condition_failure,
    request,
    transact,
)
from hashrange_patterns.tables import Address, Item, Table, number, table_of, utc

if TYPE_CHECKING:
    from datasketches import hll_sketch

LG_REGISTERS: Final = 12  # 4,096 registers of 4 bits: 2,092 bytes when full
_ERROR_STANDARD_DEVIATIONS: Final = 2
_VISITOR: Final = "V#"
_AFTER_VISITORS: Final = "V$"


@dataclass(frozen=True, slots=True)
class UniqueVisitorFlows:
    """The logic of `UniqueVisitors`."""

    table: Table
    prefix: str
    remember_seconds: int | None
    runtime: Runtime

    def __post_init__(self) -> None:
        if self.remember_seconds is not None:
            check_seconds("remember_seconds", self.remember_seconds)

    def seen(self, page: str, visitor: str, at: datetime) -> Flow[bool]:
        """Count `visitor` for `page` on the day of `at`, in UTC; False if that was done before.

        Costs 4.5 capacity units the first time: half a read unit and 4 write units. After that it costs half
        a read unit. Safe to call again after any error. Raises ValueError for a day whose visitors may be
        forgotten.
        """
        day = utc(at).date()
        partition = self._partition(page, day)
        marker = Address(partition, _VISITOR + visitor)
        expires_at = self._expires_at(day)
        if (yield from self._get(marker)) is not None:
            return False
        item = self.table.key(marker)
        if expires_at is not None:
            item[self.table.expires_at] = number(expires_at)
        put = {
            "TableName": self.table.name,
            "Item": item,
            "ConditionExpression": "attribute_not_exists(#pk)",
            "ExpressionAttributeNames": {"#pk": self.table.partition_key},
        }
        count = update_of(self.table, Addition(Address(partition, "COUNT"), {"count": 1}))
        try:
            yield from transact(self.runtime, [{"Put": put}, {"Update": count}])
        except Exception as error:
            failed_members(error)
            return False
        return True

    def count(self, page: str, day: date, *, consistent: bool = False) -> Flow[int]:
        """How many visitors `page` had on `day`. Costs half a read unit, or 1 if consistent. It never
        expires."""
        item = yield from self._get(Address(self._partition(page, day), "COUNT"), consistent)
        return int(item["count"]["N"]) if item else 0

    def visitors(self, page: str, day: date) -> Flow[list[str]]:
        """Who visited `page` on `day`, in the order of their names, until they are forgotten.

        Costs half a read unit for each 4 KB of visitors' items, each of which has about 100 bytes.
        """
        parameters = sort_between(self.table, self._partition(page, day), _VISITOR, _AFTER_VISITORS)
        items = yield from query_all(self.runtime, parameters)
        return [self.table.address(item).sort.removeprefix(_VISITOR) for item in items]

    def _partition(self, page: str, day: date) -> str:
        return f"{self.prefix}#{day.isoformat()}#{page}"

    def _expires_at(self, day: date) -> int | None:
        """When the visitors of `day` are forgotten. From then on a repeated visit would count again."""
        if self.remember_seconds is None:
            return None
        ends = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
        expires_at = int(ends.timestamp()) + self.remember_seconds
        if expires_at <= self.runtime.now():
            raise ValueError(
                f"the visitors of {day.isoformat()} are forgotten {self.remember_seconds} seconds after that "
                "day: whether this one is new is not known; give a larger remember_seconds"
            )
        return expires_at

    def _get(self, address: Address, consistent: bool = False) -> Flow[Item | None]:
        parameters: dict[str, Any] = {
            "TableName": self.table.name,
            "Key": self.table.key(address),
            "ConsistentRead": consistent,
        }
        answer = yield from request(self.runtime, "get_item", parameters, repeatable=True)
        item: Item | None = answer.get("Item")
        return item


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated number; the true number is from `low` to `high` with a probability of 95 percent."""

    count: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ApproximateVisitorFlows:
    """The logic of `ApproximateVisitors`."""

    table: Table
    prefix: str
    runtime: Runtime

    def add(self, page: str, day: date, visitors: Iterable[str]) -> Flow[None]:
        """Add `visitors` to the sketch of `page` and `day`.

        Costs 1 read unit, and 3 write units for a full sketch (1 below about 100 visitors), none if it does
        not change. Writers that collide repeat the write one after the other: let few processes add, each in
        batches. Safe to repeat.
        """
        added = _empty()
        for visitor in visitors:
            added.update(visitor)
        address = self._address(page, day)
        for attempt in range(self.runtime.attempts_max):
            item = (yield from self._items([address], consistent=True)).get(address)
            merged = _union([added] if item is None else [_sketch(item), added])
            if item is not None and merged == item["sketch"]["B"]:
                return
            try:
                yield from request(
                    self.runtime, "put_item", self._put(address, item, merged), repeatable=True
                )
            except Exception as error:
                # (or this was our own write, whose answer was lost: then the next read finds nothing to add)
                if not is_condition_failure(error) or attempt + 1 == self.runtime.attempts_max:
                    raise
            else:
                return
            yield self.runtime.pause(attempt)

    def count(self, page: str, first: date, last: date | None = None) -> Flow[Estimate]:
        """About how many visitors `page` had from the day `first` to the day `last`.

        Both days are included, and each visitor is counted once. Costs half a read unit for each day and 4
        KB.
        """
        last = first if last is None else last
        days = [first + timedelta(days=day) for day in range((last - first).days + 1)]
        if not days:
            raise ValueError(f"the last day, {last.isoformat()}, is before the first, {first.isoformat()}")
        items = yield from self._items([self._address(page, day) for day in days], consistent=False)
        if not items:
            return Estimate(0.0, 0.0, 0.0)
        union = _deserialize(_union(_sketch(item) for item in items.values()))
        return Estimate(
            union.get_estimate(),
            union.get_lower_bound(_ERROR_STANDARD_DEVIATIONS),
            union.get_upper_bound(_ERROR_STANDARD_DEVIATIONS),
        )

    def _address(self, page: str, day: date) -> Address:
        return Address(f"{self.prefix}#{page}", f"SKETCH#{day.isoformat()}")

    def _items(self, addresses: list[Address], *, consistent: bool) -> Flow[dict[Address, Item]]:
        return (yield from get_all(self.runtime, self.table, addresses, consistent=consistent))

    def _put(self, address: Address, old: Item | None, sketch: bytes) -> dict[str, Any]:
        """The arguments of a PutItem of the sketch, if nobody replaced `old` meanwhile."""
        version = int(old["version"]["N"]) if old is not None else 0
        item = {**self.table.key(address), "sketch": {"B": sketch}, "version": number(version + 1)}
        put: dict[str, Any] = {
            "TableName": self.table.name,
            "Item": item,
            "ConditionExpression": "attribute_not_exists(#version)" if old is None else "#version = :version",
            "ExpressionAttributeNames": {"#version": "version"},
        }
        if old is not None:
            put["ExpressionAttributeValues"] = {":version": number(version)}
        return put


def _empty() -> hll_sketch:
    try:
        from datasketches import hll_sketch, tgt_hll_type
    except ImportError as error:
        raise ImportError(
            "approximate visitors need datasketches, which is not installed; "
            "install it with: pip install datasketches"
        ) from error
    return hll_sketch(LG_REGISTERS, tgt_hll_type.HLL_4)


def _union(sketches: Iterable[hll_sketch]) -> bytes:
    """The union of `sketches`, as bytes. Equal sketches have equal bytes."""
    from datasketches import hll_union, tgt_hll_type

    union = hll_union(LG_REGISTERS)
    for sketch in sketches:
        union.update(sketch)
    result: bytes = union.get_result(tgt_hll_type.HLL_4).serialize_compact()
    return result


def _sketch(item: Item) -> hll_sketch:
    return _deserialize(item["sketch"]["B"])


def _deserialize(data: bytes) -> hll_sketch:
    from datasketches import hll_sketch

    return hll_sketch.deserialize(bytes(data))


class UniqueVisitors(Blocking[UniqueVisitorFlows]):
    """Exact unique visitors, with a boto3 client.

    Visitors are forgotten `remember_seconds` after the end of their day.
    """

    def __init__(
        self,
        client: Client,
        table: Table | str,
        *,
        prefix: str = "VISITORS",
        remember_seconds: int | None = WEEK_SECONDS,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(client, UniqueVisitorFlows(table_of(table), prefix, remember_seconds, runtime))

    seen = blocking(UniqueVisitorFlows.seen)
    count = blocking(UniqueVisitorFlows.count)
    visitors = blocking(UniqueVisitorFlows.visitors)


class AsyncUniqueVisitors(Awaiting[UniqueVisitorFlows]):
    """`UniqueVisitors` with an aiobotocore client."""

    def __init__(
        self,
        client: AsyncClient,
        table: Table | str,
        *,
        prefix: str = "VISITORS",
        remember_seconds: int | None = WEEK_SECONDS,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(client, UniqueVisitorFlows(table_of(table), prefix, remember_seconds, runtime))

    seen = awaiting(UniqueVisitorFlows.seen)
    count = awaiting(UniqueVisitorFlows.count)
    visitors = awaiting(UniqueVisitorFlows.visitors)


class ApproximateVisitors(Blocking[ApproximateVisitorFlows]):
    """Approximate unique visitors, with a boto3 client."""

    def __init__(
        self,
        client: Client,
        table: Table | str,
        *,
        prefix: str = "SKETCHES",
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(client, ApproximateVisitorFlows(table_of(table), prefix, runtime))

    add = blocking(ApproximateVisitorFlows.add)
    count = blocking(ApproximateVisitorFlows.count)


class AsyncApproximateVisitors(Awaiting[ApproximateVisitorFlows]):
    """`ApproximateVisitors` with an aiobotocore client."""

    def __init__(
        self,
        client: AsyncClient,
        table: Table | str,
        *,
        prefix: str = "SKETCHES",
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(client, ApproximateVisitorFlows(table_of(table), prefix, runtime))

    add = awaiting(ApproximateVisitorFlows.add)
    count = awaiting(ApproximateVisitorFlows.count)
