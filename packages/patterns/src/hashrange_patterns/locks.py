"""A lock with a lease and a fence, which is safe even if clocks do not agree.

    LOCK#report   LOCK    owner, lease, until, fence, beat

When the holder of a lock dies, another process must get the lock. But a dead holder looks like a slow holder,
and if processes compared the end of its lease with their own clocks, two of them could get the lock when
their clocks differ. So a process takes the lock over in one of two cases:

- It watched the item, and `fence` and `beat` did not change for the holder's whole lease, by the waiting
  process's own clock. The holder counts its lease from before its request, so it knows that it has lost the
  lock before another process gets it, if their clocks run equally fast.
- The lease is over by `skew_seconds` or more, by the wall clocks of both, which may differ by that much. So a
  process that has just been started gets the lock of one that died long ago.

And:

- A holder may pause at the wrong moment: after it checked its lease and before it writes. The fence protects
  against this. It grows with every holder, and the store that is written to can refuse a smaller fence; with
  `member` DynamoDB does this itself.

Refuses to know the protected resource.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hashrange_patterns.flows import (
    AsyncClient,
    Awaiting,
    Blocking,
    C,
    Client,
    Flow,
    Pause,
    Performing,
    performed,
)
from hashrange_patterns.leases import Leases
from hashrange_patterns.requests import Runtime, check_seconds, get, is_met
from hashrange_patterns.tables import Address, Item, Table, table_of

_log = logging.getLogger(__name__)

_MILLIS: Final = 1_000
_HELD: Final = "(#owner = :owner AND #fence = :fence)"


@dataclass(frozen=True, slots=True)
class Held:
    """A lock that is held: its fence, which no earlier holder had, and the end of its lease by this process'
    monotonic clock."""

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
    skew_seconds: float
    runtime: Runtime
    watched: dict[str, tuple[tuple[int, int], float]] = field(default_factory=dict)
    """The last observed state of locks that other processes hold, and since when it has not changed."""

    def __post_init__(self) -> None:
        check_seconds("lease_seconds", self.lease_seconds)
        check_seconds("poll_seconds", self.poll_seconds)
        check_seconds("skew_seconds", self.skew_seconds, zero=True)

    def acquire(self, name: str, *, wait_seconds: float = 0.0) -> Flow[Held | None]:
        """Take the lock `name`; None if others held it for `wait_seconds`.

        Costs a read unit and a write unit, and a read unit for each read while waiting. The lock of a holder
        that died is free after its lease to a process that waits, counted from its first read; and to all
        after its lease and `skew_seconds`.
        """
        check_seconds("wait_seconds", wait_seconds, zero=True)
        owner = self.runtime.token()
        deadline = self.runtime.elapsed() + wait_seconds
        while True:
            item = yield from get(self.runtime, self.table, _address(name))
            if self._is_free(name, item):
                held = yield from self._take(name, owner, item)
                if held is not None and not self.is_held(held):
                    held = yield from self.renew(held)  # (the answer came after the lease)
                if held is not None and self.is_held(held):
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
        # A request that arrives late must not undo a later renewal, even one of the same `Held`.
        beat = max(held.beat + 1, int(started_at * _MILLIS))
        update, condition = "SET #beat = :beat, #until = :until", f"{_HELD} AND #beat <= :beat"
        renewed = self._with(held, update=update, condition=condition, beat=beat, until=self._wall_end())
        if not (yield from is_met(self.runtime, "update_item", renewed)):
            return None
        return replace(held, beat=beat, until=started_at + self.lease_seconds)

    def release(self, held: Held) -> Flow[bool]:
        """Release the lock; False if another process already has it. Costs 1 write unit. Safe to repeat."""
        # (the lock may have been released by an earlier attempt whose answer was lost)
        condition = f"{_HELD} OR (attribute_not_exists(#owner) AND #fence = :fence)"
        update = "SET #beat = :beat REMOVE #owner"
        released = self._with(held, update=update, condition=condition, beat=held.beat + 1)
        return (yield from is_met(self.runtime, "update_item", released))

    def is_held(self, held: Held) -> bool:
        """Whether the lease lasts, by this process' clock. Asks nobody; the next moment may be different."""
        return self.runtime.elapsed() < held.until

    def member(self, held: Held) -> Item:
        """The fence as a member of your own TransactWriteItems: it fails if another process took over the
        lock.

        Costs 2 write units there.
        """
        return {"ConditionCheck": self._with(held, condition=_HELD)}

    def _is_free(self, name: str, item: Item | None) -> bool:
        """Whether nobody holds the lock, or its holder gave no sign of life for its whole lease."""
        if item is None or "owner" not in item:
            self.watched.pop(name, None)
            return True
        now, version = self.runtime.elapsed(), _version(item)
        until = int(item["until"]["N"]) / _MILLIS if "until" in item else math.inf
        if self.runtime.now() >= until + self.skew_seconds:
            return True
        state, since = self.watched.get(name, (None, now))
        if state != version:
            self.watched[name] = (version, now)
            return False
        return now - since >= int(item["lease"]["N"]) / _MILLIS

    def _take(self, name: str, owner: str, item: Item | None) -> Flow[Held | None]:
        """Take a lock that is free; None if another process was faster."""
        fence, beat = _version(item)
        started_at = self.runtime.elapsed()
        taken = self.table.at(
            _address(name),
            update="SET #owner = :owner, #fence = :next, #beat = :zero, #lease = :lease, #until = :until",
            # (the last: an earlier attempt got the lock, its answer was lost, and it was not renewed since)
            condition="attribute_not_exists(#fence) OR (#fence = :fence AND #beat = :beat) "
            "OR (#owner = :owner AND #beat = :zero)",
            owner=owner,
            fence=fence,
            beat=beat,
            next=fence + 1,
            zero=0,
            lease=self.lease_seconds * _MILLIS,
            until=self._wall_end(),
        )
        if not (yield from is_met(self.runtime, "update_item", taken)):
            return None
        self.watched.pop(name, None)
        return Held(name, owner, fence + 1, 0, started_at + self.lease_seconds)

    def _wall_end(self) -> float:
        """The end of a lease that begins now, by the wall clock, in milliseconds."""
        return (self.runtime.now() + self.lease_seconds) * _MILLIS

    def _with(self, held: Held, *, update: str = "", condition: str, **values: float) -> dict[str, Any]:
        """A write of a lock that is held."""
        owned: dict[str, Any] = {"owner": held.owner, "fence": held.fence, **values}
        return self.table.at(_address(held.name), update=update, condition=condition, **owned)


