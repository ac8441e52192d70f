"""The checks of streams: their shards, the records in them, and the next numbers of the engine.

Sequence numbers have gaps, because logs share them. So a record that is missing in the middle of a shard is
not noticed. The checks are that shards follow each other without a gap, and that each record lies where its
readers look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

import msgspec
import orjson

from hashrange.storage.api import Reader
from hashrange.storage.store_copy import Numbers
from hashrange.tables import streams
from hashrange.tables.inspection.problems import BITE_RECORDS, Progress, Readable
from hashrange.tables.streams import Shard, Stream, StreamRecord

_SEQUENCE_BYTES = 8

Found = tuple[str, bytes | None, bytes | None]
"""A problem, and the partition and sort of the record that it concerns, if it concerns one."""


@dataclass(slots=True)
class _Place:
    """The place of a walk over the records of a stream, and the newest record of the shard so far."""

    low: tuple[bytes, bytes] = (b"", b"")
    partition: bytes | None = None
    time: float = float("-inf")


def check_stream(
    engine: Readable, stream: Stream, numbers: Numbers | None, report: Progress
) -> Iterator[Found]:
    """All problems of a stream."""
    for message in _check_shards(stream):
        yield message, None, None
    shards = {streams.shard_log(shard.id): shard for shard in stream.shards}
    last = numbers.last.get(stream.space, 0) if numbers is not None else None
    place: _Place | None = _Place()
    looked_at = 0
    while place is not None:
        body = partial(_bite, stream=stream, shards=shards, last=last, place=place)
        problems, records, place = engine.read(body)
        yield from problems
        looked_at += records
        report(f"stream of {stream.full_name}", looked_at)


def _check_shards(stream: Stream) -> Iterator[str]:
    """Check that the shards follow each other, and that the open shards cover all hashes."""
    by_id = {shard.id: shard for shard in stream.shards}
    for shard in stream.shards:
        parent = by_id.get(shard.parent or "")
        if parent is not None and parent.end != shard.start:
            yield (
                f"the shard {shard.id} begins at {shard.start}, but its parent ends at {parent.end}: "
                "there is a gap between them"
            )
    if stream.closed is not None:
        return
    end = 0
    for shard in sorted(
        (shard_ for shard_ in stream.shards if shard_.end is None), key=lambda shard_: shard_.low
    ):
        if shard.low != end:
            yield f"open shards leave a gap or overlap at the hash {min(end, shard.low)}"
        end = shard.high
    if end != streams.HASH_END:
        yield f"no open shard takes records above the hash {end}"


def _bite(
    reader: Reader, stream: Stream, shards: dict[bytes, Shard], last: int | None, place: _Place
) -> tuple[list[Found], int, _Place | None]:
    """The problems of some records, the number of these records, and where to continue (None: at the end)."""
    problems: list[Found] = []
    records = 0
    partition, time = place.partition, place.time
    following: _Place | None = None
    for log, sort, stored in islice(reader.scan_space(stream.space, place.low), BITE_RECORDS):
        records += 1
        if log != partition:
            partition, time = log, float("-inf")
            if log not in shards:
                problems.append(("these records are in no shard of the stream", log, sort))
        change = _decoded(stored)
        if isinstance(change, str):
            problems.append((change, log, sort))
        else:
            if change.time < time:
                problems.append(("the record is older than the one before it", log, sort))
            time = change.time
        message = _misplaced(shards.get(log), sort, last)
        if message is not None:
            problems.append((message, log, sort))
        following = _Place((log, sort + b"\x00"), partition, time)
    return problems, records, following


def _misplaced(shard: Shard | None, sort: bytes, last: int | None) -> str | None:
    """The problem with the number of a record, or None."""
    if len(sort) != _SEQUENCE_BYTES:
        return "the record has no sequence number"
    number = int.from_bytes(sort)
    if shard is not None and not shard.start < number < (shard.end or 1 << 64):
        return f"the record has the number {number}, which is not between those of its shard"
    if last is not None and number > last:
        return f"the record has the number {number}, but the next one will be above {last}"
    return None


def _decoded(stored: bytes) -> StreamRecord | str:
    """The record, or its problem."""
    try:
        change = streams.decode_change(stored)
        for part in (change.keys, change.new, change.old):
            if part is not None and not isinstance(orjson.loads(part), dict):
                return "the stream record does not hold an item"
    except (msgspec.MsgspecError, ValueError) as error:
        return f"the stream record cannot be decoded: {error}"
    return change


StoredNumbers = Callable[[set[int]], Numbers]
"""Returns what an engine stores for the logs in these spaces beside their records."""
