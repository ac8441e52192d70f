"""Translates the records of a store of format 1 or 2 to format 3.

Format 3 places items, and entries of indexes with their own partition key, by a salted hash (`encoding`), and
stores tables and streams by their scope (`catalog`). All spaces, totals and sequence numbers stay.

    catalog            tables and streams go to the shared scope
    items              to their new places; with them their places in the expiry queue, and, at the first item
                       of each partition, the size of the item collection
    index entries      to their new places
    lagging changes    with the new places of their entries
    indexes that are being filled  lose their entries, and are filled anew: the order of the items is
                       another, and version 0.1.0 noted no changes of items meanwhile
    expiry queues      are left out and made of the items: one that was still being built is complete then
    progress of index builds  is left out
    holds on items     are left out: a transaction that was under way has ended with the process
    streams, tokens, and all else  as they are

The open shards of a stream divide the items by their hash. If a stream has several, they are closed, and
children opened: the records of an item are in order in each shard, but its old records may lie in a shard
that is not the parent of the shard with its new records. Streams with a single shard continue in it.

Refuses to know where the records come from and how they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from hashrange.encoding import PLACE_BYTES
from hashrange.errors import ServiceError
from hashrange.storage.api import Reader
from hashrange.storage.failures import StorageError
from hashrange.storage.translation import Record, Translation, Untranslatable
from hashrange.tables.background import expiry, lag, queues
from hashrange.tables.data import indexes, items, keys, records
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions import table as tables
from hashrange.tables.definitions.table import Index, Table
from hashrange.tables.spaces import BACKFILL_SPACE, CATALOG_SPACE, HOLD_SPACE, LAG_SPACE
from hashrange.tables.streams import logs
from hashrange.values import Item

_OfSpace = Callable[[bytes, bytes, bytes], Iterator[Record]]


def begin(reader: Reader, mark: int, now: float) -> Translation:
    """The translation of the store that `reader` shows. `mark` and `now` are for the ends of shards."""
    return _Translation(reader, mark, now)


class _Translation:
    """The facts about the whole store: which table each space belongs to."""

    def __init__(self, reader: Reader, mark: int, now: float) -> None:
        self._reader = reader
        self._mark = mark
        self._now = now
        self.emptied: set[int] = set()
        self._indexes: dict[int, tuple[Table, Index]] = {}
        self._of_space: dict[int, _OfSpace] = {
            CATALOG_SPACE: self._definition,
            LAG_SPACE: self._lagging,
            BACKFILL_SPACE: _nothing,
            HOLD_SPACE: _nothing,
        }
        for _, stored in reader.scan(CATALOG_SPACE, catalog.TABLE):
            try:
                self._add(tables.decode(stored))
            except (msgspec.MsgspecError, ValueError):
                continue  # reported when the definition itself is translated

    def _add(self, table: Table) -> None:
        self._of_space[table.space] = _Items(self._reader, table).record
        for index in table.indexes:
            if index.backfilling:
                self.emptied.add(index.space)
            else:
                self._of_space[index.space] = partial(_entry, table, index)
                self._indexes[index.space] = table, index
        if table.collection_space:
            self._of_space[table.collection_space] = _nothing
        if table.ttl is not None:
            self._of_space[table.ttl.space] = _nothing

    def record(self, space: int, partition: bytes, sort: bytes, value: bytes) -> Iterator[Record]:
        """The translation of a record; it stays unchanged unless a rule applies."""
        translate = self._of_space.get(space)
        if translate is None:
            return iter(((space, partition, sort, value),))
        try:
            return iter([*translate(partition, sort, value)])
        except (Untranslatable, StorageError):
            raise
        except Exception as error:  # damaged records can fail in any way
            where = _at(f"A record of space {space}", partition, sort)
            raise Untranslatable(f"{where} cannot be brought over ({error!r})") from error

    def _definition(self, partition: bytes, sort: bytes, value: bytes) -> Iterator[Record]:
        if partition in (catalog.TABLE, logs.STREAM):
            try:
                if partition == catalog.TABLE:
                    value = tables.encode(self._table(tables.decode(value)))
                else:
                    value = logs.encode(self._stream(logs.decode(value)))
            except (msgspec.MsgspecError, ValueError) as error:
                what = f"{partition.decode()} {sort.decode(errors='backslashreplace')}"
                raise Untranslatable(f"The definition of {what!r} cannot be decoded ({error})") from error
            sort = b"/" + sort
        yield CATALOG_SPACE, partition, sort, value

    def _table(self, table: Table) -> Table:
        indexes_ = tuple(msgspec.structs.replace(index, lags=index.is_global) for index in table.indexes)
        table = msgspec.structs.replace(table, indexes=indexes_)  # the next sweep ends this where none waits
        if table.updating_until <= self._now:  # 0.1.0 never ended this state: it compared the time
            table = msgspec.structs.replace(table, updating_until=0.0)
        if table.ttl is not None:
            table = msgspec.structs.replace(table, ttl=msgspec.structs.replace(table.ttl, built=True))
        if table.stream is None:
            return table
        place = f"{table.name}\x00{table.stream.label}".encode()
        stored = self._reader.get(CATALOG_SPACE, logs.STREAM, place)
        stream = table.stream if stored is None else logs.decode(stored)
        return msgspec.structs.replace(table, stream=self._stream(stream))

    def _stream(self, stream: logs.Stream) -> logs.Stream:
        if len(stream.open_shards) < 2:
            return stream
        return logs.rolled_over(stream, self._mark, self._now)

    def _lagging(self, partition: bytes, sort: bytes, value: bytes) -> Iterator[Record]:
        if partition == lag.CHANGE:
            try:
                change = lag.decode(value)
            except (msgspec.MsgspecError, ValueError) as error:
                raise Untranslatable(f"A change for a lagging index cannot be decoded ({error})") from error
            index = self._indexes.get(change.space)
            if index is None:
                return  # the index was deleted, or is filled again
            before, after = (
                image and _moved(*index, image) for image in (change.before, change.after)
            )
            value = lag.encode(change._replace(before=before, after=after))
        yield LAG_SPACE, partition, sort, value


def _nothing(partition: bytes, sort: bytes, value: bytes) -> Iterator[Record]:
    return iter(())


class _Items:
    """The items of a table, in the order of their places."""

    def __init__(self, reader: Reader, table: Table) -> None:
        self._reader = reader
        self._table = table
        self._partition = b""

    def record(self, partition: bytes, sort: bytes, value: bytes) -> Iterator[Record]:
        table = self._table
        where = f"An item of table {table.name}"
        item = _decoded(where, partition, sort, value)
        place = _address(where, table, item, partition, sort)
        if place[1] != sort or place[0][PLACE_BYTES:] != partition[PLACE_BYTES:]:
            raise Untranslatable(f"{_at(where, partition, sort)} has the key of another one")
        yield table.space, *place, value
        if table.collection_space and partition != self._partition:
            self._partition = partition
            size = items.collection_size(self._reader, table, partition)
            if size:
                yield table.collection_space, place[0], b"", str(size).encode()
        if table.ttl is not None:
            seconds = expiry.expires_at(table.ttl.attribute, item)
            if seconds is not None:
                yield table.ttl.space, queues.QUEUE, queues.place(seconds, place[0] + place[1]), b""


def _entry(table: Table, index: Index, partition: bytes, sort: bytes, value: bytes) -> Iterator[Record]:
    place = _entry_place(table, index, partition, sort, value)
    yield index.space, *place, value


def _moved(table: Table, index: Index, entry: indexes.Entry) -> indexes.Entry:
    partition, sort = _entry_place(table, index, entry.partition, entry.sort, entry.record)
    return entry._replace(partition=partition, sort=sort)


def _entry_place(
    table: Table, index: Index, partition: bytes, sort: bytes, value: bytes
) -> tuple[bytes, bytes]:
    """The place of an entry, which holds its item's key and its own."""
    where = f"An entry of index {index.name} of table {table.name}"
    item = _decoded(where, partition, sort, value)
    place = _address(where, table, item, partition, sort)
    if not indexes.fits(index, item):
        raise Untranslatable(f"{_at(where, partition, sort)} lacks a part of its key")
    return indexes.position(index, item, *place)


def _decoded(where: str, partition: bytes, sort: bytes, value: bytes) -> Item:
    try:
        if len(value) > records.HEADER_BYTES and value[0] == records.FORMAT_VERSION:
            item = records.item_of(value)
            if isinstance(item, dict):
                return item
    except ValueError:
        pass
    raise Untranslatable(f"{_at(where, partition, sort)} cannot be decoded")


def _address(where: str, table: Table, item: Item, partition: bytes, sort: bytes) -> tuple[bytes, bytes]:
    try:
        return keys.address_of_item(table.key, item)
    except (ServiceError, ValueError, TypeError, AttributeError) as error:
        raise Untranslatable(f"{_at(where, partition, sort)} has no key of its table ({error})") from error


def _at(where: str, partition: bytes, sort: bytes) -> str:
    return f"{where}, at {partition.hex()}/{sort.hex()},"
