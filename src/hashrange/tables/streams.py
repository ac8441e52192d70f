"""The change log of a table: streams, their shards, and the records in them.

A stream has its own space; each shard is a log in it, to which `writes.stream_records.record` appends in the
item's own transaction. A record goes to the open shard whose hash range holds the item's partition, so the
records of an item are in order. Sequence numbers come from the engine and grow with commit order over all
shards.

    catalog ("stream", scope / name 00 label) → the `Stream`, kept until 24 hours after it was disabled
    (stream space, shard's log, sequence)     → a `StreamRecord`, packed by msgspec

Not compiled, because msgspec decodes its structs (docs/decisions/0007-compiled-hot-path.md); the code on the
path of every write is in `writes.stream_records`.

Source: Developer Guide, "Change data capture for DynamoDB Streams".
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cached_property
from hashlib import blake2b
from itertools import islice, pairwise
from typing import NamedTuple

import msgspec

from hashrange import pace
from hashrange.clock import BEHIND_SECONDS_MAX
from hashrange.encoding import successor
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.bites import Damage, Done, Limit
from hashrange.tables.spaces import CATALOG_SPACE

STREAM = b"stream"
RETENTION_SECONDS = 24 * 3600
_SEQUENCE_BASE = 10**20
HASH_END = 1 << 16
_SHARD_ID = "shardId-"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Shard(msgspec.Struct, frozen=True):
    """A log of a stream, for partitions whose first two bytes are in `low <= hash < high`.

    The sequences of the shard's records are between `start` and `end`. `end` and `closed` are None while the
    shard is open. `trimmed` is the sequence of the last record that was deleted for its age. Times are in
    epoch seconds.
    """

    id: str
    low: int
    high: int
    start: int
    created: float
    parent: str | None = None
    end: int | None = None
    closed: float | None = None
    trimmed: int = 0

    @property
    def horizon(self) -> int:
        """The sequence above which the shard's records can still be read."""
        return max(self.start, self.trimmed)


class Left(msgspec.Struct, frozen=True):
    """What a deleted table has left for decisions on who may read its streams: its tags, and the document of
    the stream's policy, "" for none."""

    tags: dict[str, str]
    policy: str


class Stream(msgspec.Struct, frozen=True, dict=True):
    """A stream of a table. `closed` is the time at which it was disabled.

    `key` is the table's key, as `(attribute, "HASH" or "RANGE")`. It is stored here because a stream outlives
    its table, and another table may later have the table's name. `scope` is the table's scope. `left` is None
    while the table exists.
    """

    table: str
    label: str
    view_type: str
    space: int
    created: float
    shards: tuple[Shard, ...]
    closed: float | None = None
    key: tuple[tuple[str, str], ...] = ()
    scope: str = ""
    left: Left | None = None

    @property
    def full_name(self) -> str:
        """The full name of the table."""
        return f"{self.scope}/{self.table}" if self.scope else self.table

    @cached_property
    def open_shards(self) -> list[tuple[int, bytes]]:
        """The open shards as `(high, id)`, in the order of their hash ranges."""
        return sorted((shard.high, shard_log(shard.id)) for shard in self.shards if shard.end is None)


class StreamRecord(NamedTuple):
    """A stored stream record: the kind of the change, its time, and the item's JSON; `size` is in bytes.

    The engine gets the time as the record's stamp, so times within a shard never decrease. Otherwise they
    could: a request that began earlier may be committed later, and the clock may be set back.
    """

    event: str
    time: float
    size: int
    keys: bytes
    new: bytes | None
    old: bytes | None
    by_expiry: bool


# The position of the time in a packed `StreamRecord`: after the marker byte of the array, the 7 bytes of the
# event's name (six letters), and the marker byte of the float. The 8 bytes of the time sort as times do.
TIME_AT = 9

_ENCODE = msgspec.json.Encoder()
_DECODE = msgspec.json.Decoder(Stream)
_DECODE_CHANGE = msgspec.msgpack.Decoder(StreamRecord)


def shard_log(shard_id: str) -> bytes:
    """The partition of a shard's records: its id without the common beginning of all ids."""
    return shard_id.removeprefix(_SHARD_ID).encode()


