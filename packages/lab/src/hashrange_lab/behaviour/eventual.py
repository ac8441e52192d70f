"""Eventual reads: a read without ConsistentRead shows the tables as they were some time ago.

    database.lab.eventual.set(2)                        two seconds ago
    database.lab.eventual.set(2, seed="7")              up to two seconds ago: each read draws how long

Each write keeps what was at the records before it, in memory, for as long as a read may have to show it. A
read puts these values over the current ones. So all reads at a moment agree, a transaction is seen as a whole
or not at all, and the engine has no part in it. Reads of global indexes, which are never consistent, are the
same.

Only writes of requests are kept back: what background work changes, such as expiry, is seen at once. Of very
many writes only the last `IMAGES_MAX` are kept back, or those of `BYTES_MAX`.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from sortedcontainers import SortedDict

from hashrange import pace
from hashrange.clock import BEHIND_SECONDS_MAX
from hashrange.database import Database
from hashrange.observing.observer import Body, ObservedRequest
from hashrange.operations.context import Caller, Operation, Request, table_name
from hashrange.settings import parse_lag
from hashrange.storage.api import Address, Reader, Totals
from hashrange.storage.merging import merged
from hashrange.tables.definitions import catalog
from hashrange.tables.spaces import FIRST_TABLE_SPACE

IMAGES_MAX: Final = 10_000
BYTES_MAX: Final = 64 * 1024**2
CLIENTS_MAX: Final = 10_000
READ_SECONDS_MAX: Final = 60.0
"""A read that takes no longer than this shows one moment; replaced values are kept this much longer."""

_READS: Final = frozenset({
    "BatchExecuteStatement", "BatchGetItem", "ExecuteStatement", "GetItem", "Query", "Scan",
})  # fmt: skip
_PASSED: Final = (
    "append", "count", "delete_space", "get", "get_many", "keep", "position", "scan", "scan_space", "stamp",
    "totals",
)  # fmt: skip

_Key = tuple[bytes, bytes]


class _Image:
    """What was at a record (None: nothing) before the write at the time `until`, in epoch seconds."""

    __slots__ = ("key", "space", "until", "value")

    def __init__(self, space: int, key: _Key, value: bytes | None) -> None:
        self.space = space
        self.key = key
        self.value = value
        self.until = 0.0


class Eventual:
    """The eventual reads of one database. Thread-safe. `changed` is called when they are turned on or off.

    `seconds` is the lag, or with a `seed` the longest lag; 0: reads show the present. `monotonic`: no caller
    sees an older state than that which it has seen before.
    """

    def __init__(self, database: Database, changed: Callable[[], None]) -> None:
        self._database = database
        self._changed = changed
        self._lock = threading.Lock()
        self._images: dict[int, Any] = {}
        self._order: deque[_Image] = deque()
        self._bytes = 0
        self._latest: dict[tuple[str, str, str], float] = {}
        self.seconds, self.seed, self.monotonic = parse_lag(database.settings.eventual_reads)
        self._random = random.Random(self.seed)

    @property
    def is_on(self) -> bool:
        """Whether reads show the past."""
        return self.seconds > 0

    def set(self, seconds: float, *, seed: str = "", monotonic: bool = False) -> None:
        """Let reads lag by `seconds`, or by up to that with a `seed`; 0 ends it. Raises ValueError for less
        than 0."""
        if not seconds >= 0:
            raise ValueError("reads lag by 0 seconds or more")
        with self._lock:
            self.seconds = seconds
            self.seed = seed
            self.monotonic = monotonic
            self._random = random.Random(seed)
            self._latest.clear()
            self._clear()
        self._changed()

    def body(self, seen: ObservedRequest, body: Body, entry: Operation) -> Body:
        """The body of a request, over what it may see, or with what it changes being kept."""
        request = seen.request
        if entry.is_write(request):
            return _Write(self, body).run
        if seen.operation not in _READS or _is_consistent(seen.operation, request):
            return body
        consistent = [
            given
            for given, part in request.get("RequestItems", {}).items()
            if part.get("ConsistentRead") is True
        ]
        scope = seen.scope
        moment = self._moment(seen.caller)

        def run(reader: Reader) -> Any:
            tables = [catalog.find(reader, table_name(given, scope), scope) for given in consistent]
            present = {table.space for table in tables if table is not None}
            return body(_Lagging(self, reader, moment, present))

        return run

    def _moment(self, caller: Caller) -> float:
        """The moment whose state a read of a caller shows."""
        now = self._database.clock.now()
        with self._lock:
            self._prune(now)
            lag = self._random.uniform(0, self.seconds) if self.seed else self.seconds
            moment = now - lag
            if self.monotonic:
                client = (caller.account_id, caller.region, caller.access_key)
                latest = self._latest.pop(client, moment)
                if moment < latest <= now:
                    moment = latest
                self._latest[client] = moment
                if len(self._latest) > CLIENTS_MAX:
                    del self._latest[next(iter(self._latest))]
        return moment

    def add(self, images: list[_Image]) -> None:
        """Keep what was before a write, from now on."""
        now = self._database.clock.now()
        with self._lock:
            self._prune(now)
            for image in images:
                image.until = now
                records = self._images.get(image.space)
                if records is None:
                    records = self._images[image.space] = SortedDict()
                records.setdefault(image.key, []).append(image)
                self._order.append(image)
                self._bytes += len(image.value or b"")
            while self._order and (len(self._order) > IMAGES_MAX or self._bytes > BYTES_MAX):
                self._drop_first()

    def before(self, space: int, key: _Key, moment: float) -> _Image | None:
        """What was at a record at a moment; None: what is there now."""
        with self._lock:
            records = self._images.get(space)
            if records is None:
                return None
            return _first(records.get(key, ()), moment)

    def between(self, space: int, low: _Key, high: _Key | None, moment: float) -> dict[_Key, bytes | None]:
        """What was at the records of a range at a moment, where that differs from what is there now."""
        with self._lock:
            records = self._images.get(space)
            if records is None:
                return {}
            keys = records.irange(low, high, (True, False))
            found = [(key, _first(records[key], moment)) for key in keys]
        return {key: image.value for key, image in found if image is not None}

    def _prune(self, now: float) -> None:
        """Drop what no read needs any more; if the clock was set back, everything."""
        order = self._order
        if order and order[-1].until > now + BEHIND_SECONDS_MAX:
            self._clear()
        while order and order[0].until <= now - self.seconds - READ_SECONDS_MAX:
            self._drop_first()

    def _drop_first(self) -> None:
        image = self._order.popleft()
        self._bytes -= len(image.value or b"")
        records = self._images[image.space]
        images = records[image.key]
        images.remove(image)
        if not images:
            del records[image.key]
            if not records:
                del self._images[image.space]

    def _clear(self) -> None:
        self._images.clear()
        self._order.clear()
        self._bytes = 0


def _first(images: Iterable[_Image], moment: float) -> _Image | None:
    return next((image for image in images if image.until > moment), None)


def _is_consistent(operation: str, request: Request) -> bool:
    """Whether a read asks for the present. A batch of statements is read at one moment [assumed]."""
    if operation == "BatchExecuteStatement":
        return any(member.get("ConsistentRead") is True for member in request["Statements"])
    return request.get("ConsistentRead") is True


class _Write:
    """A write whose changes are kept back from eventual reads. If its body runs again, only what the last run
    changed counts."""

    __slots__ = ("_body", "_eventual", "_images")

    def __init__(self, eventual: Eventual, body: Body) -> None:
        self._eventual = eventual
        self._body = body
        self._images: list[_Image] = []

    def run(self, transaction: Any) -> Any:
        """The body that the engine runs."""
        keeping = _Keeping(transaction)
        result = self._body(keeping)
        for image in self._images:
            image.until = 0.0
        self._images = keeping.images
        self._eventual.add(self._images)
        return result


class _Keeping:
    """A transaction that keeps what its writes replace: `images`."""

    __slots__ = ("_inner", "_seen", "images", *_PASSED)

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._seen: set[tuple[int, _Key]] = set()
        self.images: list[_Image] = []
        for name in _PASSED:
            setattr(self, name, getattr(inner, name))

    def put(self, space: int, partition: bytes, sort: bytes, value: bytes) -> None:
        self._keep(space, (partition, sort))
        self._inner.put(space, partition, sort, value)

    def delete(self, space: int, partition: bytes, sort: bytes) -> None:
        self._keep(space, (partition, sort))
        self._inner.delete(space, partition, sort)

    def _keep(self, space: int, key: _Key) -> None:
        if space >= FIRST_TABLE_SPACE and (space, key) not in self._seen:
            self._seen.add((space, key))
            self.images.append(_Image(space, key, self._inner.get(space, *key)))


class _Lagging:
    """A reader that shows the tables as they were at `moment`, except the spaces `present`."""

    __slots__ = ("_eventual", "_inner", "_moment", "_present")

    def __init__(self, eventual: Eventual, inner: Reader, moment: float, present: set[int]) -> None:
        self._eventual = eventual
        self._inner = inner
        self._moment = moment
        self._present = present

    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None:
        image = self._image(space, partition, sort)
        return self._inner.get(space, partition, sort) if image is None else image.value

    def get_many(self, addresses: Iterable[Address | tuple[int, bytes, bytes]]) -> list[bytes | None]:
        wanted = list(addresses)
        values = self._inner.get_many(wanted)
        for place, (space, partition, sort) in enumerate(wanted):
            pace.point()
            image = self._image(space, partition, sort)
            if image is not None:
                values[place] = image.value
        return values

    def _image(self, space: int, partition: bytes, sort: bytes) -> _Image | None:
        """What a record was at the moment; None: it has to be read. The catalog is always read."""
        if space < FIRST_TABLE_SPACE or space in self._present:
            return None
        return self._eventual.before(space, (partition, sort), self._moment)

    def scan(
        self,
        space: int,
        partition: bytes,
        low: bytes = b"",
        high: bytes | None = None,
        *,
        reverse: bool = False,
        likely: int | None = None,
    ) -> Iterator[tuple[bytes, bytes]]:
        records = self._inner.scan(space, partition, low, high, reverse=reverse, likely=likely)
        end = (partition + b"\0", b"") if high is None else (partition, high)
        changes = self._eventual.between(space, (partition, low), end, self._moment)
        if not changes or space in self._present:
            return records
        return merged(records, {sort: value for (_, sort), value in changes.items()}, reverse)

    def scan_space(
        self,
        space: int,
        low: _Key = (b"", b""),
        high: _Key | None = None,
        *,
        likely: int | None = None,
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        records = self._inner.scan_space(space, low, high, likely=likely)
        changes = self._eventual.between(space, low, high, self._moment)
        if not changes or space in self._present:
            return records
        pairs = (((partition, sort), value) for partition, sort, value in records)
        return ((partition, sort, value) for (partition, sort), value in merged(pairs, changes, False))

    def totals(self, space: int) -> Totals:
        return self._inner.totals(space)
