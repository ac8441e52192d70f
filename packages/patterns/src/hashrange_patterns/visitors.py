"""Unique visitors per page and day, with an item for each visitor.

The item of a visitor, page and day is put and counted in one transaction, so each counts once. A first visit
costs 4 write units, a repeated visit half a read unit.

    visitors = UniqueVisitors(client, "blog")
    visitors.seen("/home", "reader7", at)      # True: new that day
    visitors.count("/home", at.date())         # 1

Refuses to know visitors: a visitor is any text that stands for one person.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from hashrange_patterns.batches import query_all
from hashrange_patterns.flows import AsyncClient, Awaiting, Blocking, C, Client, Flow, Performing, performed
from hashrange_patterns.once import WEEK_SECONDS, Addition, update_of
from hashrange_patterns.requests import Runtime, check_seconds, get, unmet
from hashrange_patterns.tables import Address, Table, number, table_of, utc

_VISITOR: Final = "V#"


@dataclass(frozen=True, slots=True)
class UniqueVisitorFlows:
    """The logic of `UniqueVisitors`."""

    table: Table
    prefix: str
    remember_seconds: int | None
    runtime: Runtime

    def __post_init__(self) -> None:
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
        if (yield from get(self.runtime, self.table, marker, consistent=False)) is not None:
            return False
        item = self.table.key(marker)
        if expires_at is not None:
            item[self.table.expires_at] = number(expires_at)
        put = self.table.put(item, condition="attribute_not_exists(#pk)")
        count = update_of(self.table, Addition(Address(partition, "COUNT"), {"count": 1}))
        return not (yield from unmet(self.runtime, [{"Put": put}, {"Update": count}]))

    def count(self, page: str, day: date, *, consistent: bool = False) -> Flow[int]:
        """How many visitors `page` had on `day`. Costs half a read unit, or 1 if consistent. It never
        expires."""
        address = Address(self._partition(page, day), "COUNT")
        item = yield from get(self.runtime, self.table, address, consistent=consistent)
        return int(item["count"]["N"]) if item else 0

    def visitors(self, page: str, day: date) -> Flow[list[str]]:
        """Who visited `page` on `day`, in the order of their names, until they are forgotten.

        Costs half a read unit for each 4 KB of visitors' items, each of which has about 100 bytes.
        """
        partition = self._partition(page, day)
        parameters = self.table.query(partition, sort="begins_with(#sk, :visitor)", visitor=_VISITOR)
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


class _UniqueVisitors(Performing[UniqueVisitorFlows, C]):
    def __init__(
        self,
        client: C,
        table: Table | str,
        *,
        prefix: str = "VISITORS",
        remember_seconds: int | None = WEEK_SECONDS,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(client, UniqueVisitorFlows(table_of(table), prefix, remember_seconds, runtime))

    seen = performed(UniqueVisitorFlows.seen)
    count = performed(UniqueVisitorFlows.count)
    visitors = performed(UniqueVisitorFlows.visitors)


class UniqueVisitors(_UniqueVisitors[Client], Blocking[UniqueVisitorFlows]):
    """Exact unique visitors, with a boto3 client.

    Visitors are forgotten `remember_seconds` after the end of their day.
    """


class AsyncUniqueVisitors(_UniqueVisitors[AsyncClient], Awaiting[UniqueVisitorFlows]):
    """`UniqueVisitors` with an aiobotocore client."""
