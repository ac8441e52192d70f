"""What the table remembers of migrations, and the run that changes it.

    MIGRATIONS        <revision>                     as `Record`, and serial
    MIGRATIONS        <revision>#<pass>#<segment>    next (a key), done, seen, changed, fence
    LOCK#MIGRATIONS   LOCK                           see `locks`

A run holds the lock. It claims a revision by writing its fence, so that late writes of earlier runs are
refused, and then reads how far they came. Each walk over the items is a pass with items of its own for its
segments, so that a late item of an earlier pass means nothing.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hashrange_patterns.batches import delete_all, query_all
from hashrange_patterns.flows import Answer, Flow, Pause
from hashrange_patterns.locks import Holding, Lost
from hashrange_patterns.requests import Runtime, get, is_condition_failure, is_met, is_passing, request
from hashrange_patterns.tables import Address, Item, Table, number

PARTITION: Final = "MIGRATIONS"
_NUMBERS: Final = ("step", "passes", "segments", "seen", "changed", "at", "fence")
_NEWER: Final = "#fence < :fence OR (#fence = :fence AND #serial <= :serial)"


@dataclass(frozen=True, slots=True)
class Record:
    """How far a revision is. `state` is "up" or "down" under way, "applied", or "" for not applied.

    `step` is the number of the step under way. `passes` counts the walks that were begun. `seen` and
    `changed` are the items of the steps that are done; `at` is when it was applied, in seconds.
    """

    revision: str
    state: str = ""
    step: int = 0
    passes: int = 0
    segments: int = 0
    digest: str = ""
    seen: int = 0
    changed: int = 0
    at: int = 0
    fence: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a segment of a pass is: the key to go on behind, None at the start."""

    next: Item | None = None
    done: bool = False
    seen: int = 0
    changed: int = 0


class Stopped(Exception):
    """Another segment of the run has failed."""


class Pace:
    """At most so many units a second, reads and writes together; None for no limit. Threads share it."""

    def __init__(self, units_per_second: float | None) -> None:
        if units_per_second is not None and units_per_second <= 0:
            raise ValueError(f"{units_per_second} units a second allow no request: give more than 0")
        self._rate = units_per_second
        self._free_at = 0.0
        self._lock = threading.Lock()

    def spend(self, units: float, now: float) -> None:
        """Note what a request cost."""
        if self._rate is not None:
            with self._lock:
                self._free_at = max(self._free_at, now) + units / self._rate

    def wait_seconds(self, now: float) -> float:
        """How long to wait before the next request."""
        return max(0.0, self._free_at - now)


