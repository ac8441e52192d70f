"""A lock with a lease and a fence, which is safe even if clocks do not agree.

    LOCK#report   LOCK    owner, lease, fence, beat

When the holder of a lock dies, another process must get the lock. But a dead holder looks like a slow holder,
and if processes compared a time in the item with their own clocks, two of them could get the lock when their
clocks differ. So:

- A waiting process watches the item. It takes over the lock only if `fence` and `beat` have not changed for
  the holder's whole lease, by the waiting process's own clock. The holder counts its lease from before its
  request, so it knows that it has lost the lock before another process gets it, if their clocks run equally
  fast.
- A holder may pause at the wrong moment: after it checked its lease and before it writes. The fence protects
  against this. It grows with every holder, and the store that is written to can refuse a smaller fence; with
  `member` DynamoDB does this itself.

Refuses to know the protected resource, and to renew in the background: a process that holds a lock for a long
time renews it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hashrange_patterns.flows import (
    AsyncClient,
    Awaiting,
    Blocking,
    Client,
    Flow,
    Pause,
    awaiting,
    blocking,
)
from hashrange_patterns.requests import Runtime, is_condition_failure, request
from hashrange_patterns.tables import Address, Item, Table, number, table_of

_MILLIS: Final = 1_000
_NAMES: Final = {"#owner": "owner", "#fence": "fence"}


@dataclass(frozen=True, slots=True)
class Held:
    """A lock that is held.

    its fence, which no earlier holder had, and until when by this process' monotonic clock.
    """

    name: str
    owner: str
    fence: int
    beat: int
    until: float


@dataclass(frozen=True, slots=True)
class LockFlows:
    """The logic of `Locks`."""

    table: Table
    lease_seconds: float
    poll_seconds: float
    runtime: Runtime
    watched: dict[str, tuple[tuple[int, int], float]] = field(default_factory=dict)
    """The last observed state of locks that other processes hold, and since when it has not changed."""

    def acquire(self, name: str, *, wait_seconds: float = 0.0) -> Flow[Held | None]:
        """Take the lock `name`; None if others held it for `wait_seconds`.

        Costs a read unit and a write unit, and a read unit for each read while waiting. The lock of a holder
        that died is free after its lease, counted from the first read: so ask again, or wait that long.
        """
        owner = self.runtime.token()
        deadline = self.runtime.elapsed() + wait_seconds
        while True:
            item = yield from self._read(name)
            if self._is_free(name, item):
                held = yield from self._take(name, owner, item)
                if held is not None:
                    return held
            left = deadline - self.runtime.elapsed()
            if left <= 0:
                return None
            yield Pause(min(left, self.poll_seconds * (0.5 + self.runtime.chance())))

    def renew(self, held: Held) -> Flow[Held | None]:
        """Hold the lock for another lease, from now; None if another process has it: stop. Costs 1 write
        unit.

        Use the new `Held` from then on.
        """
        started_at = self.runtime.elapsed()
        beat = {":beat": number(held.beat + 1)}
        if not (yield from self._update(held, "SET #beat = :beat", beat)):
            return None
        return replace(held, beat=held.beat + 1, until=started_at + self.lease_seconds)

    def release(self, held: Held) -> Flow[bool]:
        """Release the lock; False if another process already has it. Costs 1 write unit. Safe to repeat."""
        beat = {":beat": number(held.beat + 1)}
        # (the lock may have been released by an earlier attempt whose answer was lost)
        was_released = " OR (attribute_not_exists(#owner) AND #fence = :fence)"
        return (yield from self._update(held, "SET #beat = :beat REMOVE #owner", beat, was_released))

    def is_held(self, held: Held) -> bool:
        """Whether the lease lasts, by this process' clock. Asks nobody; the next moment may be different."""
        return self.runtime.elapsed() < held.until

    def member(self, held: Held) -> Item:
        """The fence as a member of your own TransactWriteItems: it fails if another process took over the
        lock.

        Costs 2 write units there.
        """
        return {
            "ConditionCheck": {
                "TableName": self.table.name,
                "Key": self.table.key(_address(held.name)),
                "ConditionExpression": "#owner = :owner AND #fence = :fence",
                "ExpressionAttributeNames": _NAMES,
                "ExpressionAttributeValues": _values(held),
            }
        }

    def _read(self, name: str) -> Flow[Item | None]:
        key = self.table.key(_address(name))
        parameters = {"TableName": self.table.name, "Key": key, "ConsistentRead": True}
        answer = yield from request(self.runtime, "get_item", parameters, repeatable=True)
        item: Item | None = answer.get("Item")
        return item

    def _is_free(self, name: str, item: Item | None) -> bool:
        """Whether nobody holds the lock, or its holder gave no sign of life for its whole lease."""
        if item is None or "owner" not in item:
            self.watched.pop(name, None)
            return True
        now, version = self.runtime.elapsed(), _version(item)
        state, since = self.watched.get(name, (None, now))
        if state != version:
            self.watched[name] = (version, now)
            return False
        return now - since >= int(item["lease"]["N"]) / _MILLIS

    def _take(self, name: str, owner: str, item: Item | None) -> Flow[Held | None]:
        """Take a lock that is free; None if another process was faster."""
        fence, beat = _version(item)
        started_at = self.runtime.elapsed()
        parameters: dict[str, Any] = {
            "TableName": self.table.name,
            "Key": self.table.key(_address(name)),
            "UpdateExpression": "SET #owner = :owner, #fence = :next, #beat = :zero, #lease = :lease",
            "ExpressionAttributeNames": {**_NAMES, "#beat": "beat", "#lease": "lease"},
            "ExpressionAttributeValues": {
                ":owner": {"S": owner},
                ":next": number(fence + 1),
                ":zero": number(0),
                ":lease": number(self.lease_seconds * _MILLIS),
            },
        }
        # (or an earlier attempt got the lock, and its answer was lost)
        if item is None:
            parameters["ConditionExpression"] = "attribute_not_exists(#fence) OR #owner = :owner"
        else:
            parameters["ConditionExpression"] = "(#fence = :fence AND #beat = :beat) OR #owner = :owner"
            seen = {":fence": number(fence), ":beat": number(beat)}
            parameters["ExpressionAttributeValues"].update(seen)
        try:
            yield from request(self.runtime, "update_item", parameters, repeatable=True)
        except Exception as error:
            if is_condition_failure(error):
                return None
            raise
        self.watched.pop(name, None)
        return Held(name, owner, fence + 1, 0, started_at + self.lease_seconds)

    def _update(self, held: Held, expression: str, values: Item, also: str = "") -> Flow[bool]:
        parameters = {
            "TableName": self.table.name,
            "Key": self.table.key(_address(held.name)),
            "UpdateExpression": expression,
            "ConditionExpression": f"(#owner = :owner AND #fence = :fence){also}",
            "ExpressionAttributeNames": {**_NAMES, "#beat": "beat"},
            "ExpressionAttributeValues": {**_values(held), **values},
        }
        try:
            yield from request(self.runtime, "update_item", parameters, repeatable=True)
        except Exception as error:
            if is_condition_failure(error):
                return False
            raise
        return True