def _address(name: str) -> Address:
    return Address(f"LOCK#{name}", "LOCK")


def _version(item: Mapping[str, Any] | None) -> tuple[int, int]:
    """The fence and the beat; every request of a holder changes one of them."""
    return (int(item["fence"]["N"]), int(item["beat"]["N"])) if item else (0, 0)


class _Locks(Performing[LockFlows, C]):
    def __init__(
        self,
        client: C,
        table: Table | str,
        *,
        lease_seconds: float = 30.0,
        poll_seconds: float = 1.0,
        skew_seconds: float = 60.0,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        flows = LockFlows(table_of(table), lease_seconds, poll_seconds, skew_seconds, runtime)
        super().__init__(client, flows)

    acquire = performed(LockFlows.acquire)
    renew = performed(LockFlows.renew)
    release = performed(LockFlows.release)

    def is_held(self, held: Held) -> bool:
        """Whether the lease lasts, by this process' clock. Asks nobody; the next moment may be different."""
        return self._flows.is_held(held)

    def member(self, held: Held) -> Item:
        """The fence as a member of your own TransactWriteItems: it fails if somebody took the lock over."""
        return self._flows.member(held)


class Lost(Exception):
    """The lock was lost while its block ran: another process may have worked at the same time."""


class Holding:
    """A lock in a `with` block, which is renewed three times a lease."""

    def __init__(self, flows: LockFlows, held: Held) -> None:
        self._flows = flows
        self._held = held

    @property
    def fence(self) -> int:
        """A number that no earlier holder had: a store that the block writes to may refuse a smaller one."""
        return self._held.fence

    @property
    def is_held(self) -> bool:
        """Whether the lease lasts, by this process' clock. Asks nobody; the next moment may be different."""
        return self._flows.is_held(self._held)

    def member(self) -> Item:
        """The fence as a member of your own TransactWriteItems: see `Locks.member`."""
        return self._flows.member(self._held)

    def renew(self) -> Flow[bool]:
        """Renew the lock; False once it is lost. After an error the lease lasts for now."""
        try:
            renewed = yield from self._flows.renew(self._held)
        except Exception:
            _log.warning("the lock %r was not renewed", self._held.name, exc_info=True)
            return True
        if renewed is not None:
            self._held = renewed
        return renewed is not None

    def renewals(self) -> Flow[None]:
        """Renew the lock until it is lost."""
        yield Pause(self._flows.lease_seconds / 3)
        while (yield from self.renew()):
            yield Pause(self._flows.lease_seconds / 3)

    def end(self) -> Flow[None]:
        """Release the lock. Raises `Lost`."""
        if not (yield from self._flows.release(self._held)):
            raise Lost(f"the lock {self._held.name!r} was lost before its block ended")


class Locks(_Locks[Client], Blocking[LockFlows]):
    """Locks with a lease, with a boto3 client. While it waits, it reads the lock about every
    `poll_seconds`. The wall clocks of processes that use a lock differ by less than `skew_seconds`."""

    @contextmanager
    def holding(self, name: str, *, wait_seconds: float = 0.0) -> Iterator[Holding | None]:
        """Hold the lock `name` for a `with` block, however long it takes; None if others have it.

        Raises `Lost` at the end of the block if the lock was lost meanwhile, because it could not be renewed.
        """
        held = self.acquire(name, wait_seconds=wait_seconds)
        if held is None:
            yield None
            return

        def renew(all_held: Sequence[Holding]) -> None:
            for one in all_held:
                if not self._run(one.renew()):
                    leases.drop(one)

        holding = Holding(self._flows, held)
        leases = Leases([holding], renew, self._flows.lease_seconds)
        with leases:
            try:
                yield holding
            except BaseException:
                with suppress(Exception):  # (the block's own error is raised)
                    self._run(holding.end())
                raise
            self._run(holding.end())


class AsyncLocks(_Locks[AsyncClient], Awaiting[LockFlows]):
    """`Locks` with an aiobotocore client."""

    @asynccontextmanager
    async def holding(self, name: str, *, wait_seconds: float = 0.0) -> AsyncIterator[Holding | None]:
        """Hold the lock `name` for an `async with` block: see `Locks.holding`."""
        held = await self.acquire(name, wait_seconds=wait_seconds)
        if held is None:
            yield None
            return
        holding = Holding(self._flows, held)
        renewing = asyncio.create_task(self._run(holding.renewals()))
        try:
            try:
                yield holding
            except BaseException:
                with suppress(Exception):  # (the block's own error is raised)
                    await self._run(holding.end())
                raise
            await self._run(holding.end())
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])