def enable(
    txn: Transaction,
    table: str,
    key: tuple[tuple[str, str], ...],
    view_type: str,
    space: int,
    shard_count: int,
    last_label: str | None,
    now: float,
    scope: str,
) -> Stream:
    """Make a new stream of a table, with `shard_count` open shards. `last_label` is the label of the table's
    previous stream."""
    mark = txn.position(space)
    stamp = _stamp(now)
    latest = max([last_label or "", *_labels(txn, f"{scope}/{table}")])
    if latest:
        # A later stream gets a later label, even if the clock was set back, because consumers sort by labels.
        stamp = max(stamp, (datetime.fromisoformat(f"{latest}Z") - _EPOCH) // _MILLISECOND + 1)
    label = (_EPOCH + stamp * _MILLISECOND).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    ends = [number * HASH_END // shard_count for number in range(shard_count + 1)]
    shards = tuple(_new_shard(space, low, high, mark, stamp, now, None) for low, high in pairwise(ends))
    stream = Stream(table, label, view_type, space, now, shards, key=key, scope=scope)
    save(txn, stream)
    return stream


def _labels(reader: Reader, table: str) -> Iterator[str]:
    """The labels of all streams, on or off, of tables with this name."""
    for name, _ in reader.scan(CATALOG_SPACE, STREAM, f"{table}\x00".encode(), f"{table}\x01".encode()):
        yield name.decode().partition("\x00")[2]


def _stamp(now: float) -> int:
    """The time in the name of a stream or a shard, in milliseconds."""
    return int(now * 1000)


def _new_shard(
    space: int, low: int, high: int, mark: int, stamp: int, now: float, parent: str | None
) -> Shard:
    digest = blake2b(f"{space} {low} {mark}".encode(), digest_size=4).hexdigest()
    return Shard(f"{_SHARD_ID}{stamp:020}-{digest}", low, high, mark, now, parent)


def _stamp_of(shard: Shard) -> int:
    return int(shard.id.removeprefix(_SHARD_ID).partition("-")[0])


def disable(txn: Transaction, stream: Stream, now: float) -> None:
    """Disable a stream: its shards are closed, its records stay readable."""
    current = find_full(txn, stream.full_name, stream.label) or stream
    closed = roll_over(txn, current, now, reopen=False)
    save(txn, msgspec.structs.replace(closed, closed=now))


def outlive(txn: Transaction, full_name: str, tags: dict[str, str], policies: dict[str, str]) -> None:
    """Leave to the streams of a table that is deleted what decides who may read them: its tags, and the
    documents of the streams' policies by their labels."""
    for label in list(_labels(txn, _scoped(full_name))):
        stream = find_full(txn, full_name, label)
        if stream is not None and stream.left is None:
            save(txn, msgspec.structs.replace(stream, left=Left(tags, policies.get(label, ""))))


def roll_over(txn: Transaction, stream: Stream, now: float, *, reopen: bool = True) -> Stream:
    """Close the open shards, and open a child of each. Returns the new stream, which is not saved yet."""
    return rolled_over(stream, txn.position(stream.space), now, reopen=reopen)


def rolled_over(stream: Stream, mark: int, now: float, *, reopen: bool = True) -> Stream:
    """Like `roll_over`, at a mark from the caller."""
    # Shards are listed in the order of their names, and a child must come after its parent.
    stamp = max([_stamp(now), *(_stamp_of(shard) + 1 for shard in stream.shards)])
    shards: list[Shard] = []
    for shard in stream.shards:
        if shard.end is not None:
            shards.append(shard)
            continue
        shards.append(msgspec.structs.replace(shard, end=mark, closed=now))
        if reopen:
            shards.append(_new_shard(stream.space, shard.low, shard.high, mark, stamp, now, shard.id))
    return msgspec.structs.replace(stream, shards=tuple(shards))


def save(txn: Transaction, stream: Stream) -> None:
    """Store a stream's definition."""
    txn.put(CATALOG_SPACE, STREAM, _place(stream.full_name, stream.label), _ENCODE.encode(stream))


def forget(txn: Transaction, full_name: str, label: str) -> None:
    """Remove a stream with all its records, if it still exists."""
    stream = find_full(txn, full_name, label)
    if stream is not None:
        txn.delete(CATALOG_SPACE, STREAM, _place(full_name, label))
        txn.delete_space(stream.space)


def _place(full_name: str, label: str) -> bytes:
    """The place of a table's stream with a label."""
    return f"{_scoped(full_name)}\x00{label}".encode()


def _scoped(full_name: str) -> str:
    """The full name of a table as places of streams begin: with a "/" also where the scope is ""."""
    return full_name if "/" in full_name else f"/{full_name}"


def find(reader: Reader, table: str, label: str, scope: str) -> Stream | None:
    """The stream of a table with that label, on or off, or None."""
    return find_full(reader, f"{scope}/{table}", label)


def find_full(reader: Reader, full_name: str, label: str) -> Stream | None:
    """Like `find`, by the full name of the table."""
    stored = reader.get(CATALOG_SPACE, STREAM, _place(full_name, label))
    return _DECODE.decode(stored) if stored is not None else None


def decode(stored: bytes) -> Stream:
    """The stream whose stored form this is."""
    return _DECODE.decode(stored)


def encode(stream: Stream) -> bytes:
    """The stored form of a stream."""
    return _ENCODE.encode(stream)


def all_streams(
    reader: Reader, after: tuple[str, str] | None = None, scope: str | None = None
) -> Iterator[Stream]:
    """All streams of a scope, or of all scopes, in the order of table and label; with `after`, only those
    after this `(table, label)`.

    Streams whose definition cannot be decoded are left out.
    """
    prefix = "" if scope is None else f"{scope}/"
    low = prefix if after is None else f"{prefix}{after[0]}\x00{after[1]}\x00"
    high = successor(prefix.encode()) if prefix else None
    for _, stream in every_stream(reader, low.encode(), high):
        if isinstance(stream, Stream):
            yield stream


def every_stream(
    reader: Reader, low: bytes = b"", high: bytes | None = None
) -> Iterator[tuple[str, Stream | Exception]]:
    """Like `all_streams`, with the names under which they are stored. For a stream that cannot be decoded it
    yields the error."""
    for record in reader.scan(CATALOG_SPACE, STREAM, low, high):
        pace.point()
        yield read_stream(*record)


def read_stream(place: bytes, stored: bytes) -> tuple[str, Stream | Exception]:
    """The name and the stream of a record of STREAM; an error if it cannot be decoded."""
    name = place.replace(b"\x00", b"/").decode(errors="backslashreplace").removeprefix("/")
    try:
        return name, _DECODE.decode(stored)
    except (msgspec.MsgspecError, ValueError) as error:
        return name, error


def read(
    reader: Reader, stream: Stream, shard: str, after: int, limit: int
) -> Iterator[tuple[int, StreamRecord]]:
    """Up to `limit` records of a shard with sequences above `after`, as `(sequence, record)`."""
    low = (after + 1).to_bytes(8)
    for place, stored in islice(reader.scan(stream.space, shard_log(shard), low, likely=limit), limit):
        pace.point()
        yield int.from_bytes(place), _DECODE_CHANGE.decode(stored)


def newest(reader: Reader, stream: Stream, shard: Shard) -> int:
    """The sequence of a shard's newest record, its horizon if it has none."""
    for place, _ in reader.scan(stream.space, shard_log(shard.id), reverse=True, likely=1):
        return int.from_bytes(place)
    return shard.horizon


def mark_at(reader: Reader, stream: Stream, shard: Shard, moment: float) -> int:
    """The sequence after which a shard's records of the time `moment` (epoch seconds) and later begin.

    It is found by bisection of the sequences, which works because times never decrease. A walk would take too
    long for a read body, because a shard may hold the writes of a day.
    """
    low, high = shard.horizon, newest(reader, stream, shard)
    while low < high:
        # All records up to `low` are before `moment`; all above `high` are not.
        middle = (low + high) // 2
        following = next(read(reader, stream, shard.id, middle, 1), None)
        if following is None or following[0] > high or following[1].time >= moment:
            high = middle
        else:
            low = following[0]
    return low


def trim(txn: Transaction, stream: Stream, now: float, limit: Limit) -> Done:
    """Delete a bite of the records older than 24 hours. Empty closed shards are removed with them.

    A record that cannot be decoded is deleted with the next record whose time is known.
    """
    oldest = now - RETENTION_SECONDS
    left, bytes_left = limit
    damages: list[Damage] = []
    remaining_shards: list[Shard] = []
    more = False
    for shard in stream.shards:
        name = shard_log(shard.id)
        # A shard that was closed more than 24 hours ago holds only old records, even if their times are
        # later.
        over = shard.closed is not None and shard.closed < oldest
        trimmed, emptied = shard.trimmed, True
        unknown: list[Damage] = []
        for place, stored in _from_horizon(txn, stream, shard):
            if left <= 0 or bytes_left <= 0:
                emptied, more = False, True
                break
            moment = _time_of(stored)
            if moment is None:
                unknown.append(Damage(name, place, "the record cannot be decoded"))
                if not over:
                    continue
            elif moment >= oldest and not over:
                emptied = False
                break
            for damage in unknown:
                txn.delete(stream.space, name, damage.sort)
            damages += unknown
            unknown = []
            txn.delete(stream.space, name, place)
            trimmed = int.from_bytes(place)
            left -= 1
            bytes_left -= len(stored)
        if not emptied or unknown or not over:
            remaining_shards.append(msgspec.structs.replace(shard, trimmed=trimmed))
    if tuple(remaining_shards) != stream.shards:
        save(txn, msgspec.structs.replace(stream, shards=tuple(remaining_shards)))
    return Done(limit.items - left, damages, more)


def trimmable(reader: Reader, stream: Stream, now: float) -> bool:
    """Whether `trim` has something to do."""
    oldest = now - RETENTION_SECONDS
    for shard in stream.shards:
        over = shard.closed is not None and shard.closed < oldest
        moments = (_time_of(stored) for _, stored in _from_horizon(reader, stream, shard))
        first = next((moment for moment in moments if over or moment is not None), now)
        if over or first is None or first < oldest:
            return True
    return False


def is_at_rest(stream: Stream, now: float) -> bool:
    """Whether nothing of a stream is due, which its description tells without a look at its records: it is
    disabled, all its records are younger than a day, and the clock was not set back."""
    return (
        stream.closed is not None
        and stream.created >= now - RETENTION_SECONDS
        and all(shard.end is not None for shard in stream.shards)
        and all(moment is None or moment <= now + BEHIND_SECONDS_MAX for moment in _closings(stream))
    )


def is_ahead(reader: Reader, stream: Stream, now: float) -> bool:
    """Whether a stream holds times in the future, because the clock was set back."""
    latest = now + BEHIND_SECONDS_MAX
    if any(moment is not None and moment > latest for moment in _closings(stream)):
        return True
    for shard in stream.shards:
        if shard.end is None and (shard.created > latest or _last_time(reader, stream, shard) > latest):
            return True
    return False


def _last_time(reader: Reader, stream: Stream, shard: Shard) -> float:
    """The time of a shard's newest record, which is the latest time in the shard; 0 if it has no such
    record."""
    if next(_from_horizon(reader, stream, shard), None) is None:
        return 0.0  # all records are trimmed, and a scan from the end would walk over all their tombstones
    newest = next(reader.scan(stream.space, shard_log(shard.id), reverse=True, likely=1), None)
    return (_time_of(newest[1]) if newest is not None else None) or 0.0


def _closings(stream: Stream) -> list[float | None]:
    return [stream.closed, *(shard.closed for shard in stream.shards)]


def brought_back(stream: Stream, now: float) -> Stream:
    """The stream with future times of closing set to `now`.

    Retention then counts from `now`. The caller also rolls over open shards, because in the old shards new
    records would get the later times of the records before them.
    """
    shards = tuple(
        msgspec.structs.replace(shard, closed=None if shard.closed is None else min(shard.closed, now))
        for shard in stream.shards
    )
    closed = None if stream.closed is None else min(stream.closed, now)
    return msgspec.structs.replace(stream, shards=shards, closed=closed)


def _from_horizon(reader: Reader, stream: Stream, shard: Shard) -> Iterator[tuple[bytes, bytes]]:
    """The stored records of a shard, from its horizon on. A scan from the beginning of its log would walk
    over the tombstones of all trimmed records."""
    return reader.scan(stream.space, shard_log(shard.id), (shard.horizon + 1).to_bytes(8))


def _time_of(stored: bytes) -> float | None:
    """The time of a stored record, or None if the record cannot be decoded."""
    try:
        return _DECODE_CHANGE.decode(stored).time
    except (msgspec.MsgspecError, ValueError):
        return None


def decode_change(stored: bytes) -> StreamRecord:
    """The record whose stored form this is. Raises MsgspecError, ValueError."""
    return _DECODE_CHANGE.decode(stored)


def show_sequence(sequence: int) -> str:
    """A sequence number as the API shows it: 21 digits, so that texts order as numbers do."""
    return str(_SEQUENCE_BASE + sequence)


def parse_sequence(text: str) -> int:
    """The sequence number that the API shows as `text`. Raises `ValueError`."""
    return int(text) - _SEQUENCE_BASE