def _address(name: str) -> Address:
    return Address(f"LOCK#{name}", "LOCK")


def _version(item: Mapping[str, Any] | None) -> tuple[int, int]:
    """The fence and the beat; every request of a holder changes one of them."""
    return (int(item["fence"]["N"]), int(item["beat"]["N"])) if item else (0, 0)


def _values(held: Held) -> Item:
    return {":owner": {"S": held.owner}, ":fence": number(held.fence)}


class Locks(Blocking[LockFlows]):
    """Locks with a lease, with a boto3 client. While it waits, it reads the lock about every
    `poll_seconds`."""

    def __init__(
        self,
        client: Client,
        table: Table | str,
        *,
        lease_seconds: float = 30.0,
        poll_seconds: float = 1.0,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(client, LockFlows(table_of(table), lease_seconds, poll_seconds, runtime))

    def is_held(self, held: Held) -> bool:
        """Whether the lease lasts, by this process' clock. Asks nobody; the next moment may be different."""
        return self._flows.is_held(held)

    def member(self, held: Held) -> Item:
        """The fence as a member of your own TransactWriteItems: it fails if somebody took the lock over."""
        return self._flows.member(held)

    acquire = blocking(LockFlows.acquire)
    renew = blocking(LockFlows.renew)
    release = blocking(LockFlows.release)


class AsyncLocks(Awaiting[LockFlows]):
    """`Locks` with an aiobotocore client."""

    def __init__(
        self,
        client: AsyncClient,
        table: Table | str,
        *,
        lease_seconds: float = 30.0,
        poll_seconds: float = 1.0,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(client, LockFlows(table_of(table), lease_seconds, poll_seconds, runtime))

    def is_held(self, held: Held) -> bool:
        """Whether the lease lasts, by this process' clock. Asks nobody; the next moment may be different."""
        return self._flows.is_held(held)

    def member(self, held: Held) -> Item:
        """The fence as a member of your own TransactWriteItems: it fails if somebody took the lock over."""
        return self._flows.member(held)

    acquire = awaiting(LockFlows.acquire)
    renew = awaiting(LockFlows.renew)
    release = awaiting(LockFlows.release)
