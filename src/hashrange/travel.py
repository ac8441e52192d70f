"""Time travel: reads the past of tables, and brings old states of items back.

    travel = database.travel
    travel.read("Query", {"TableName": "orders", …}, at=moment)     as a request would have been answered then
    travel.versions("orders", key)                                  what an item was, and who changed it
    travel.differences("orders", since, until)                      which items changed between two moments
    travel.undo("orders", [key], to=moment)                         write the old state of items back

AWS has nothing like it. It reads the history that point-in-time recovery keeps, so it works for tables whose
recovery is on, within their window. Where accounts or regions are separate, tables are named by their full
names, as the admin plane names them, or as a caller names them: ``travel.of(caller)``. Moments are epoch
seconds, or datetimes.

Each call reads a page, on the calling thread; what it answers can be turned into JSON. An undo ends in
`items.apply`, as every write does, so it changes indexes and leaves stream records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from hashrange import shapes
from hashrange.clock import Clock, show_moment
from hashrange.encoding import PARTITION_BYTES
from hashrange.errors import RESOURCE_NOT_FOUND, RequestViolation, ResourceNotFoundException
from hashrange.operations import REGISTRY
from hashrange.operations.backups import recovery
from hashrange.operations.context import Caller, Context, scope_of
from hashrange.settings import Settings
from hashrange.storage.api import Engine, Reader, Transaction
from hashrange.tables.data import keys, records, writes
from hashrange.tables.data.item_change import Occasion
from hashrange.tables.data.writes import Write
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import versions
from hashrange.tables.history.past import Past
from hashrange.tables.history.spans import moment_of, stamp_at, stamp_through
from hashrange.values import Item, admit_item

Moment = float | datetime

OPERATIONS: Final = ("GetItem", "Query", "Scan")
CALLER: Final = "undo"
"""Who changed an item, in the history of an undo."""

KEYS_MAX: Final = 100
_PAGE: Final = 100
_BITE: Final = 25
# A page of differences looks at this many changed items for each one that it may show: many may be as before.
_LOOKED_AT: Final = 10


class NoPast(ValueError):
    """The past that was asked for is not kept; the text says why, and the remedy."""


class _At(NamedTuple):
    """A moment of a table that nothing changes any more."""

    stamp: int
    moment: float


class Travel:
    """The past of the tables of one database. `clock` returns the database's clock."""

    def __init__(
        self,
        engine: Engine,
        clock: Callable[[], Clock],
        settings: Settings,
        new_id: Callable[[], str],
        scope: str = "",
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._settings = settings
        self._new_id = new_id
        self._scope = scope

    def of(self, caller: Caller) -> Travel:
        """The same, for tables by the names that a caller has for them."""
        scope = scope_of(caller.account_id, caller.region, self._settings)
        return Travel(self._engine, self._clock, self._settings, self._new_id, scope)

    def _named(self, table: str) -> str:
        """The full name of a table."""
        return f"{self._scope}/{table}" if self._scope and "/" not in table else table

    def read(self, operation: str, request: dict[str, Any], at: Moment) -> dict[str, Any]:
        """The answer that a GetItem, Query or Scan would have had at a moment.

        Pages go on by ExclusiveStartKey, at the same moment. Raises `ServiceError` as the operation does, and
        `NoPast`.
        """
        if operation not in OPERATIONS:
            raise NoPast(f"{operation!r} does not read the past; {', '.join(OPERATIONS)} do.")
        full_name = self._named(str(request.get("TableName", "")))
        scope, name = _parted(full_name)
        request = {**request, "TableName": name}
        shapes.check(operation, request, older=self._settings.older_words)
        if "IndexName" in request:
            raise NoPast(
                f"The index {request['IndexName']!r} has no past: only the items of a table have. Restore "
                "the table to that moment, and read the index of the restored table."
            )
        context = Context(Caller(), self._clock().now(), self._settings, self._new_id, scope)
        try:
            body = REGISTRY[operation].prepare(request, context)
        except RequestViolation as error:
            raise shapes.spoken(operation, request, error, older=self._settings.older_words) from None
        stamp = self._settle(full_name, at).stamp

        def as_of(reader: Reader) -> Any:
            return body(Past(reader, _open(reader, full_name), stamp))

        answer: dict[str, Any] = orjson.loads(orjson.dumps(self._engine.read(as_of)[0]))
        return answer

    def versions(
        self, table: str, key: Item, limit: int = _PAGE, position: str | None = None
    ) -> dict[str, Any]:
        """What an item was, the newest version first: each with its moment, its item (None: there was none),
        and who made it: the access key of a request, or the expiry.

        The last one is what the item was when the window of the table begins; nobody is known to have made
        it. `Next` is the position of the next page, None at the end.
        """
        now, table = self._clock().now(), self._named(table)
        at = self._settle(table, now)
        admit_item(key)

        def body(reader: Reader) -> dict[str, Any]:
            found = _open(reader, table)
            address = keys.address_of_key(found.key, key)
            low = self._since(found, now)
            high = at.stamp if position is None else _number(position)
            taken = list(islice(versions.versions(reader, found, *address, low, high), limit + 1))
            shown = [_version(one) for one in taken[:limit]]
            if len(taken) > limit:
                return {"Versions": shown, "Next": str(taken[limit - 1].stamp - 1)}
            past = Past(reader, found, low)
            first = past.get(found.space, *address)
            begin = {"Moment": show_moment(moment_of(low)), "Item": _item(first)}
            shown.append({**begin, "By": None, "Cause": "begin"})
            return {"Versions": shown, "Next": None}

        return self._engine.read(body)

    def differences(
        self,
        table: str,
        since: Moment,
        until: Moment | None = None,
        limit: int = _PAGE,
        position: str | None = None,
    ) -> dict[str, Any]:
        """The items that are not the same at two moments, in the order of a Scan: each with its key, what it
        was before and after, and the moment of its last change between them. `until` is now where it is not
        given.

        `Next` is the position of the next page, None at the end.
        """
        table = self._named(table)
        low = self._settle(table, since)
        high = self._settle(table, self._clock().now() if until is None else until)

        def body(reader: Reader) -> dict[str, Any]:
            found = _open(reader, table)
            shown: list[dict[str, Any]] = []
            start = (b"", b"") if position is None else _address(position)
            changed = versions.changed(reader, found, low.stamp, high.stamp, start)
            for number, one in enumerate(changed):
                if len(shown) == limit or number == limit * _LOOKED_AT:
                    return {"Differences": shown, "Next": (one.partition + one.sort).hex()}
                before, after = _item(one.before), _item(one.after)
                if before != after:
                    key = keys.key_of(found.key, before or after or {})
                    moment = show_moment(moment_of(one.stamp))
                    shown.append({"Key": key, "Before": before, "After": after, "Moment": moment})
            return {"Differences": shown, "Next": None}

        return self._engine.read(body)

    def undo(self, table: str, given: Sequence[Item], to: Moment) -> dict[str, Any]:
        """Write back what items were at a moment, in one transaction: at most 100 keys.

        An item that was not there is deleted. Raises `ServiceError` as a write does, and nothing is changed
        then.
        """
        if len(given) > KEYS_MAX:
            raise NoPast(f"{len(given)} keys are too many: one undo takes {KEYS_MAX} at most.")
        for key in given:
            admit_item(key)
        table = self._named(table)
        at = self._settle(table, to)
        body = partial(_undo, full_name=table, given=given, stamp=at.stamp, occasion=self._occasion())
        return {"Undone": self._engine.write(body)}

    def undo_all(self, table: str, to: Moment) -> dict[str, int]:
        """Write back what all items were at a moment, in bites of 25 items; says how many were changed.

        Writes go on between the bites, and are undone as well where they come first.
        """
        table = self._named(table)
        at = self._settle(table, to)
        counts = {"restored": 0, "deleted": 0, "unchanged": 0}
        position: str | None = None
        while True:
            page = self.differences(table, at.moment, None, _BITE, position)
            chosen = [one["Key"] for one in page["Differences"]]
            body = partial(_undo, full_name=table, given=chosen, stamp=at.stamp, occasion=self._occasion())
            for one in self._engine.write(body):
                counts[one["Done"]] += 1
            position = page["Next"]
            if position is None:
                return counts

    def _occasion(self) -> Occasion:
        return Occasion(self._clock().now(), self._settings, CALLER)

    def _settle(self, full_name: str, moment: Moment) -> _At:
        """The stamp of a moment of a table. Raises `NoPast`, ResourceNotFoundException."""
        seconds = moment.timestamp() if isinstance(moment, datetime) else float(moment)
        now = self._clock().now()

        def body(txn: Transaction) -> _At:
            table = _open(txn, full_name)
            since = self._since(table, now)
            if not int(moment_of(since)) <= seconds <= max(now, moment_of(since)):
                raise NoPast(
                    f"The past of table {full_name} is kept from {show_moment(moment_of(since))} to "
                    f"{show_moment(now)}, but {_shown(seconds)} was asked for."
                )
            if stamp_at(seconds) >= stamp_at(now):
                return _At(txn.stamp(stamp_at(now)), seconds)
            stamp = max(since, stamp_through(seconds))
            txn.stamp(stamp)
            return _At(stamp, seconds)

        return self._engine.write(body)

    def _since(self, table: Table, now: float) -> int:
        """The earliest stamp of a table's window."""
        hold = recovery.hold_of(table)
        if hold is None or table.history is None:
            raise NoPast(
                f"Table {table.full_name} has no past: its recovery is off. Switch it on with "
                "UpdateContinuousBackups; the past is kept from then on."
            )
        least = max(hold.since, table.history.after)
        return max(least, stamp_through(now - (hold.seconds or 0)))


def _undo(
    txn: Transaction, full_name: str, given: Sequence[Item], stamp: int, occasion: Occasion
) -> list[dict[str, Any]]:
    table = _open(txn, full_name)
    past = Past(txn, table, stamp)
    done: list[dict[str, Any]] = []
    for key in given:
        address = keys.address_of_key(table.key, key)
        old, present = past.get(table.space, *address), txn.get(table.space, *address)
        outcome = "unchanged"
        if old is not None and old != present:
            outcome = "restored"
            write = Write("put", table.name, records.item_of(old), old)
            writes.perform(txn, table, write, occasion, address)
        elif old is None and present is not None:
            outcome = "deleted"
            writes.perform(txn, table, Write("delete", table.name, dict(key)), occasion, address)
        done.append({"Key": key, "Done": outcome})
    return done


def _open(reader: Reader, full_name: str) -> Table:
    scope, name = _parted(full_name)
    try:
        return catalog.open_active(reader, name, scope)
    except ResourceNotFoundException:
        raise ResourceNotFoundException(f"{RESOURCE_NOT_FOUND}: Table: {full_name} not found") from None


def _parted(full_name: str) -> tuple[str, str]:
    scope, _, name = full_name.rpartition("/")
    return scope, name


def _version(one: versions.Version) -> dict[str, Any]:
    return {
        "Moment": show_moment(moment_of(one.stamp)),
        "Item": _item(one.record),
        "By": None if one.by_expiry else one.caller,
        "Cause": "expiry" if one.by_expiry else "request",
    }


def _item(record: bytes | None) -> Item | None:
    return None if record is None else records.item_of(record)


def _number(position: str) -> int:
    if not (position.isascii() and position.isdigit()):
        raise NoPast(f"{position!r} is not the Next of a page of versions.")
    return int(position)


def _address(position: str) -> tuple[bytes, bytes]:
    try:
        whole = bytes.fromhex(position)
    except ValueError:
        whole = b""
    partition, sort = whole[:PARTITION_BYTES], whole[PARTITION_BYTES:]
    if len(partition) < PARTITION_BYTES:
        raise NoPast(f"{position!r} is not the Next of a page of differences.")
    return partition, sort


def _shown(seconds: float) -> str:
    try:
        return show_moment(seconds)
    except (ValueError, OverflowError, OSError):
        return str(seconds)
