"""Throttling: refuses requests for which a table, an index or one of their partitions has no throughput.

    database.lab.throttling.set(True)               all tables
    database.lab.throttling.set(False, "orders")    but not this one

The rules of one request:

- It is admitted if no bucket that it needs is empty, and is then charged with its bill. A request that a
  failed condition refuses is charged as well; one that is refused otherwise is not.
- The bill of a table is divided among its partitions by the records that were touched.
- A transaction is cancelled. A batch returns as unprocessed what it has no throughput for; only if nothing of
  it can be done is it refused. A BatchExecuteStatement is refused as a whole [assumed].

The state is in memory only: after a restart nothing is saved, and partitions are those of the definition.
Reads of streams have no limits here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from hashrange.database import Database
from hashrange.errors import (
    RequestLimitExceeded,
    ServiceError,
    ThrottlingException,
    TransactionCanceledException,
)
from hashrange.limits import PARTITION_BYTES_MAX
from hashrange.observing.observer import Body, ObservedRequest
from hashrange.operations import throttling as words
from hashrange.operations.context import NONE_LEFT, Caller, table_name
from hashrange.operations.targets import Attributes, targets
from hashrange.operations.throttling import KEY_RANGE, Reason
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Index, Table
from hashrange.tables.items import capacity, indexes, keys, vectors
from hashrange.tables.items.capacity import Bill, Consumed
from hashrange.values import item_size
from hashrange_lab.behaviour.resources import READS, WRITES, Resource
from hashrange_lab.behaviour.touched import Position, Touched, TouchedReader

RESOURCES_MAX: Final = 10_000
"""The most tables and indexes whose state is kept; the one that was made first is forgotten."""

_BATCHES: Final = {"BatchGetItem": READS, "BatchWriteItem": WRITES}
_TRANSACTIONS: Final = frozenset({"ExecuteTransaction", "TransactGetItems", "TransactWriteItems"})


class _Part(NamedTuple):
    """Units of one side of a resource, for the partition with this `number`, which holds `position` (None: it
    is not known which). `member`: whose units these are, in a batch or a transaction."""

    resource: Resource
    side: int
    number: int
    units: float
    position: Position | None
    member: int


class Throttling:
    """The throttling of one database. Thread-safe. `changed` is called when it is turned on or off."""

    def __init__(self, database: Database, changed: Callable[[], None]) -> None:
        self._database = database
        self._changed = changed
        self._lock = threading.Lock()
        self._resources: dict[int, Resource] = {}
        self.everywhere = database.settings.throttle
        self.tables: dict[str, bool] = {}
        self.requests: dict[tuple[str, str], int] = {}

    @property
    def is_on(self) -> bool:
        """Whether any table may be throttled."""
        return self.everywhere or any(self.tables.values())

    def set(self, on: bool | None, table: str | None = None) -> None:
        """Turn throttling on or off for all tables, or for one, by its full name; None: as all others."""
        with self._lock:
            if table is None:
                self.everywhere = bool(on)
            else:
                tables = {name: value for name, value in self.tables.items() if name != table}
                self.tables = tables if on is None else tables | {table: on}
        self._changed()

    def reset(self) -> None:
        """Forget what was consumed and saved, all partitions, and the counts."""
        with self._lock:
            self._resources.clear()
            self.requests.clear()

    def resources(self) -> list[Resource]:
        """The tables and indexes that were used so far."""
        with self._lock:
            return list(self._resources.values())

    def applies(self, full_name: str) -> bool:
        """Whether a table is throttled."""
        return self.tables.get(full_name, self.everywhere)

    def left(self, seen: ObservedRequest) -> frozenset[int]:
        """The members of a batch that there is no throughput for. Raises `ServiceError` if it is none but
        these."""
        side = _BATCHES.get(seen.operation)
        if side is None:
            return NONE_LEFT
        scope = seen.scope
        named = targets(seen.operation, seen.request)
        members: list[tuple[Table | None, Attributes]] = self._database.engine.read(
            lambda reader: [
                (catalog.find(reader, target.table, scope), target.attributes or {}) for target in named
            ]
        )
        now = self._database.clock.now()
        with self._lock:
            parts = self._estimated(members, side, now)
            refusals = self._refusals(parts, now, spending=True)
            if not refusals:
                return NONE_LEFT
            refused = frozenset(part.member for part, _ in refusals)
            self._note(refusals, seen.operation, now, is_whole=len(refused) == len(members))
        if len(refused) == len(members):
            raise self._error(seen.operation, 0, refusals, seen.caller)
        return refused

    def _estimated(
        self, members: list[tuple[Table | None, Attributes]], side: int, now: float
    ) -> list[_Part]:
        """What the members of a batch need at least; the charge says later what they cost."""
        parts: list[_Part] = []
        for number, (table, attributes) in enumerate(members):
            if table is None or not self.applies(table.full_name):
                continue
            try:
                key = {name: attributes[name] for name in table.key_names}
                position = keys.address_of_key(table.key, key)
            except (KeyError, ServiceError):
                continue  # the request is refused
            units = 0.5
            if side == WRITES:
                item = dict(attributes)
                size = vectors.billed_size(table, item, item_size(item))
                units = float(capacity.write_units(size))
                for index in table.indexes:
                    if index.is_global and indexes.fits(index, item):
                        at = indexes.position(index, item, *position)
                        parts.append(self._part(table, index, side, units, at, number, now))
            parts.append(self._part(table, None, side, units, position, number, now))
        return parts

    def _part(
        self,
        table: Table,
        index: Index | None,
        side: int,
        units: float,
        position: Position,
        member: int,
        now: float,
    ) -> _Part:
        resource = self._resource(table, index, now)
        return _Part(resource, side, resource.parts.find(position), units, position, member)

    def _resource(self, table: Table, index: Index | None, now: float) -> Resource:
        owner = table if index is None else index
        resource = self._resources.get(owner.space)
        if resource is None:
            if len(self._resources) >= RESOURCES_MAX:
                del self._resources[next(iter(self._resources))]
            resource = self._resources[owner.space] = Resource(table, owner, now)
        else:
            resource.use(table, owner, now)
        return resource

    # -- One request: called by its `Throttled` -------------------------------------------------------------

    def charge(self, request: Throttled, touched: list[Touched], reader: Reader, bill: Bill) -> None:
        """Charge a request with its bill. Raises `ServiceError` if there is no throughput for it."""
        now = self._database.clock.now()
        with self._lock:
            self._give_back(request, now)
            parts = self._parts(request, touched, reader, bill, now)
            refusals = [] if request.is_batch else self._refusals(parts, now, spending=False)
            if not refusals:
                for part in parts:
                    self._charge(part, part.units, now)
                request.charged = parts
                return
            self._note(refusals, request.operation, now, is_whole=True)
        raise self._error(request.operation, request.members, refusals, request.caller)

    def _give_back(self, request: Throttled, now: float) -> None:
        """Take the charge of an earlier run of the body back: an engine may run it several times."""
        for part in request.charged:
            self._charge(part, -part.units, now)
        request.charged = []

    def _charge(self, part: _Part, units: float, now: float) -> None:
        part.resource.sides[part.side].charge(units, now)
        if part.position is None:
            return
        parts = part.resource.parts
        # An earlier run's partition may have been split since then.
        partition = parts[parts.find(part.position) if units < 0 else part.number]
        partition.buckets[part.side].units -= units
        partition.consumed[part.side] += units
        if units > 0:
            partition.seen.append(part.position)

    def _parts(
        self, request: Throttled, touched: list[Touched], reader: Reader, bill: Bill, now: float
    ) -> list[_Part]:
        """The bill, divided among the partitions of the tables and indexes."""
        parts: list[_Part] = []
        for consumed in bill:
            table = catalog.find(reader, table_name(consumed.table_name, request.scope), request.scope)
            if table is None or consumed.stream or not self.applies(table.full_name):
                continue
            for owner, units in _owners(table, consumed):
                resource = self._resource(table, owner, now)
                spaces = {table.space if owner is None else owner.space}
                if owner is None:
                    spaces.update([index.space for index in table.indexes if not index.is_global])
                    if resource.parts[0].low == (b"", b""):
                        resource.fit(reader.totals(table.space).bytes, PARTITION_BYTES_MAX, now)
                side = WRITES if consumed.writes else READS
                parts += _divided(resource, side, units, touched, spaces, table.space)
        return parts

    def _refusals(self, parts: list[_Part], now: float, *, spending: bool) -> list[tuple[_Part, str]]:
        """The parts that a limit refuses, with the limit. If they are `spending`, each part needs what the
        parts before it have left over."""
        refusals: list[tuple[_Part, str]] = []
        spent: list[_Part] = []
        for part in parts:
            limit = part.resource.sides[part.side].exceeded(now)
            if limit is None and part.position is not None:
                bucket = part.resource.parts[part.number].buckets[part.side]
                bucket.fill(now)
                if bucket.is_empty:
                    limit = KEY_RANGE
            if limit is not None:
                refusals.append((part, limit))
            elif spending:
                self._spend(part, part.units)
                spent.append(part)
        for part in spent:
            self._spend(part, -part.units)
        return refusals

    def _spend(self, part: _Part, units: float) -> None:
        """Take units from the buckets for a moment, without counting them."""
        part.resource.sides[part.side].spend(units)
        if part.position is not None:
            part.resource.parts[part.number].buckets[part.side].units -= units

    def _note(self, refusals: list[tuple[_Part, str]], operation: str, now: float, *, is_whole: bool) -> None:
        """Count refusals, and let hot partitions split."""
        if is_whole:
            key = (refusals[0][0].resource.table, operation)
            self.requests[key] = self.requests.get(key, 0) + 1
        for part, limit in refusals:
            counts = part.resource.sides[part.side].throttled
            counts[limit] = counts.get(limit, 0) + 1
            if limit == KEY_RANGE and part.position is not None:
                parts = part.resource.parts
                number = parts.find(part.position)
                parts[number].seen.append(part.position)
                parts.refused(number, now, self._database.settings.split_seconds)

    def _error(
        self, operation: str, members: int, refusals: list[tuple[_Part, str]], caller: Caller
    ) -> ServiceError:
        first, limit = refusals[0]
        exception = words.LIMITS[limit]
        if limit == KEY_RANGE and not first.resource.is_provisioned:
            exception = ThrottlingException
        of_index = bool(first.resource.index)
        message = words.message_of(exception, limit, of_index=of_index)
        if operation in _TRANSACTIONS and exception is not RequestLimitExceeded:
            return _canceled(exception, message, members, {part.member for part, _ in refusals})
        reasons = [
            Reason(part.resource.table.rpartition("/")[2], part.resource.index, part.side == WRITES, limit_)
            for part, limit_ in refusals
        ]
        return words.error_of(exception, message, reasons, caller)


class Throttled:
    """One request that is throttled, if need be: it runs `body`. `members` are those of a transaction."""

    __slots__ = ("_body", "_throttling", "caller", "charged", "is_batch", "members", "operation", "scope")

    def __init__(self, throttling: Throttling, seen: ObservedRequest, body: Body) -> None:
        self._throttling = throttling
        self._body = body
        self.operation = seen.operation
        self.caller = seen.caller
        self.scope = seen.scope
        self.is_batch = seen.operation in _BATCHES
        members = seen.request.get("TransactItems") or seen.request.get("TransactStatements") or ()
        self.members = len(members)
        self.charged: list[_Part] = []

    def run(self, reader: Any) -> Any:
        """The body that the engine runs instead of the operation's own."""
        noting = TouchedReader(reader)
        try:
            result = self._body(noting)
        except ServiceError as error:
            if error.bill is not None:
                self._throttling.charge(self, noting.touched, reader, error.bill)
            raise
        self._throttling.charge(self, noting.touched, reader, result[1])
        return result


