"""The records of a table's stream: read from all its shards, and shown as differences between two images."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from hashrange.clock import show_moment
from hashrange.server.admin.application import subject_of
from hashrange_console import looks
from hashrange_console.differences import AttributeChange, Changes, changes
from hashrange_console.reach import Refused, View, text_of
from hashrange_console.values import Cell, cell

RECENT_SECONDS: Final = 15 * 60
"""How far back the page of a stream begins."""
_READ_MAX: Final = 1_000
_PAGES_MAX: Final = 5
_GONE: Final = ("ExpiredIteratorException", "ResourceNotFoundException", "TrimmedDataAccessException")
_EXPIRY: Final = "dynamodb.amazonaws.com"


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """A record of a stream. `note` says why its differences are not known."""

    sequence: str
    moment: str
    event: str
    key: list[tuple[str, Cell | None]]
    href: str
    by_expiry: bool
    changes: Changes
    note: str


@dataclass(slots=True)
class Reading:
    """A position in every shard of a stream, by iterators. `children` are shards that wait until their parent
    has been read."""

    table: str
    arn: str
    iterators: dict[str, str] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)

    async def begin(self, view: View, start: str, since: float | None = None) -> None:
        """Go to the start of the shards: `TRIM_HORIZON`, `LATEST`, or `AT_TIMESTAMP` with a time."""
        for shard in await shards_of(view, self.arn):
            if start == "LATEST" and "EndingSequenceNumber" in shard["SequenceNumberRange"]:
                self.finished.add(shard["ShardId"])
            elif start == "LATEST" or not self._waits(shard):
                await self._open(view, shard["ShardId"], start, since)

    async def follow(self, view: View) -> None:
        """Begin with shards that are new, or whose parent has been read to its end."""
        for shard in await shards_of(view, self.arn):
            name = shard["ShardId"]
            if name not in self.iterators and name not in self.finished and not self._waits(shard):
                await self._open(view, name, "TRIM_HORIZON", None)

    def _waits(self, shard: dict[str, Any]) -> bool:
        return shard.get("ParentShardId", "") in self.iterators

    async def _open(self, view: View, shard: str, start: str, since: float | None) -> None:
        sent: dict[str, Any] = {"StreamArn": self.arn, "ShardId": shard, "ShardIteratorType": start}
        if since is not None:
            sent["Timestamp"] = since
        try:
            answer = await view.read("GetShardIterator", sent)
        except Refused as error:
            if error.code not in _GONE:
                raise
            return  # the shard was removed meanwhile
        self.iterators[shard] = answer["ShardIterator"]

    async def read(self, view: View, limit: int) -> list[dict[str, Any]]:
        """The next records of all shards, up to `limit` of each, in the order of their numbers."""
        records: list[dict[str, Any]] = []
        has_ended = False
        for shard, iterator in tuple(self.iterators.items()):
            try:
                answer = await view.read("GetRecords", {"ShardIterator": iterator, "Limit": limit})
            except Refused as error:
                if error.code not in _GONE and records:
                    break  # what was read counts; the next call asks again
                if error.code not in _GONE:
                    raise
                # Nobody read for a quarter of an hour, or the records were trimmed: go on with what is new.
                del self.iterators[shard]
                await self._open(view, shard, "LATEST", None)
                continue
            records += answer["Records"]
            following = answer.get("NextShardIterator")
            if following is None:
                del self.iterators[shard]
                self.finished.add(shard)
                has_ended = True
            else:
                self.iterators[shard] = following
        if has_ended:
            await self.follow(view)
        return sorted(records, key=lambda record: int(record["dynamodb"]["SequenceNumber"]))


async def shards_of(view: View, arn: str) -> list[dict[str, Any]]:
    """The shards of a stream."""
    shards: list[dict[str, Any]] = []
    start: dict[str, str] = {}
    while True:
        described = (await view.read("DescribeStream", {"StreamArn": arn, **start}))["StreamDescription"]
        shards += described["Shards"]
        if "LastEvaluatedShardId" not in described:
            return shards
        start = {"ExclusiveStartShardId": described["LastEvaluatedShardId"]}


async def recent(view: View, reading: Reading, rows_max: int) -> tuple[list[dict[str, Any]], bool]:
    """The latest records of the last quarter of an hour, newest first, and whether there may be more;
    `reading` stands behind them."""
    now = subject_of(view.request).database.clock.now()
    await reading.begin(view, "AT_TIMESTAMP", max(0.0, now - RECENT_SECONDS))
    kept: deque[dict[str, Any]] = deque(maxlen=rows_max)
    count = 0
    for _ in range(_PAGES_MAX):
        read = await reading.read(view, _READ_MAX)
        count += len(read)
        kept.extend(read)
        if not read:
            return list(kept)[::-1], count > rows_max
    reading.iterators.clear()
    await reading.begin(view, "LATEST")
    return list(kept)[::-1], True


def row_of(view: View, table: str, record: dict[str, Any]) -> ShownRecord:
    """The row of a record."""
    body = record["dynamodb"]
    key, old, new = body["Keys"], body.get("OldImage"), body.get("NewImage")
    event = record["eventName"]
    differences, note = changes(old, new, frozenset(key)), ""
    if old is None and new is None:
        note = "The stream has keys only."
    elif event == "MODIFY" and (old is None or new is None):
        has = "new" if old is None else "old"
        note = f"The stream has {has} images only, so what changed is not known. The {has} image:"
        cells = [(name, cell(value)) for name, value in (new or old or {}).items() if name not in key]
        shown = tuple(AttributeChange(name, value, value) for name, value in cells)
        differences = Changes(shown, has_more=False)
    return ShownRecord(
        body["SequenceNumber"],
        show_moment(body["ApproximateCreationDateTime"]),
        event,
        [(name, cell(value)) for name, value in key.items()],
        looks.href(f"/console/t/{table}/item", key=text_of(key), scope=view.scope),
        record.get("userIdentity", {}).get("PrincipalId") == _EXPIRY,
        differences,
        note,
    )