@dataclass(slots=True)
class Run:
    """Work under the lock, with requests that keep to the pace and wait out a table that is throttled."""

    table: Table
    runtime: Runtime
    holding: Holding
    lease_seconds: float
    pace: Pace
    stopped: threading.Event = field(default_factory=threading.Event)
    _serial: Any = field(default_factory=itertools.count)
    _renew_at: float = -1.0
    _renewing: Any = field(default_factory=threading.Lock)

    def keep(self) -> Flow[None]:
        """Renew the lock in time. Raises `Lost`, and `Stopped` if another segment failed."""
        while True:
            if self.stopped.is_set():
                raise Stopped
            now = self.runtime.elapsed()
            if self._renew_at < 0:
                self._renew_at = now + self.lease_seconds / 3
            if now < self._renew_at and self.holding.is_held:
                return
            # (one thread renews; the others go on while the lease lasts)
            if self._renewing.acquire(blocking=False):
                try:
                    if not (yield from self.holding.renew()):
                        raise Lost("another run took over the lock of the migrations: this one stops")
                    self._renew_at = self.runtime.elapsed() + self.lease_seconds / 3
                finally:
                    self._renewing.release()
            if self.holding.is_held:
                return
            yield Pause(min(1.0, self.lease_seconds / 10))

    def send(self, operation: str, parameters: Mapping[str, Any]) -> Flow[Answer]:
        """Send a request that may be repeated, at the pace of the run, until the table takes it."""
        failures = 0
        while True:
            yield from self.keep()
            while (wait := self.pace.wait_seconds(self.runtime.elapsed())) > 0:
                yield Pause(min(wait, self.lease_seconds / 3))
                yield from self.keep()
            try:
                answer = yield from request(
                    self.runtime,
                    operation,
                    {**parameters, "ReturnConsumedCapacity": "TOTAL"},
                    repeatable=True,
                )
            except Exception as error:
                self.pace.spend(1.0, self.runtime.elapsed())
                if not is_passing(error):
                    raise
                yield self.runtime.pause(failures)
                failures += 1
                continue
            units = answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
            self.pace.spend(units, self.runtime.elapsed())
            return answer

    def claim(self, revision: str) -> Flow[Record]:
        """Refuse the late writes of earlier runs to a revision's item, and read it. Raises `Lost`."""
        claimed = self._write(revision, {}, "SET #fence = :fence, #serial = :serial")
        claimed["ReturnValues"] = "ALL_NEW"
        try:
            answer = yield from request(self.runtime, "update_item", claimed, repeatable=True)
        except Exception as error:
            if is_condition_failure(error):
                raise Lost(f"another run took over {revision}: this one stops") from error
            raise
        return record_in(self.table, answer["Attributes"])

    def save(self, record: Record) -> Flow[None]:
        """Write a revision's item. Raises `Lost` if another run has claimed it."""
        values = {name: {"N": str(getattr(record, name))} for name in _NUMBERS if name != "fence"}
        values |= {"state": {"S": record.state}, "digest": {"S": record.digest}}
        update = "SET #fence = :fence, #serial = :serial, " + ", ".join(f"#{one} = :{one}" for one in values)
        written = self._write(record.revision, values, update)
        if not (yield from self._patiently(lambda: is_met(self.runtime, "update_item", written))):
            raise Lost(f"another run took over {record.revision}: this one stops")

    def progress(self, record: Record, segment: int) -> Flow[Progress]:
        """How far a segment of the pass under way is."""
        address = segment_address(record, segment)
        item = yield from self._patiently(lambda: get(self.runtime, self.table, address))
        return Progress() if item is None else progress_in(item)

    def save_progress(self, record: Record, segment: int, progress: Progress) -> Flow[None]:
        """Note how far a segment is, unless something later is noted."""
        values: dict[str, Any] = {
            "done": {"BOOL": progress.done},
            "seen": progress.seen,
            "changed": progress.changed,
            "fence": self.holding.fence,
            **({} if progress.next is None else {"next": {"M": progress.next}}),
        }
        written = self.table.at(
            segment_address(record, segment),
            update="SET " + ", ".join(f"#{name} = :{name}" for name in values),
            condition="attribute_not_exists(#seen) OR (#fence <= :fence AND #seen <= :seen)",
            **values,
        )
        yield from self._patiently(lambda: is_met(self.runtime, "update_item", written))

    def clear(self, record: Record) -> Flow[None]:
        """Delete the items of the segments of a pass that is over."""
        addresses = [segment_address(record, segment) for segment in range(record.segments)]
        yield from self._patiently(lambda: delete_all(self.runtime, self.table, addresses))

    def _patiently(self, make: Callable[[], Flow[Any]]) -> Flow[Any]:
        """The result of a flow that is made again while the table is throttled or cannot be reached."""
        for failures in itertools.count():
            yield from self.keep()
            try:
                return (yield from make())
            except Exception as error:
                if not is_passing(error):
                    raise
            yield self.runtime.pause(failures)
        return None

    def _write(self, revision: str, values: Mapping[str, Any], update: str) -> dict[str, Any]:
        return self.table.at(
            Address(PARTITION, revision),
            update=update,
            condition=f"attribute_not_exists(#fence) OR {_NEWER}",
            fence=self.holding.fence,
            serial=next(self._serial),
            **values,
        )


def segment_address(record: Record, segment: int) -> Address:
    """The address of the progress of a segment of the pass under way."""
    return Address(PARTITION, f"{record.revision}#{record.passes}#{segment:05}")


def records(runtime: Runtime, table: Table) -> Flow[tuple[dict[str, Record], list[Item]]]:
    """The records by revision, and the items of segments."""
    parameters = {**table.query(PARTITION), "ConsistentRead": True}
    items = yield from query_all(runtime, parameters)
    of_segments = [item for item in items if "#" in table.address(item).sort]
    found = [record_in(table, item) for item in items if "#" not in table.address(item).sort]
    return {record.revision: record for record in found}, of_segments


def record_in(table: Table, item: Mapping[str, Any]) -> Record:
    """The record in an item."""
    numbers: dict[str, Any] = {name: int(item.get(name, number(0))["N"]) for name in _NUMBERS}
    texts = {name: item.get(name, {}).get("S", "") for name in ("state", "digest")}
    return replace(Record(table.address(item).sort), **texts, **numbers)


def progress_in(item: Mapping[str, Any]) -> Progress:
    """The progress in an item of a segment."""
    return Progress(
        item.get("next", {}).get("M"),
        item["done"]["BOOL"],
        int(item["seen"]["N"]),
        int(item["changed"]["N"]),
    )
