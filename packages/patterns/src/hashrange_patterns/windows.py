"""Counts per minute, hour and day, exactly once per event, and sums over any range of time.

An event adds to two items of its counter:

    COUNTER#/home   DAY#2026-11-22       count, and h00 to h23
    COUNTER#/home   HOUR#2026-11-22T13   count, and m00 to m59

So days, hours and minutes need only two items. A sum over a range uses the coarsest counts that fit: `count`
of whole days, the hours at the ends of the range from the same items, and the minutes at the ends from two
items of hours. A year and a half of a counter is one Query of about 100 KB, however much was counted.

Days, hours and minutes are in UTC. An event counts for the time at which it happened (`at`), not for its
arrival, so the order in which events arrive does not matter.

Refuses to know other grains, and time zones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias

from hashrange_patterns.batches import query_all
from hashrange_patterns.flows import AsyncClient, Awaiting, Blocking, C, Client, Flow, Performing, performed
from hashrange_patterns.once import WEEK_SECONDS, Addition, check_event, count_once, marker_of
from hashrange_patterns.requests import Runtime, check_seconds
from hashrange_patterns.tables import Address, Item, Table, table_of, utc

Grain: TypeAlias = Literal["minute", "hour", "day"]

_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
_DAY_FORM: Final = "DAY#%Y-%m-%d"
_HOUR_FORM: Final = "HOUR#%Y-%m-%dT%H"
_WIDTHS: Final[dict[Grain, timedelta]] = {"minute": _MINUTE, "hour": _HOUR, "day": _DAY}


@dataclass(frozen=True, slots=True)
class TimedEvent:
    """An event with its time and its additions to counters. For `id` see `Event`."""

    id: str
    at: datetime
    amounts: Mapping[str, int]

    def __post_init__(self) -> None:
        check_event(self.id, self.amounts)
        utc(self.at)


@dataclass(frozen=True, slots=True)
class Bucket:
    """The count of a minute, an hour or a day that begins at `start`."""

    start: datetime
    count: int


@dataclass(frozen=True, slots=True)
class WindowedCounterFlows:
    """The logic of `WindowedCounters`."""

    table: Table
    prefix: str
    remember_seconds: int | None
    minutes_kept_seconds: int | None
    runtime: Runtime

    def __post_init__(self) -> None:
        check_seconds("remember_seconds", self.remember_seconds)
        check_seconds("minutes_kept_seconds", self.minutes_kept_seconds)

    def once(self, name: str, at: datetime, by: int = 1, *, event_id: str) -> Flow[bool]:
        """Add `by` to the counter `name` at the time `at`, for this event; False if that was done before.

        Costs 6 write units. Otherwise as `Counters.once`.
        """
        return (yield from self.count([TimedEvent(event_id, at, {name: by})]))[0]

    def count(self, events: Iterable[TimedEvent]) -> Flow[list[bool]]:
        """`once` for many events; returns for each event whether this call counted it.

        Costs 2 write units for each event, and 4 for each counter and hour in a transaction of up to 100
        items: 2.04 for each event if all belong to one counter and hour.
        """
        return (
            yield from count_once(
                self.table, self.runtime, self.remember_seconds, events, self._marker, self._place
            )
        )

    def total(self, name: str, start: datetime, end: datetime, *, consistent: bool = False) -> Flow[int]:
        """The count from `start` up to but not including `end`, both on whole minutes.

        Costs half a read unit for each 4 KB read, or 1 if consistent: about 250 bytes for each day, and 500
        for each hour that is only partly in the range, two at most. Raises ValueError if it needs minutes
        that have expired.
        """
        start, end = self._range(start, end, "minute")
        whole_start, whole_end = _up(start, _HOUR), _down(end, _HOUR)
        if whole_start > whole_end:  # within one hour
            return sum((yield from self._counts(name, "minute", start, end, consistent)).values())
        hours = yield from self._counts(name, "hour", whole_start, whole_end, consistent)
        minutes = yield from self._counts(name, "minute", start, whole_start, consistent)
        rest = yield from self._counts(name, "minute", whole_end, end, consistent)
        return sum(hours.values()) + sum(minutes.values()) + sum(rest.values())

    def series(
        self, name: str, start: datetime, end: datetime, grain: Grain, *, consistent: bool = False
    ) -> Flow[list[Bucket]]:
        """The counts per minute, hour or day from `start` up to but not including `end`, with zeros.

        Costs as much as `total`; for minutes it reads the items of all hours.
        """
        start, end = self._range(start, end, grain)
        counts = yield from self._counts(name, grain, start, end, consistent)
        width = _WIDTHS[grain]
        moments = (start + place * width for place in range((end - start) // width))
        return [Bucket(moment, counts.get(moment, 0)) for moment in moments]

    def _range(self, start: datetime, end: datetime, grain: Grain) -> tuple[datetime, datetime]:
        start, end = utc(start), utc(end)
        for moment in (start, end):
            if _down(moment, _WIDTHS[grain]) != moment:
                raise ValueError(f"{moment.isoformat()} is not the beginning of a {grain} in UTC")
        if start > end:
            raise ValueError(f"the range ends at {end.isoformat()}, before it begins at {start.isoformat()}")
        return start, end

    def _counts(
        self, name: str, grain: Grain, start: datetime, end: datetime, consistent: bool
    ) -> Flow[dict[datetime, int]]:
        """The counts of the minutes, hours or days from `start` up to `end`, without zeros."""
        if start == end:
            return {}
        kept = self.minutes_kept_seconds
        if grain == "minute" and kept is not None and start.timestamp() < self.runtime.now() - kept:
            raise ValueError(
                f"minutes are kept for {kept} seconds: those from {start.isoformat()} on may be gone; "
                "ask for whole hours"
            )
        form, width = (_HOUR_FORM, _HOUR) if grain == "minute" else (_DAY_FORM, _DAY)
        low, high = (_written(form, moment) for moment in (start, end - timedelta(microseconds=1)))
        sort = "#sk BETWEEN :low AND :high"
        parameters = self.table.query(self._partition(name), sort=sort, low=low, high=high)
        counts = {}
        for item in (yield from query_all(self.runtime, {**parameters, "ConsistentRead": consistent})):
            begin = datetime.strptime(self.table.address(item).sort, form).replace(tzinfo=UTC)
            for part in range(width // _WIDTHS[grain]):
                attribute = "count" if grain == "day" else f"{grain[0]}{part:02}"
                moment = begin + part * _WIDTHS[grain]
                if attribute in item and start <= moment < end:
                    counts[moment] = int(item[attribute]["N"])
        return counts

    def _partition(self, name: str) -> str:
        return f"{self.prefix}#{name}"

    def _marker(self, event: TimedEvent) -> Item:
        return self.table.key(marker_of(("window", self.prefix), event.id))

    def _place(self, events: Sequence[TimedEvent]) -> Flow[list[list[Addition]]]:
        yield from ()
        return [list(self._additions(event)) for event in events]

    def _additions(self, event: TimedEvent) -> Iterator[Addition]:
        at = utc(event.at)
        expires_at = None
        if self.minutes_kept_seconds is not None:
            # (an hour later, so that its last minute is kept as long as its first)
            expires_at = int(_up(at + _MINUTE, _HOUR).timestamp()) + self.minutes_kept_seconds
        for name, by in event.amounts.items():
            partition = self._partition(name)
            day = Address(partition, _written(_DAY_FORM, at))
            hour = Address(partition, _written(_HOUR_FORM, at))
            yield Addition(day, {"count": by, at.strftime("h%H"): by})
            yield Addition(hour, {"count": by, at.strftime("m%M"): by}, expires_at=expires_at)


def _written(form: str, moment: datetime) -> str:
    """A moment as a part of a key: `strftime` does not fill years before 1000 up everywhere."""
    return moment.strftime(form.replace("%Y", f"{moment.year:04}"))


def _down(moment: datetime, width: timedelta) -> datetime:
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + (moment - midnight) // width * width


def _up(moment: datetime, width: timedelta) -> datetime:
    down = _down(moment, width)
    return down if down == moment else down + width


class _WindowedCounters(Performing[WindowedCounterFlows, C]):
    def __init__(
        self,
        client: C,
        table: Table | str,
        *,
        prefix: str = "WINDOWED",
        remember_seconds: int | None = WEEK_SECONDS,
        minutes_kept_seconds: int | None = None,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        flows = WindowedCounterFlows(table_of(table), prefix, remember_seconds, minutes_kept_seconds, runtime)
        super().__init__(client, flows)

    once = performed(WindowedCounterFlows.once)
    count = performed(WindowedCounterFlows.count)
    total = performed(WindowedCounterFlows.total)
    series = performed(WindowedCounterFlows.series)


class WindowedCounters(_WindowedCounters[Client], Blocking[WindowedCounterFlows]):
    """Counters per minute, hour and day, with a boto3 client.

    Items of days stay. Items of hours, which hold the minutes, expire `minutes_kept_seconds` after their hour
    (None: never). Items of events expire after `remember_seconds`, as with `Counters`. Counters with the same
    `prefix` count the event with an id once.
    """


class AsyncWindowedCounters(_WindowedCounters[AsyncClient], Awaiting[WindowedCounterFlows]):
    """`WindowedCounters` with an aiobotocore client."""
