"""The outbox of a table: the changes that its Kinesis data stream has not got yet.

An outbox is a log like a stream's shard, in a space of its own that only the deliverer reads. It exists while
a destination is live and the server knows an endpoint for Kinesis. Changes that were delivered are removed.

    (outbox space, "outbox", sequence)      → a `StreamRecord` of `tables.streams`
    ("delivery", scope / table)             → the `Progress` of each table with a live destination
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from hashrange import pace
from hashrange.storage.api import Reader, Transaction
from hashrange.tables import streams
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Destination, Table
from hashrange.tables.spaces import DELIVERIES, DELIVERY_SPACE
from hashrange.tables.streams import Shard, Stream, StreamRecord

_SHARD: Final = "outbox"
LOG: Final = streams.shard_log(_SHARD)
_LABEL: Final = "kinesis"


class Progress(msgspec.Struct, frozen=True):
    """How far the deliveries of a table have got: `delivered` is the sequence of the last change that its
    destination needs no more."""

    delivered: int = 0


_ENCODE: Final = msgspec.json.Encoder()
_DECODE: Final = msgspec.json.Decoder(Progress)


class Waiting(NamedTuple):
    """A change that waits: its sequence, the change, and its stored size in bytes. `error` says why it cannot
    be decoded; there is no change then."""

    sequence: int
    change: StreamRecord | None
    size: int
    error: str = ""


def live(table: Table) -> Destination | None:
    """The destination that takes the one place which a table has, in whichever state; None if it is free."""
    return next((destination for destination in table.destinations if destination.is_live), None)


def with_destination(table: Table, changed: Destination) -> Table:
    """The table with `changed` in the place of the destination with the same ARN."""
    destinations = tuple(
        changed if destination.arn == changed.arn else destination for destination in table.destinations
    )
    return msgspec.structs.replace(table, destinations=destinations)


def begin(txn: Transaction, table: Table) -> None:
    """Let the deliverer look after a table."""
    if txn.get(DELIVERY_SPACE, DELIVERIES, _place(table.full_name)) is None:
        keep(txn, table.full_name, Progress())


def opened(txn: Transaction, table: Table, now: float) -> Table:
    """The table with an empty outbox, in which every change is kept from now on."""
    space = catalog.new_space(txn)
    shard = Shard(_SHARD, 0, streams.HASH_END, txn.position(space), now)
    outbox = Stream(table.name, _LABEL, "NEW_AND_OLD_IMAGES", space, now, (shard,), scope=table.scope)
    keep(txn, table.full_name, Progress())
    return msgspec.structs.replace(table, outbox=outbox)


def closed(table: Table) -> Table:
    """The table with an outbox that takes no more changes, because its destination is being disabled."""
    outbox = table.outbox
    if outbox is None:
        return table
    shards = tuple(msgspec.structs.replace(shard, end=shard.start) for shard in outbox.shards)
    return msgspec.structs.replace(table, outbox=msgspec.structs.replace(outbox, shards=shards))


def ended(txn: Transaction, table: Table, destination: Destination) -> Table:
    """The table after its destination has failed or was disabled, without an outbox. What still waited in the
    outbox is dropped."""
    txn.delete(DELIVERY_SPACE, DELIVERIES, _place(table.full_name))
    if table.outbox is not None:
        txn.delete_space(table.outbox.space)
    return msgspec.structs.replace(with_destination(table, destination), outbox=None)


def concluded(txn: Transaction, table: Table, destination: Destination) -> Table:
    """The table after an ENABLING destination has become ACTIVE, or, if it has a `reason`,
    ENABLE_FAILED."""
    if destination.reason is None:
        return with_destination(table, msgspec.structs.replace(destination, status="ACTIVE", until=0.0))
    return ended(txn, table, msgspec.structs.replace(destination, status="ENABLE_FAILED", until=0.0))


def waiting(reader: Reader, outbox: Stream, after: int, limit: int) -> Iterator[Waiting]:
    """Up to `limit` changes in an outbox above the sequence `after`, in the order of their commits."""
    low = (after + 1).to_bytes(8)
    for place, stored in islice(reader.scan(outbox.space, LOG, low, likely=limit), limit):
        pace.point()
        sequence = int.from_bytes(place)
        try:
            yield Waiting(sequence, streams.decode_change(stored), len(stored))
        except (msgspec.MsgspecError, ValueError) as error:
            yield Waiting(sequence, None, len(stored), str(error))


def is_empty(reader: Reader, outbox: Stream, after: int) -> bool:
    """Whether no change above the sequence `after` waits."""
    low = (after + 1).to_bytes(8)
    return next(iter(reader.scan(outbox.space, LOG, low, likely=1)), None) is None


def deliver(txn: Transaction, full_name: str, outbox: Stream, before: int, sequences: list[int]) -> bool:
    """Remove the changes with these sequences, the first that waited above `before`. Returns whether this
    could be done: it cannot if the outbox has ended, or another server has delivered them meanwhile."""
    table = catalog.find_full(txn, full_name)
    if table is None or table.outbox is None or table.outbox.space != outbox.space:
        return False
    if progress(txn, full_name).delivered != before:
        return False
    for sequence in sequences:
        txn.delete(outbox.space, LOG, sequence.to_bytes(8))
    keep(txn, full_name, Progress(sequences[-1]))
    return True


def progress(reader: Reader, full_name: str) -> Progress:
    """How far the deliveries of a table have got."""
    stored = reader.get(DELIVERY_SPACE, DELIVERIES, _place(full_name))
    return _DECODE.decode(stored) if stored is not None else Progress()


def keep(txn: Transaction, full_name: str, reached: Progress) -> None:
    """Store how far the deliveries of a table have got."""
    txn.put(DELIVERY_SPACE, DELIVERIES, _place(full_name), _ENCODE.encode(reached))


def forget(txn: Transaction, full_name: str) -> None:
    """Let the deliverer forget a table."""
    txn.delete(DELIVERY_SPACE, DELIVERIES, _place(full_name))


def tables(reader: Reader) -> list[str]:
    """The full names of the tables with live destinations."""
    return [place.decode().removeprefix("/") for place, _ in reader.scan(DELIVERY_SPACE, DELIVERIES)]


def _place(full_name: str) -> bytes:
    return catalog.place_of(full_name)
