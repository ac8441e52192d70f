"""The integrity checker: whether the records of a store agree with each other.

`check` walks every table in bites, so that its memory does not grow with the store, and yields a `Problem`
for each thing that is wrong:

- a definition or record that does not decode, a size that is not its header's, an item at the wrong address;
- an item without its index entry, an entry without its item, an entry with other content than the item's;
- totals, sizes of item collections and the expiry queue that differ from what the items say;
- two tables that share a space, and records in a space that no table or stream owns.

It reads only. Nothing may write meanwhile: what changes between two bites would look like damage. An index
that is being filled, or that changes still wait for, is compared with itself only.

Knows nothing of engines: it sees what their readers show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

import msgspec
import orjson

from hashrange.errors import ServiceError
from hashrange.storage.api import Engine, Reader, StorageError, Totals
from hashrange.tables import catalog, expiry, indexes, items, keys, lag, records, streams
from hashrange.tables import table as tables
from hashrange.tables.table import Index, Table
from hashrange.values import Item, admit_item, equal

BITE_RECORDS = 500

# Numbers beyond those given are looked at too: a record there means that the counter was set back.
_SPACES_BEYOND = 64

Progress = Callable[[str, int], None]
"""Called after each bite with what is being checked and how many of its records were looked at so far."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong. `table` is empty where no table is concerned; the address is that of the
    record concerned, None where there is none."""

    table: str
    message: str
    index: str | None = None
    partition: bytes | None = None
    sort: bytes | None = None

    def __str__(self) -> str:
        where = self.table or "store"
        if self.index is not None:
            where += f", index {self.index}"
        if self.partition is not None:
            where += f", record {self.partition.hex()}/{(self.sort or b'').hex()}"
        return f"{where}: {self.message}"


def check(engine: Engine, *, progress: Progress | None = None) -> Iterator[Problem]:
    """Everything that is wrong with a store to which nobody writes meanwhile."""
    report = progress or _nobody
    names = engine.read(lambda reader: [name for name, _ in catalog.stored_definitions(reader)])
    owners: dict[int, str] = {}
    for name in names:
        table = engine.read(partial(_definition, name=name))
        if isinstance(table, Problem):
            yield table
            continue
        for space in catalog.spaces_of(table):
            if space in owners:
                yield Problem(name, f"space {space} belongs to {owners[space]} too")
            owners[space] = name
        yield from _check_table(engine, table, report)
    for stream in engine.read(lambda reader: list(streams.all_streams(reader))):
        owners.setdefault(stream.space, stream.table)
    yield from _check_spaces(engine, owners, report)


def _nobody(what: str, looked_at: int) -> None:
    """The progress of a check that nobody watches."""


def _definition(reader: Reader, name: str) -> Table | Problem:
    for stored_name, stored in catalog.stored_definitions(reader):
        if stored_name != name:
            continue
        try:
            table = tables.decode(stored)
        except (msgspec.MsgspecError, ValueError) as error:
            return Problem(name, f"the definition cannot be decoded: {error}")
        if table.name != name:
            return Problem(name, f"the definition stored under this name is that of {table.name}")
        return table
    return Problem(name, "the definition went away while the store was checked")


def _check_table(engine: Engine, table: Table, report: Progress) -> Iterator[Problem]:
    waiting = engine.read(lag.waiting_spaces)
    settled = [index for index in table.indexes if not index.backfilling and index.space not in waiting]
    yield from _Walk(engine, table, None, report).run(_Items(table, settled))
    for index in table.indexes:
        yield from _Walk(engine, table, index, report).run(_Entries(table, index, index in settled))
    if table.collection_space:
        yield from _check_collections(engine, table)
    if table.ttl is not None:
        yield from _check_queue(engine, table)


class _Walk:
    """A walk over the items or the entries of one index, in bites: decodes them, adds up the totals."""

    __slots__ = ("engine", "index", "report", "space", "table")

    def __init__(self, engine: Engine, table: Table, index: Index | None, report: Progress) -> None:
        self.engine = engine
        self.table = table
        self.index = index
        self.space = table.space if index is None else index.space
        self.report = report

    def run(self, look: _Items | _Entries) -> Iterator[Problem]:
        what = self.table.name if self.index is None else f"{self.table.name}/{self.index.name}"
        low: tuple[bytes, bytes] = (b"", b"")
        looked_at = total = 0
        while True:
            problems, sizes, last = self.engine.read(partial(self._bite, look=look, low=low))
            yield from problems
            looked_at += len(sizes)
            total += sum(sizes)
            self.report(what, looked_at)
            if last is None:
                break
            low = (last[0], last[1] + b"\x00")
        yield from self.engine.read(lambda reader: list(look.finish(reader)))
        kept = self.engine.read(lambda reader: reader.totals(self.space))
        if kept != Totals(looked_at, total):
            yield self._problem(
                f"the totals are {kept.records} records of {kept.bytes} bytes, "
                f"but there are {looked_at} records of {total} bytes"
            )

    def _bite(
        self, reader: Reader, look: _Items | _Entries, low: tuple[bytes, bytes]
    ) -> tuple[list[Problem], list[int], tuple[bytes, bytes] | None]:
        problems: list[Problem] = []
        sizes: list[int] = []
        last: tuple[bytes, bytes] | None = None
        for partition, sort, record in islice(reader.scan_space(self.space, low), BITE_RECORDS):
            last = partition, sort
            sizes.append(records.size_of(record))
            try:
                item = decoded(record)
            except ValueError as error:
                problems.append(self._problem(str(error), last))
            else:
                problems.extend(look(reader, partition, sort, record, item))
        return problems, sizes, last

    def _problem(self, message: str, address: tuple[bytes, bytes] = (b"", b"")) -> Problem:
        index = self.index.name if self.index is not None else None
        if address[0]:
            return Problem(self.table.name, message, index, *address)
        return Problem(self.table.name, message, index)


def decoded(record: bytes) -> Item:
    """The item of a stored record; raises `ValueError` that says what is wrong with it."""
    if len(record) < records.HEADER_BYTES or record[0] != records.FORMAT_VERSION:
        raise ValueError("the record has no header of a known format")
    try:
        item = orjson.loads(record[records.HEADER_BYTES :])
    except orjson.JSONDecodeError as error:
        raise ValueError(f"the record cannot be decoded: {error}") from None
    if not isinstance(item, dict):
        raise ValueError("the record does not hold an item")
    try:
        size = admit_item(item)
    except (ServiceError, ValueError) as error:
        raise ValueError(f"the record does not hold an item: {error}") from None
    if size != records.size_of(record):
        raise ValueError(f"the header says {records.size_of(record)} bytes, but the item has {size}")
    return item


class _Items:
    """What is looked at in each item: its address, its index entries, its collection, its expiry."""

    __slots__ = ("collection", "indexes", "partition", "table")

    def __init__(self, table: Table, indexes_: list[Index]) -> None:
        self.table = table
        self.indexes = indexes_
        self.partition: bytes | None = None
        self.collection = 0

    def __call__(
        self, reader: Reader, partition: bytes, sort: bytes, record: bytes, item: Item
    ) -> Iterator[Problem]:
        table = self.table
        if _address_of(table, item) != (partition, sort):
            yield Problem(table.name, "the item's key belongs to another address", None, partition, sort)
        if table.collection_space:
            if partition != self.partition:
                yield from self.finish(reader)
                self.partition, self.collection = partition, 0
            self.collection += records.size_of(record) + sum(
                entry.size
                for index in table.indexes
                if not index.is_global
                and (entry := indexes.entry_of(table, index, item, partition, sort, record)) is not None
            )
        for index in self.indexes:
            entry = indexes.entry_of(table, index, item, partition, sort, record)
            if entry is not None:
                yield from self._check_entry(reader, index, entry, partition, sort)
        ttl = table.ttl
        if ttl is not None and ttl.built:
            seconds = expiry.expires_at(ttl.attribute, item)
            if seconds is not None and not expiry.is_queued(reader, ttl, (seconds, partition, sort)):
                message = f"the item expires at {seconds}, but the expiry queue does not hold it"
                yield Problem(table.name, message, None, partition, sort)

    def _check_entry(
        self, reader: Reader, index: Index, entry: indexes.Entry, partition: bytes, sort: bytes
    ) -> Iterator[Problem]:
        stored = reader.get(index.space, entry.partition, entry.sort)
        if stored is None:
            yield Problem(self.table.name, "the item has no entry in the index", index.name, partition, sort)
        elif stored != entry.record and not _same(stored, entry.record):
            message = "the entry does not hold what the item says"
            yield Problem(self.table.name, message, index.name, entry.partition, entry.sort)

    def finish(self, reader: Reader) -> Iterator[Problem]:
        """Compare the collection that ends here with its stored size."""
        if self.partition is None:
            return
        stored = items.collection_size(reader, self.table, self.partition)
        if stored != self.collection:
            message = f"the item collection's size is {stored}, but its items have {self.collection} bytes"
            yield Problem(self.table.name, message, None, self.partition, b"")


def _same(one: bytes, other: bytes) -> bool:
    """Whether two records hold the same: an entry is not written again for another order in a map or set."""
    try:
        return equal({"M": decoded(one)}, {"M": decoded(other)})
    except ValueError:
        return True  # reported where the entries are walked


def _address_of(table: Table, item: Item) -> tuple[bytes, bytes] | None:
    try:
        return keys.address_of_item(table.key, item)
    except ServiceError:
        return None


class _Entries:
    """What is looked at in each index entry: that there is an item which has it, here."""

    __slots__ = ("index", "settled", "table")

    def __init__(self, table: Table, index: Index, settled: bool) -> None:
        self.table = table
        self.index = index
        self.settled = settled

    def __call__(
        self, reader: Reader, partition: bytes, sort: bytes, record: bytes, projected: Item
    ) -> Iterator[Problem]:
        if not self.settled:
            return
        address = _address_of(self.table, projected)
        if address is None:
            yield self._problem("the entry does not name an item", partition, sort)
            return
        stored = reader.get(self.table.space, *address)
        if stored is None:
            yield self._problem("the entry's item does not exist", partition, sort)
            return
        try:
            item = decoded(stored)
        except ValueError:
            return  # reported where the items are walked
        entry = indexes.entry_of(self.table, self.index, item, *address, stored)
        if entry is None or entry[:2] != (partition, sort):
            yield self._problem("the entry's item belongs elsewhere in the index", partition, sort)

    def _problem(self, message: str, partition: bytes, sort: bytes) -> Problem:
        return Problem(self.table.name, message, self.index.name, partition, sort)

    def finish(self, reader: Reader) -> Iterator[Problem]:
        """Nothing is left at the end."""
        return iter(())


def _check_collections(engine: Engine, table: Table) -> Iterator[Problem]:
    """Sizes of item collections that have no items; those that have were compared on the way."""

    def bite(reader: Reader) -> tuple[list[Problem], tuple[bytes, bytes] | None]:
        problems: list[Problem] = []
        last: tuple[bytes, bytes] | None = None
        for partition, sort, _ in islice(reader.scan_space(table.collection_space, low), BITE_RECORDS):
            last = partition, sort
            if sort or next(iter(reader.scan(table.space, partition)), None) is None:
                message = "there is a size for an item collection without items"
                problems.append(Problem(table.name, message, None, partition, sort))
        return problems, last

    low: tuple[bytes, bytes] = (b"", b"")
    while True:
        problems, last = engine.read(bite)
        yield from problems
        if last is None:
            return
        low = (last[0], last[1] + b"\x00")


def _check_queue(engine: Engine, table: Table) -> Iterator[Problem]:
    """Places in the expiry queue whose item does not exist, or does not expire then."""
    ttl = table.ttl
    if ttl is None:
        return

    def bite(reader: Reader) -> tuple[list[Problem], tuple[int, bytes, bytes] | None]:
        problems: list[Problem] = []
        last: tuple[int, bytes, bytes] | None = None
        for place in islice(expiry.queued(reader, ttl, after), BITE_RECORDS):
            last = place
            seconds, partition, sort = place
            stored = reader.get(table.space, partition, sort)
            try:
                item = decoded(stored) if stored is not None else None
            except ValueError:
                continue  # reported where the items are walked
            if expiry.expires_at(ttl.attribute, item) != seconds:
                message = f"the expiry queue says {seconds}, but no item here expires then"
                problems.append(Problem(table.name, message, None, partition, sort))
        return problems, last

    after: tuple[int, bytes, bytes] | None = None
    while True:
        problems, last = engine.read(bite)
        yield from problems
        if last is None:
            return
        after = last


def _check_spaces(engine: Engine, owners: dict[int, str], report: Progress) -> Iterator[Problem]:
    """Records in spaces that no table owns. Every number that was ever given is looked at."""
    try:
        end = engine.read(catalog.spaces_end)
    except ValueError as error:
        yield Problem("", f"the next free space number cannot be read: {error}")
        end = max(owners, default=catalog.FIRST_TABLE_SPACE) + 1
    for space in owners:
        if space >= end:
            yield Problem(owners[space], f"space {space} is not below the next free one, {end}")
    candidates = range(catalog.FIRST_TABLE_SPACE, end + _SPACES_BEYOND)
    for start in range(candidates.start, candidates.stop, BITE_RECORDS):
        bite = [s for s in range(start, min(start + BITE_RECORDS, candidates.stop)) if s not in owners]
        for space in engine.read(partial(_in_use, spaces=bite)):
            yield Problem("", f"space {space} holds records, but no table owns it")
        report("spaces", min(start + BITE_RECORDS, candidates.stop))


def _in_use(reader: Reader, spaces: list[int]) -> list[int]:
    found: list[int] = []
    for space in spaces:
        try:
            if next(iter(reader.scan_space(space)), None) is not None or any(reader.totals(space)):
                found.append(space)
        except StorageError:
            found.append(space)
    return found