def _owners(table: Table, consumed: Consumed) -> Iterator[tuple[Index | None, float]]:
    """The global indexes of a bill (None: the table itself) and their units. Local indexes lie in the
    partitions of the table, and use its throughput."""
    units = consumed.table + sum(consumed.local.values())
    if units:
        yield None, units
    for name, index_units in consumed.global_.items():
        index = table.index(name)
        if index is not None and index_units:
            yield index, index_units


def _divided(
    resource: Resource,
    side: int,
    units: float,
    touched: list[Touched],
    spaces: set[int],
    base_space: int,
) -> Iterator[_Part]:
    """The parts of `units`, by the size of what was touched in `spaces`."""
    member = -1
    weights: dict[tuple[int, int], tuple[float, Position]] = {}
    places: dict[Position, tuple[float, int]] = {}
    for at in touched:
        if at.is_get and at.space == base_space:
            member += 1
        if at.space not in spaces:
            continue
        if at.low is at.high:
            weight = float(capacity.write_units(at.size)) if side == WRITES else float(at.size or 1)
            places[at.low] = (max(places.get(at.low, (0.0, 0))[0], weight), max(member, 0))
            continue
        ends = sorted((resource.parts.find(at.low), resource.parts.find(at.high)))
        for number in range(ends[0], ends[1] + 1):
            position = max(min(at.low, at.high), resource.parts[number].low)
            share = (at.size or 1) / (ends[1] - ends[0] + 1)
            weights[(number, 0)] = (weights.get((number, 0), (0.0, position))[0] + share, position)
    for position, (weight, of_member) in places.items():
        place = (resource.parts.find(position), of_member)
        weights[place] = (weights.get(place, (0.0, position))[0] + weight, position)
    if not weights:
        yield _Part(resource, side, 0, units, None, 0)
        return
    total = sum([weight for weight, _ in weights.values()])
    for (number, of_member), (weight, position) in weights.items():
        yield _Part(resource, side, number, units * weight / total, position, of_member)


def _canceled(
    exception: type[ServiceError], message: str, members: int, refused: set[int]
) -> TransactionCanceledException:
    reasons: list[dict[str, Any]] = [{"Code": "None"} for _ in range(members)]
    for number in refused:
        place = number if number < members else 0
        reasons[place] = {"Code": words.cancellation_code(exception), "Message": message}
    return TransactionCanceledException.of(reasons)
