"""The integrity checker: whether the records of a store agree with each other.

`check` walks every table in bites, so that its memory does not grow with the store, and yields a `Problem`
for each of these errors:

- a definition or record that does not decode, a size that is not its header's, an item at the wrong address;
- an item without its index entry, an entry without its item, an entry whose content differs from the item's;
- totals, sizes of item collections and places in the expiry queue that do not agree with the items;
- an image of a table's history that cannot be read, or lies where no reader looks for it;
- a stream whose shards leave a gap, a record that cannot be read or lies outside its shard, and numbers or
  stamps
  that the engine would assign again;
- two tables that share a space, and records in a space that no table or stream owns.

Index entries, totals, sizes of collections and places in the expiry queue follow from the items, so problems
with these can be corrected: `mending` does that. It also deletes the records in spaces that nothing owns, if
all definitions can be decoded.

`check` only reads. No other program or thread may write while it runs, because a change between two bites
would look like damage. An index that is being filled, or for which changes are queued, is not compared with
the items. Records that cannot be read are skipped here, because the store itself reports them.

Knows nothing of engines: it uses only their readers.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import partial
from itertools import islice
from typing import NamedTuple

import msgspec
import orjson

from hashrange.errors import ServiceError
from hashrange.storage.api import Reader, Totals, Transaction
from hashrange.storage.failures import StorageError
from hashrange.storage.store_copy import Numbers
from hashrange.tables import streams
from hashrange.tables.definitions import catalog, dropped
from hashrange.tables.definitions import table as tables
from hashrange.tables.definitions.spans import STAMP_MAX, History, Span
from hashrange.tables.definitions.table import Index, Table
from hashrange.tables.history import images
from hashrange.tables.inspection.problems import BITE_RECORDS, Mend, Problem, Progress, Readable
from hashrange.tables.inspection.stream_checks import StoredNumbers, check_stream
from hashrange.tables.items import indexes, keys, records
from hashrange.tables.spaces import FIRST_TABLE_SPACE
from hashrange.tables.writes import applying, expiry, lag
from hashrange.values import Item, admit_item, equal

# This many space numbers above the counter are checked too: a record there means that the counter is too low.
_SPACES_BEYOND = 64

def check(
    engine: Readable,
    *,
    progress: Progress | None = None,
    numbers_of: StoredNumbers | None = None,
    cleared: frozenset[int] = frozenset(),
) -> Iterator[Problem]:
    """All problems of a store. Nothing may write to the store while this runs.

    `numbers_of` returns what the engine stores beside the records of some logs; `cleared` are the spaces
    whose records it is deleting.
    """
    report = progress or _nobody
    found = engine.read(lambda reader: list(streams.all_streams(reader)))
    numbers: Numbers | None = None
    try:
        numbers = numbers_of({stream.space for stream in found}) if numbers_of is not None else None
    except StorageError as error:
        yield Problem("", f"the numbers of the engine cannot be read: {error}")
    latest = numbers.stamp if numbers is not None else STAMP_MAX
    names = engine.read(lambda reader: [name for name, _ in catalog.stored_definitions(reader)])
    owners: dict[int, str] = {}
    knows_owners = True
    for name in names:
        table = engine.read(partial(_definition, name=name))
        if isinstance(table, Problem):
            knows_owners = False
            yield table
            continue
        for space in catalog.spaces_of(table):
            if space in owners:
                yield Problem(name, f"space {space} belongs to {owners[space]} too")
            owners[space] = name
        yield from _check_table(engine, table, latest, report)
    for name, deleted in engine.read(lambda reader: list(dropped.every(reader))):
        if not isinstance(deleted, dropped.Dropped):
            knows_owners = False
            yield Problem("", f"the definition of the deleted table {name} cannot be decoded: {deleted}")
            continue
        for space in dropped.spaces_of(deleted):
            if space in owners:
                yield Problem(name, f"space {space} belongs to {owners[space]} too")
            owners[space] = name
        yield from _Walk(engine, deleted.table, None, report).run(_Items(deleted.table, []))
        if deleted.table.history is not None:
            yield from _check_history(engine, deleted.table, deleted.table.history, latest)
    for name, stream in engine.read(lambda reader: list(streams.every_stream(reader))):
        if isinstance(stream, streams.Stream):
            owners.setdefault(stream.space, stream.table)
            for message, partition, sort in check_stream(engine, stream, numbers, report):
                text = f"stream {stream.label}: {message}"
                yield Problem(stream.full_name, text, None, partition, sort)
        else:
            knows_owners = False
            yield Problem("", f"the definition of stream {name} cannot be decoded: {stream}")
    for space in sorted(cleared & owners.keys()):
        yield Problem(owners[space], f"the records of space {space} are being deleted, but it is in use")
    yield from _check_spaces(engine, owners, knows_owners, report)


def _nobody(noun: str, looked_at: int) -> None:
    """The `Progress` of a check without one: does nothing."""


def _definition(reader: Reader, name: str) -> Table | Problem:
    for stored_name, stored in catalog.stored_definitions(reader):
        if stored_name != name:
            continue
        try:
            table = tables.decode(stored)
        except (msgspec.MsgspecError, ValueError) as error:
            return Problem(name, f"the definition cannot be decoded: {error}")
        if table.full_name != name:
            return Problem(name, f"the definition stored under this name is that of {table.full_name}")
        return table
    return Problem(name, "the definition disappeared while the store was checked")


def _check_table(engine: Readable, table: Table, latest: int, report: Progress) -> Iterator[Problem]:
    try:
        waiting = engine.read(lag.waiting_spaces)
    except (msgspec.MsgspecError, ValueError) as error:
        yield Problem(table.full_name, f"the changes for lagging indexes cannot be decoded: {error}")
        waiting = {index.space for index in table.indexes}
    settled = [index for index in table.indexes if not index.backfilling and index.space not in waiting]
    for index in table.indexes:
        if index.is_global and index.space in waiting and not index.lags:
            message = "changes of the index wait, but later ones would not wait for them"
            put_right = partial(lag.mark_indexes, full_name=table.full_name, lags=True, space=index.space)
            yield Problem(table.full_name, message, index.name, mend=put_right)
    yield from _Walk(engine, table, None, report).run(_Items(table, settled))
    for index in table.indexes:
        yield from _Walk(engine, table, index, report).run(_Entries(table, index, index in settled))
    if table.collection_space:
        yield from _check_collections(engine, table)
    if table.ttl is not None:
        yield from _check_queue(engine, table)
    if table.history is not None:
        yield from _check_history(engine, table, table.history, latest)


class _Bite(NamedTuple):
    """The result of checking some records: their sizes, the address of the last (None: there was none), how
    many could not be compared, and the look that continues after them."""

    problems: list[Problem]
    sizes: list[int]
    last: tuple[bytes, bytes] | None
    unread: int
    look: _Items | _Entries


class _Walk:
    """A walk over a table's items, or over the entries of an index, in bites. Decodes them and adds up
    totals."""

    __slots__ = ("engine", "index", "report", "space", "table")

    def __init__(self, engine: Readable, table: Table, index: Index | None, report: Progress) -> None:
        self.engine = engine
        self.table = table
        self.index = index
        self.space = table.space if index is None else index.space
        self.report = report

    def run(self, look: _Items | _Entries) -> Iterator[Problem]:
        what = self.table.full_name if self.index is None else f"{self.table.full_name}/{self.index.name}"
        low: tuple[bytes, bytes] = (b"", b"")
        looked_at = total = unread = 0
        while True:
            bite = self.engine.read(partial(self._bite, look=look, low=low))
            yield from bite.problems
            looked_at += len(bite.sizes)
            total += sum(bite.sizes)
            unread += bite.unread
            self.report(what, looked_at)
            if bite.last is None:
                break
            low = (bite.last[0], bite.last[1] + b"\x00")
            look = bite.look
        try:
            yield from self.engine.read(partial(_finish, look=look))
            kept = self.engine.read(lambda reader: reader.totals(self.space))
        except StorageError as error:
            yield self._problem(f"the totals cannot be read: {error}")
        else:
            if kept != Totals(looked_at, total):
                yield self._totals(kept, looked_at, total)
        if unread:
            message = f"{unread} records could not be compared with others, which cannot be read"
            yield self._problem(message)

    def _totals(self, kept: Totals, looked_at: int, total: int) -> Problem:
        def put_right(txn: Transaction) -> None:
            txn.count(self.space, looked_at - kept.records, total - kept.bytes)

        return self._problem(
            f"the totals are {kept.records} records of {kept.bytes} bytes, "
            f"but there are {looked_at} records of {total} bytes",
            mend=put_right,
        )

    def _bite(self, reader: Reader, look: _Items | _Entries, low: tuple[bytes, bytes]) -> _Bite:
        look = copy(look)  # the engine may run this again
        unread = 0
        problems: list[Problem] = []
        sizes: list[int] = []
        last: tuple[bytes, bytes] | None = None
        rows = reader.scan_space(self.space, low, likely=BITE_RECORDS)
        for partition, sort, record in islice(rows, BITE_RECORDS):
            last = partition, sort
            sizes.append(records.size_of(record))
            try:
                item = decoded(record)
            except ValueError as error:
                problems.append(self._problem(str(error), last))
                continue
            try:
                problems.extend(look(reader, partition, sort, record, item))
            except StorageError:  # the store itself reports this
                unread += 1
        return _Bite(problems, sizes, last, unread, look)

    def _problem(
        self, message: str, address: tuple[bytes, bytes] = (b"", b""), mend: Mend | None = None
    ) -> Problem:
        index = self.index.name if self.index is not None else None
        if address[0]:
            return Problem(self.table.full_name, message, index, *address, mend=mend)
        return Problem(self.table.full_name, message, index, mend=mend)


def _finish(reader: Reader, look: _Items | _Entries) -> list[Problem]:
    return list(copy(look).finish(reader))


def decoded(record: bytes) -> Item:
    """The item of a stored record; raises a `ValueError` that says what is wrong with it."""
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
    """The checks of each item: its address, its index entries, its collection, its expiry."""

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
            yield Problem(table.full_name, "the item's key belongs to another address", None, partition, sort)
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
                put_right = partial(
                    expiry.requeue, ttl=ttl, partition=partition, sort=sort, old_item=None, new_item=item
                )
                yield Problem(table.full_name, message, None, partition, sort, put_right)

    def _check_entry(
        self, reader: Reader, index: Index, entry: indexes.Entry, partition: bytes, sort: bytes
    ) -> Iterator[Problem]:
        stored = reader.get(index.space, entry.partition, entry.sort)
        put_right = partial(_put_entry, space=index.space, entry=entry)
        if stored is None:
            message = "the item has no entry in the index"
            yield Problem(self.table.full_name, message, index.name, partition, sort, put_right)
        elif stored != entry.record and not _same(stored, entry.record):
            message = "the entry does not hold what the item says"
            yield Problem(self.table.full_name, message, index.name, entry.partition, entry.sort, put_right)

    def finish(self, reader: Reader) -> Iterator[Problem]:
        """Compare the collection that ends here with its stored size."""
        if self.partition is None:
            return
        stored = applying.collection_size(reader, self.table, self.partition)
        if stored != self.collection:
            message = f"the item collection's size is {stored}, but its items have {self.collection} bytes"
            put_right = partial(
                applying.set_collection_size, table=self.table, partition=self.partition, size=self.collection
            )
            yield Problem(self.table.full_name, message, None, self.partition, b"", put_right)


def _put_entry(txn: Transaction, space: int, entry: indexes.Entry) -> None:
    """Write an entry that is missing or wrong."""
    old = txn.get(space, entry.partition, entry.sort)
    txn.put(space, entry.partition, entry.sort, entry.record)
    if old is None:
        txn.count(space, 1, records.size_of(entry.record))
    else:
        txn.count(space, 0, records.size_of(entry.record) - records.size_of(old))


def _delete_entry(txn: Transaction, space: int, partition: bytes, sort: bytes) -> None:
    """Delete an entry that no item has."""
    old = txn.get(space, partition, sort)
    if old is not None:
        txn.delete(space, partition, sort)
        txn.count(space, -1, -records.size_of(old))


def _same(first: bytes, second: bytes) -> bool:
    """Whether two records are equal, regardless of the order in maps and sets, which may differ in an
    entry."""
    try:
        return equal({"M": decoded(first)}, {"M": decoded(second)})
    except ValueError:
        return True  # reported by the walk over the entries


def _address_of(table: Table, item: Item) -> tuple[bytes, bytes] | None:
    try:
        return keys.address_of_item(table.key, item)
    except ServiceError:
        return None


class _Entries:
    """The check of each index entry: its item exists and has an entry at this address."""

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
            return  # reported by the walk over the items
        entry = indexes.entry_of(self.table, self.index, item, *address, stored)
        if entry is None or entry[:2] != (partition, sort):
            yield self._problem("the entry's item belongs elsewhere in the index", partition, sort)

    def _problem(self, message: str, partition: bytes, sort: bytes) -> Problem:
        put_right = partial(_delete_entry, space=self.index.space, partition=partition, sort=sort)
        return Problem(self.table.full_name, message, self.index.name, partition, sort, put_right)

    def finish(self, reader: Reader) -> Iterator[Problem]:
        """Nothing to do: entries have no collections."""
        return iter(())


def _check_collections(engine: Readable, table: Table) -> Iterator[Problem]:
    """Sizes of item collections without items. The others were compared during the walk over the items."""

    def bite(reader: Reader) -> tuple[list[Problem], tuple[bytes, bytes] | None]:
        problems: list[Problem] = []
        last: tuple[bytes, bytes] | None = None
        for partition, sort, _ in islice(reader.scan_space(table.collection_space, low), BITE_RECORDS):
            last = partition, sort
            if sort or next(iter(reader.scan(table.space, partition, likely=1)), None) is None:
                message = "there is a size for an item collection without items"
                put_right = partial(_delete_size, table=table, partition=partition, sort=sort)
                problems.append(Problem(table.full_name, message, None, partition, sort, put_right))
        return problems, last

    low: tuple[bytes, bytes] = (b"", b"")
    while True:
        problems, last = engine.read(bite)
        yield from problems
        if last is None:
            return
        low = (last[0], last[1] + b"\x00")


def _delete_size(txn: Transaction, table: Table, partition: bytes, sort: bytes) -> None:
    txn.delete(table.collection_space, partition, sort)


def _check_queue(engine: Readable, table: Table) -> Iterator[Problem]:
    """Places in the expiry queue whose item does not exist, or does not expire at that time."""
    ttl = table.ttl
    if ttl is None:
        return

    def bite(reader: Reader) -> tuple[list[Problem], tuple[int, bytes, bytes] | None]:
        problems: list[Problem] = []
        last: tuple[int, bytes, bytes] | None = None
        for place in islice(expiry.queued(reader, ttl, after), BITE_RECORDS):
            last = place
            seconds, partition, sort = place
            try:
                stored = reader.get(table.space, partition, sort)
                item = decoded(stored) if stored is not None else None
            except (ValueError, StorageError):
                continue  # the walk over the items and the store report this
            if expiry.expires_at(ttl.attribute, item) != seconds:
                message = f"the expiry queue says {seconds}, but no item here expires then"
                put_right = partial(expiry.forget, ttl=ttl, place=place)
                problems.append(Problem(table.full_name, message, None, partition, sort, put_right))
        return problems, last

    after: tuple[int, bytes, bytes] | None = None
    while True:
        problems, last = engine.read(bite)
        yield from problems
        if last is None:
            return
        after = last


def _check_history(engine: Readable, table: Table, history: History, latest: int) -> Iterator[Problem]:
    """The images of a table's history; `latest` is the last stamp that the engine gave. None of them can be
    repaired: nothing else knows the past."""
    ends = [*(span.after for span in history.spans[1:]), latest]
    for span, end in zip(history.spans, ends, strict=True):
        low: tuple[bytes, bytes] | None = (b"", b"")
        while low is not None:
            problems, low = engine.read(partial(_span_bite, table=table, span=span, end=end, low=low))
            yield from problems


def _span_bite(
    reader: Reader, table: Table, span: Span, end: int, low: tuple[bytes, bytes]
) -> tuple[list[Problem], tuple[bytes, bytes] | None]:
    """The problems of some images of a span, and where to go on (None: there are no more)."""
    problems: list[Problem] = []
    following: tuple[bytes, bytes] | None = None
    for partition, sort, image in islice(reader.scan_space(span.space, low), BITE_RECORDS):
        following = partition, sort + b"\x00"
        message = _wrong_image(table, partition, sort, image, span.after, end)
        if message is not None:
            problems.append(Problem(table.full_name, message, None, partition, sort))
    return problems, following


def _wrong_image(
    table: Table, partition: bytes, sort: bytes, image: bytes, after: int, end: int
) -> str | None:
    """What is wrong with an image of a span whose stamps are above `after`, and at most `end`."""
    place = images.split(sort)
    if place is None or not images.is_image(image):
        return "this is not an image of an item"
    if not after < place[1] <= end:
        return f"the image has the stamp {place[1]}, but lies among those above {after} and up to {end}"
    record = images.record_of(image)
    if record is None:
        return None
    try:
        item = decoded(record)
    except ValueError as error:
        return f"in an image of the history, {error}"
    if _address_of(table, item) != (partition, images.sort_of(place[0])):
        return "the key of the image belongs to another address"
    return None


def _check_spaces(
    engine: Readable, owners: dict[int, str], knows_owners: bool, report: Progress
) -> Iterator[Problem]:
    """Records in spaces that no table owns, among all space numbers that were ever given."""
    try:
        end = engine.read(catalog.spaces_end)
    except (ValueError, StorageError) as error:
        yield Problem("", f"the next free space number cannot be read: {error}")
        end = max(owners, default=FIRST_TABLE_SPACE) + 1
    for space in owners:
        if space >= end:
            message = f"space {space} is not below the next free one, {end}"
            yield Problem(owners[space], message, mend=partial(catalog.raise_spaces_end, end=space + 1))
    candidates = range(FIRST_TABLE_SPACE, end + _SPACES_BEYOND)
    for start in range(candidates.start, candidates.stop, BITE_RECORDS):
        bite = [s for s in range(start, min(start + BITE_RECORDS, candidates.stop)) if s not in owners]
        for space in engine.read(partial(_in_use, spaces=bite)):
            yield _orphan(space, end, knows_owners)
        report("spaces", min(start + BITE_RECORDS, candidates.stop))


def _orphan(space: int, end: int, knows_owners: bool) -> Problem:
    """The problem of a space that no table owns. No table may ever get this space."""

    def put_right(txn: Transaction) -> None:
        if space >= end:
            catalog.raise_spaces_end(txn, end=space + 1)
        if knows_owners:
            txn.delete_space(space)

    # If a definition cannot be decoded, the records may be those of its table, and stay.
    return Problem(
        "",
        f"space {space} holds records, but no table owns it",
        mend=put_right if knows_owners or space >= end else None,
        orphan=space if knows_owners else None,
    )


def _in_use(reader: Reader, spaces: list[int]) -> list[int]:
    used: list[int] = []
    for space in spaces:
        try:
            if next(iter(reader.scan_space(space, likely=1)), None) is not None or any(reader.totals(space)):
                used.append(space)
        except StorageError:
            used.append(space)
    return used
