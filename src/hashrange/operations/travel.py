"""Time travel: reads the past of tables, and restores old states of items.

    travel = database.travel
    travel.read("Query", {"TableName": "orders", …}, at=moment)     as a request would have been answered then
    travel.versions("orders", key)                                  what an item was, and who changed it
    travel.differences("orders", since, until)                      which items changed between two moments
    travel.undo("orders", [key], to=moment)                         write the old state of items back

AWS has nothing like this. It reads the history that point-in-time recovery keeps, so it works for tables
whose recovery is on, within their window. If accounts or regions are separate, tables are named by their full
names, as on the admin plane, or by a caller's names: ``travel.of(caller)``. Moments are epoch seconds, or
datetimes.

Each call reads a page, on the calling thread; its answer can be turned into JSON. An undo ends in
`applying.apply`, like every write, so it changes indexes and makes stream records.
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
from hashrange.settings import Settings, waves
from hashrange.storage.api import Engine, Reader, Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.spans import moment_of, stamp_at, stamp_through
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import recording, versions
from hashrange.tables.history.past import Past
from hashrange.tables.items import keys, records
from hashrange.tables.items.item_change import Occasion
from hashrange.tables.writes import read_modify_write
from hashrange.tables.writes.read_modify_write import Write
from hashrange.values import Item, admit_item

Moment = float | datetime

OPERATIONS: Final = ("GetItem", "Query", "Scan")
CALLER: Final = "undo"
"""The author of an undo's changes in the history."""

KEYS_MAX: Final = 100
_PAGE: Final = 100
_BITE: Final = 25
# A page of differences examines this many changed items for each that it may show: many may be as before.
_LOOKED_AT: Final = 10


class NoPast(ValueError):
    """The requested past is not stored; the text says why, and names the remedy."""


