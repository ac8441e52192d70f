"""The changes of a table since a position, shard by shard, parents before children.

A position says how far a shard was read: after a sequence number, at an iterator, at its first record, or to
its end. Nothing is skipped: if records were lost before they were read, that is a `Gap`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from botocore.exceptions import ClientError

from hashrange.cli.remote.clients import error_code
from hashrange_sync.errors import Gap, Missing
from hashrange_sync.items import Item
from hashrange_sync.sides.calls import Side

_RECORDS_MAX: Final = 1_000
_SERVICE: Final = "dynamodb.amazonaws.com"


@dataclass(frozen=True, slots=True)
class Position:
    """How far a shard was read. Without `after` and `iterator` it starts with the shard's first record."""

    after: str = ""
    iterator: str = ""
    done: bool = False


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard of the stream: its parent ("" for none), and the number before its first record."""

    id: str
    parent: str
    start: str
    closed: bool


@dataclass(frozen=True, slots=True)
class Record:
    """A change of an item; None where it was not there. `at` is in epoch seconds."""

    key: Item
    old: Item | None
    new: Item | None
    expiry: bool
    at: float
    sequence: str


@dataclass(frozen=True, slots=True)
class Page:
    """Records of a shard in order, and the position after them."""

    shard: str
    records: list[Record]
    position: Position


class Follower:
    """Reads the stream `arn` of a side from `positions`."""

    def __init__(self, side: Side, arn: str, positions: Mapping[str, Position]) -> None:
        self.arn = arn
        self.positions = dict(positions)
        self._side = side
        self._iterators: dict[str, str] = {}
        self._shards: dict[str, Shard] = {}
        self._stale = True

    @classmethod
    def beginning(cls, side: Side, arn: str) -> Follower:
        """A reader of all changes from now on. Its positions have to be stored before anything else is
        read."""
        made = cls(side, arn, {})
        for shard in made._listed().values():
            if shard.closed:
                made.positions[shard.id] = Position(done=True)
            else:
                iterator = made._new_iterator(shard.id, ShardIteratorType="LATEST")
                made.positions[shard.id] = Position(iterator=iterator)
        return made

    def pages(self) -> Iterator[Page]:
        """One read of each shard that can be read, which may find nothing. Raises `Gap`."""
        for shard in self.ready():
            yield self.read(shard)

    def ready(self) -> list[Shard]:
        """The shards whose parents were read to their ends. Raises `Gap`."""
        if self._stale or self.has_ended:
            self._discover()
        return [
            shard
            for shard in self._shards.values()
            if not self.positions[shard.id].done
            and (shard.parent not in self.positions or self.positions[shard.parent].done)
        ]

    def advance(self, page: Page, gone: Sequence[str] = ()) -> None:
        """Go on after a page, whose records are done, and without shards of `forgotten`."""
        self.positions[page.shard] = page.position
        for shard in gone:
            del self.positions[shard]
        if page.position.done:
            self._iterators.pop(page.shard, None)
            self._stale = True

    @property
    def has_ended(self) -> bool:
        """Whether all shards were read to their ends, so that the stream may be off."""
        return all(position.done for position in self.positions.values())

    def forgotten(self) -> list[str]:
        """Shards that are no longer listed and were read to their end, so their positions are not needed."""
        return [shard for shard, at in self.positions.items() if at.done and shard not in self._shards]

    def _discover(self) -> None:
        self._shards = self._listed()
        for name, position in self.positions.items():
            if not position.done and name not in self._shards:
                raise Gap(self._side.name, f"shard {name} is no longer there")
        for shard in self._shards.values():
            if shard.id in self.positions:
                continue
            if shard.parent and shard.parent not in self._shards and shard.parent not in self.positions:
                raise Gap(self._side.name, f"shard {shard.parent} is no longer there")
            self.positions[shard.id] = Position()
        self._stale = False

    def _listed(self) -> dict[str, Shard]:
        shards: dict[str, Shard] = {}
        start: dict[str, str] = {}
        while True:
            try:
                answer = self._side.stream("describe_stream", StreamArn=self.arn, **start)[
                    "StreamDescription"
                ]
            except Missing as error:
                raise Gap(self._side.name, f"the stream {self.arn} is no longer there") from error
            for shown in answer["Shards"]:
                numbers = shown["SequenceNumberRange"]
                shards[shown["ShardId"]] = Shard(
                    shown["ShardId"],
                    shown.get("ParentShardId", ""),
                    numbers["StartingSequenceNumber"],
                    "EndingSequenceNumber" in numbers,
                )
            if "LastEvaluatedShardId" not in answer:
                return shards
            start = {"ExclusiveStartShardId": answer["LastEvaluatedShardId"]}

    def read(self, shard: Shard) -> Page:
        """The next page of a shard. Several shards may be read side by side. Raises `Gap`."""
        position = self.positions[shard.id]
        for attempt in range(3):
            iterator = self._iterators.get(shard.id) or self._iterator(shard, position, first=not attempt)
            try:
                answer = self._side.stream("get_records", ShardIterator=iterator, Limit=_RECORDS_MAX)
                break
            except ClientError as error:
                self._iterators.pop(shard.id, None)
                if error_code(error) == "TrimmedDataAccessException":
                    raise Gap(self._side.name, f"shard {shard.id} was trimmed") from error
                if error_code(error) != "ExpiredIteratorException" or attempt == 2:
                    raise
            except Missing as error:
                raise Gap(self._side.name, f"shard {shard.id} is no longer there") from error
        records = [_record(shown) for shown in answer["Records"]]
        after = records[-1].sequence if records else position.after
        following = answer.get("NextShardIterator")
        if following is not None:
            self._iterators[shard.id] = following
            moved = replace(position, after=after, iterator="" if after else position.iterator)
            return Page(shard.id, records, moved)
        return Page(shard.id, records, Position(after, done=True))

    def _iterator(self, shard: Shard, position: Position, *, first: bool) -> str:
        if position.after:
            return self._new_iterator(
                shard.id, ShardIteratorType="AFTER_SEQUENCE_NUMBER", SequenceNumber=position.after
            )
        if position.iterator and first:
            return position.iterator
        # (not TRIM_HORIZON, which would not tell that the first records were trimmed)
        return self._new_iterator(
            shard.id, ShardIteratorType="AT_SEQUENCE_NUMBER", SequenceNumber=shard.start
        )

    def _new_iterator(self, shard: str, **kind: str) -> str:
        try:
            answer = self._side.stream("get_shard_iterator", StreamArn=self.arn, ShardId=shard, **kind)
        except ClientError as error:
            if error_code(error) == "TrimmedDataAccessException":
                raise Gap(self._side.name, f"shard {shard} was trimmed") from error
            raise
        except Missing as error:
            raise Gap(self._side.name, f"shard {shard} is no longer there") from error
        return str(answer["ShardIterator"])


def _record(shown: Mapping[str, Any]) -> Record:
    change = shown["dynamodb"]
    by = shown.get("userIdentity") or {}
    by = {name.lower(): value for name, value in by.items()}
    at = change.get("ApproximateCreationDateTime", 0)
    return Record(
        change["Keys"],
        change.get("OldImage"),
        change.get("NewImage"),
        by.get("principalid") == _SERVICE,
        at.timestamp() if hasattr(at, "timestamp") else float(at),
        change["SequenceNumber"],
    )
