"""Reads a table's streams through the public API: the list of streams and shards, and their records.

    clients = connect("http://127.0.0.1:8000")              # hashrange.cli.remote.clients
    for stream in streams_of(clients, "orders"):
        for shard in shards_of(clients, stream.arn):
            cursor = Cursor(clients, stream.arn, shard.id, start="TRIM_HORIZON")
            records = cursor.read(1000)

A `Cursor` replaces its iterator when the iterator expires. Knows nothing of checkpoints or functions. Works
on AWS too.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from botocore.exceptions import ClientError

from hashrange.cli.remote.clients import SERVICE_ERRORS, Clients, error_code, is_transient
from hashrange_triggers.events import Record, created_at, record_of, sequence_of

_log = logging.getLogger("hashrange_triggers")

PAGE_RECORDS_MAX: Final = 1_000
Start = Literal["TRIM_HORIZON", "LATEST"]


class TriggerError(Exception):
    """The trigger cannot run; the text says what to do."""


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A stream of a table. A stream that was enabled later has a greater label."""

    arn: str
    label: str


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """A shard of a stream; a closed shard gets no more records."""

    id: str
    parent: str | None
    closed: bool


def table_streams(clients: Clients, table: str) -> tuple[list[StreamInfo], str | None]:
    """The streams of a table in the order of their labels, and the ARN of the enabled stream, if there is
    one.

    Raises `TriggerError` if there is no such table.
    """
    try:
        described = clients.dynamodb.describe_table(TableName=table)["Table"]
    except ClientError as error:
        if error_code(error) == "ResourceNotFoundException":
            raise TriggerError(f"There is no table {table}.") from error
        raise
    streams: dict[str, StreamInfo] = {}
    start: dict[str, str] = {}
    while True:
        answer = clients.streams.list_streams(TableName=table, **start)
        for listed in answer["Streams"]:
            streams[listed["StreamLabel"]] = StreamInfo(listed["StreamArn"], listed["StreamLabel"])
        if "LastEvaluatedStreamArn" not in answer:
            break
        start = {"ExclusiveStartStreamArn": answer["LastEvaluatedStreamArn"]}
    is_on = described.get("StreamSpecification", {}).get("StreamEnabled", False)
    return [streams[label] for label in sorted(streams)], described.get("LatestStreamArn") if is_on else None


def shards_of(clients: Clients, stream_arn: str) -> tuple[list[ShardInfo], bool]:
    """The shards of a stream, and whether it is still enabled."""
    shards: list[ShardInfo] = []
    start: dict[str, str] = {}
    while True:
        description = clients.streams.describe_stream(StreamArn=stream_arn, **start)["StreamDescription"]
        for shard in description["Shards"]:
            closed = "EndingSequenceNumber" in shard["SequenceNumberRange"]
            shards.append(ShardInfo(shard["ShardId"], shard.get("ParentShardId"), closed))
        if "LastEvaluatedShardId" not in description:
            return shards, description["StreamStatus"] in ("ENABLING", "ENABLED")
        start = {"ExclusiveStartShardId": description["LastEvaluatedShardId"]}


@dataclass(slots=True)
class Cursor:
    """A position in a shard, from which `read` goes on.

    It starts after the record with the sequence number `after`; without `after`, at `start`, which is an end
    of the shard or a time in seconds since the epoch. While `iterator` is valid, reading continues with it,
    because it is more precise than a time. `exhausted` is set when a closed shard was read to its end, or no
    longer exists.
    """

    clients: Clients
    stream_arn: str
    shard_id: str
    start: Start | float = "TRIM_HORIZON"
    after: str | None = None
    exhausted: bool = False
    iterator: str | None = None
    _skip_before: float | None = field(default=None)

    def read(self, limit: int = PAGE_RECORDS_MAX) -> list[Record]:
        """The next records, up to `limit` (at most 1000), perhaps none."""
        if self.exhausted:
            return []
        try:
            answer = self._answer(limit)
        except ClientError as error:
            if error_code(error) != "ResourceNotFoundException":
                raise
            _log.warning("shard is gone", extra={"fields": {"shard": self.shard_id}})
            self.exhausted = True
            return []
        self.iterator = answer.get("NextShardIterator")
        self.exhausted = self.iterator is None
        records = [record_of(received, self.stream_arn) for received in answer["Records"]]
        if records:
            self.after = sequence_of(records[-1])
        if self._skip_before is not None:
            records = [record for record in records if created_at(record) >= self._skip_before]
        return records

    def open(self, since: float) -> str:
        """Fix the position now, before anything is read. Returns an iterator that leads to it; once the
        iterator has expired, the time `since` does."""
        self.iterator = self._new_iterator()
        self.start = since
        return self.iterator

    def _answer(self, limit: int) -> Any:
        if self.iterator is None:
            self.iterator = self._new_iterator()
        try:
            return self.clients.streams.get_records(ShardIterator=self.iterator, Limit=limit)
        except ClientError as error:
            if error_code(error) == "TrimmedDataAccessException":
                self._lose()
            elif error_code(error) != "ExpiredIteratorException":
                raise
        self.iterator = self._new_iterator()
        return self.clients.streams.get_records(ShardIterator=self.iterator, Limit=limit)

    def _lose(self) -> None:
        _log.warning(
            "records were lost: older than 24 hours before they were read",
            extra={"fields": {"shard": self.shard_id, "after": self.after}},
        )
        self.start, self.after = "TRIM_HORIZON", None

    def _new_iterator(self) -> str:
        request: dict[str, Any] = {"StreamArn": self.stream_arn, "ShardId": self.shard_id}
        if self.after is not None:
            request |= {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": self.after}
        elif isinstance(self.start, str):
            request["ShardIteratorType"] = self.start
        else:
            moment = datetime.fromtimestamp(self.start, UTC)
            request |= {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": moment}
        try:
            answer = self.clients.streams.get_shard_iterator(**request)
        except SERVICE_ERRORS as error:
            if error_code(error) == "TrimmedDataAccessException":
                self._lose()
            elif request["ShardIteratorType"] == "AT_TIMESTAMP" and not is_transient(error):
                # An older service or boto3 does not know this type of iterator: read all records, and skip
                # some.
                self._skip_before, self.start = float(self.start), "TRIM_HORIZON"
            else:
                raise
            return self._new_iterator()
        return str(answer["ShardIterator"])