class _At(NamedTuple):
    """A moment of a table whose state no write can change any more."""

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
        """Time travel for a caller, who names tables by their short names."""
        scope = scope_of(caller.account_id, caller.region, self._settings)
        return Travel(self._engine, self._clock, self._settings, self._new_id, scope)

    def _named(self, table: str) -> str:
        """The full name of a table."""
        return f"{self._scope}/{table}" if self._scope and "/" not in table else table

    def read(self, operation: str, request: dict[str, Any], at: Moment) -> dict[str, Any]:
        """The answer that a GetItem, Query or Scan would have had at a moment.

        Pages continue by ExclusiveStartKey, at the same moment. Raises `ServiceError` as the operation does,
        and `NoPast`.
        """
        if operation not in OPERATIONS:
            raise NoPast(f"{operation!r} does not read the past; {', '.join(OPERATIONS)} do.")
        full_name = self._named(str(request.get("TableName", "")))
        scope, name = _parted(full_name)
        request = {**request, "TableName": name}
        shapes.check(operation, request, waves.newer(self._settings.words))
        if "IndexName" in request:
            raise NoPast(
                f"The index {request['IndexName']!r} has no past: only the items of a table do. Restore "
                "the table to that moment, and read the index of the restored table."
            )
        context = Context(Caller(), self._clock().now(), self._settings, self._new_id, scope)
        try:
            body = REGISTRY[operation].prepare(request, context)
        except RequestViolation as error:
            raise shapes.spoken(operation, request, error, waves.newer(self._settings.words)) from None
        stamp = self._settle(full_name, at).stamp

        def as_of(reader: Reader) -> Any:
            return body(Past(reader, _open(reader, full_name), stamp))

        answer: dict[str, Any] = orjson.loads(orjson.dumps(self._engine.read(as_of)[0]))
        return answer

    def versions(
        self, table: str, key: Item, limit: int = _PAGE, position: str | None = None
    ) -> dict[str, Any]:
        """The versions of an item, newest first: each with its moment, its item (None: there was none), and
        its author: the access key of a request, or the expiry.

        The last version is the state at the start of the table's window; its author is unknown. `Next` is the
        position of the next page, None at the end.
        """
        now, table = self._clock().now(), self._named(table)
        at = self._settle(table, now)
        admit_item(key)

        def body(reader: Reader) -> dict[str, Any]:
            table_ = _open(reader, table)
            address = keys.address_of_key(table_.key, key)
            low = self._since(table_, now)
            high = at.stamp if position is None else _number(position)
            page = list(islice(versions.versions(reader, table_, *address, low, high), limit + 1))
            shown = [_version(version) for version in page[:limit]]
            if len(page) > limit:
                return {"Versions": shown, "Next": str(page[limit - 1].stamp - 1)}
            past = Past(reader, table_, low)
            first = past.get(table_.space, *address)
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
        """The items that differ between two moments, in the order of a Scan: each with its key, its states
        before and after, and the moment of its last change between them. `until` is now by default.

        `Next` is the position of the next page, None at the end.
        """
        table = self._named(table)
        low = self._settle(table, since)
        high = self._settle(table, self._clock().now() if until is None else until)

        def body(reader: Reader) -> dict[str, Any]:
            table_ = _open(reader, table)
            shown: list[dict[str, Any]] = []
            start = (b"", b"") if position is None else _address(position)
            changed = versions.changed(reader, table_, low.stamp, high.stamp, start)
            for number, change in enumerate(changed):
                if len(shown) == limit or number == limit * _LOOKED_AT:
                    return {"Differences": shown, "Next": (change.partition + change.sort).hex()}
                before, after = _item(change.before), _item(change.after)
                if before != after:
                    key = keys.key_of(table_.key, before or after or {})
                    moment = show_moment(moment_of(change.stamp))
                    shown.append({"Key": key, "Before": before, "After": after, "Moment": moment})
            return {"Differences": shown, "Next": None}

        return self._engine.read(body)

    def undo(self, table: str, given: Sequence[Item], to: Moment) -> dict[str, Any]:
        """Restore items as they were at a moment, in one transaction: at most 100 keys.

        An item that did not exist is deleted. Raises `ServiceError` as a write does; then nothing is changed.
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
        """Restore all items as they were at a moment, in bites of 25 items; returns how many were changed.

        Other writes may happen between the bites; they are undone too if they precede the bite of their item.
        """
        table = self._named(table)
        at = self._settle(table, to)
        counts = {"restored": 0, "deleted": 0, "unchanged": 0}
        position: str | None = None
        while True:
            page = self.differences(table, at.moment, None, _BITE, position)
            chosen = [outcome["Key"] for outcome in page["Differences"]]
            body = partial(_undo, full_name=table, given=chosen, stamp=at.stamp, occasion=self._occasion())
            for outcome in self._engine.write(body):
                counts[outcome["Done"]] += 1
            position = page["Next"]
            if position is None:
                return counts

    def _occasion(self) -> Occasion:
        return Occasion(self._clock().now(), self._settings, CALLER)

    def _settle(self, full_name: str, moment: Moment) -> _At:
        """The stamp of a table's moment. Raises `NoPast`, ResourceNotFoundException."""
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
        if hold is None:
            raise NoPast(
                f"Table {table.full_name} has no past: its recovery is off. Enable it with "
                "UpdateContinuousBackups; the past is stored from then on."
            )
        return max(recording.kept_since(table, hold, now), stamp_through(now - (hold.seconds or 0)))


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
            read_modify_write.perform(txn, table, write, occasion, address)
        elif old is None and present is not None:
            outcome = "deleted"
            read_modify_write.perform(txn, table, Write("delete", table.name, dict(key)), occasion, address)
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


def _version(version: versions.Version) -> dict[str, Any]:
    return {
        "Moment": show_moment(moment_of(version.stamp)),
        "Item": _item(version.record),
        "By": None if version.by_expiry else version.caller,
        "Cause": "expiry" if version.by_expiry else "request",
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
