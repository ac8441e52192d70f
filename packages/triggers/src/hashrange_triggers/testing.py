"""Triggers of a database of this process: functions that get a table's changes, as Lambda's functions do.

Nothing is called in the background. `LocalDatabase.settle` delivers the changes in their order, on the
caller's thread, and continues until the functions make no further changes. Batches, filters, retries and
partial failures work as in `hashrange_triggers`; the pauses between retries are skipped.

If a function fails, `settle` raises its exception, so the test sees it, and the next `settle` delivers the
batch again. With `retries`, records that failed often enough are given up instead: `Trigger.given_up` holds
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

from hashrange.clock import Clock
from hashrange.errors import ResourceNotFoundException, TrimmedDataAccessException
from hashrange.testing.database import NoStream
from hashrange_triggers import filters
from hashrange_triggers.delivery import Attempt, PartialFailure, Policy, Reason
from hashrange_triggers.events import Context, Record, sequence_of
from hashrange_triggers.functions import adapt
from hashrange_triggers.shard import Batching, Handling, ShardRun

Execute = Callable[[str, dict[str, Any]], dict[str, Any]]
Start = Literal["TRIM_HORIZON", "LATEST"]
Positions = dict[tuple[str, str], str | None]
"""The last sequence number that was delivered, by stream and shard; None before the first."""

_PAGE_RECORDS_MAX: Final = 1_000
_NEVER: Final = float("inf")


class Trigger:
    """A function that gets the changes of a table. `LocalDatabase.trigger` makes it.

    `calls` counts the calls, `delivered` the records that were processed; `given_up` holds the others.
    """

    def __init__(
        self,
        execute: Execute,
        clock: Clock,
        table: str,
        function: Callable[..., Any],
        *,
        batch_size: int = 100,
        patterns: Iterable[Mapping[str, Any]] = (),
        retries: int | None = None,
        bisect_on_error: bool = False,
        report_batch_item_failures: bool = False,
        starting_position: Start = "LATEST",
    ) -> None:
        self.table = table
        self.calls = 0
        self.delivered = 0
        self.given_up: list[Record] = []
        self._execute = execute
        self._clock = clock
        self._function = adapt(function)
        self._name = getattr(function, "__qualname__", type(function).__name__)
        self._raises = retries is None
        self._error: Exception | SystemExit | None = None
        self._batching = Batching(batch_size, poll_interval=_NEVER)
        policy = Policy(retries or 0, bisect_on_error, report_batch_item_failures=report_batch_item_failures)
        self._handling = Handling(filters.compile(patterns), self._call, self._discard, policy)
        self._positions: Positions = {}
        self._runs: dict[tuple[str, str], tuple[_Shard, ShardRun]] = {}
        if not self._streams():
            raise NoStream(
                f"The table {table} has no stream. Give it one by StreamSpecification in CreateTable or "
                'UpdateTable, or by create_table(..., stream="NEW_AND_OLD_IMAGES").'
            )
        if starting_position == "LATEST":
            self._pass_by()

    def run(self) -> bool:
        """Deliver all current changes; returns whether there were any."""
        delivered_before, calls_before = self.delivered, self.calls
        reached_end = True
        while reached_end:
            # Once a shard has been read to its end, its children begin.
            reached_end = False
            for stream in self._streams():
                reached_end |= self._run_shards(stream)
        return (delivered_before, calls_before) != (self.delivered, self.calls)

    def positions(self) -> Positions:
        """How far each shard was delivered."""
        return dict(self._positions)

    def go_back(self, positions: Positions) -> None:
        """Go on from these positions."""
        self._positions = dict(positions)
        self._runs.clear()

    def _run_shards(self, stream: str) -> bool:
        """Deliver the records in the shards of a stream. Returns whether this reached the end of a shard."""
        shards = self._shards(stream)
        open_ = {name for name, _ in shards if not self._is_done(stream, name)}
        ended = False
        for name, parent in shards:
            if name not in open_ or parent in open_:
                continue
            reader, run = self._open(stream, name)
            reader.fetch()
            moment = self._clock.now()
            while (wait := run.step(moment)) != _NEVER and not run.finished:
                moment += wait
            if reader.exhausted and run.finished:
                ended = True
        return ended

    def _is_done(self, stream: str, shard: str) -> bool:
        held = self._runs.get((stream, shard))
        return held is not None and held[0].exhausted and held[1].finished

    def _open(self, stream: str, name: str) -> tuple[_Shard, ShardRun]:
        place = (stream, name)
        held = self._runs.get(place)
        if held is None:
            reader = _Shard(self._execute, stream, name, self._positions.get(place))

            def save(sequence: str) -> None:
                self._positions[place] = sequence

            held = (reader, ShardRun(reader, self._batching, self._handling, save=save, report=self._report))
            self._runs[place] = held
        return held

    def _pass_by(self) -> None:
        """Note the end of each shard as it is now: only later changes are delivered."""
        for stream in self._streams():
            for name, _ in self._shards(stream):
                reader = _Shard(self._execute, stream, name, None)
                reader.fetch()
                reader.read()
                self._positions[(stream, name)] = reader.after

    def _streams(self) -> list[str]:
        streams = self._execute("ListStreams", {"TableName": self.table})["Streams"]
        return [
            stream["StreamArn"] for stream in sorted(streams, key=lambda stream: str(stream["StreamLabel"]))
        ]

    def _shards(self, stream: str) -> list[tuple[str, str | None]]:
        """The shards of a stream with their parents, the oldest first."""
        shards: list[tuple[str, str | None]] = []
        request: dict[str, Any] = {"StreamArn": stream}
        while True:
            description = self._execute("DescribeStream", dict(request))["StreamDescription"]
            shards += [(shard["ShardId"], shard.get("ParentShardId")) for shard in description["Shards"]]
            if "LastEvaluatedShardId" not in description:
                return sorted(shards)
            request["ExclusiveStartShardId"] = description["LastEvaluatedShardId"]

    def _call(self, records: list[Record], attempt: int) -> Any:
        self.calls += 1
        context = Context(self._name, records[0]["eventID"], "local", attempt)
        try:
            return self._function({"Records": records}, context)
        except Exception as error:
            self._error = error
            raise

    def _discard(self, records: list[Record], reason: Reason, calls: int) -> None:
        if self._raises:
            error, self._error = self._error, None
            raise error or PartialFailure(
                f"{self._name} reported {len(records)} records of {self.table} as failed, from "
                f"{sequence_of(records[0])} on."
            )
        self.given_up += records

    def _report(self, attempt: Attempt, record: Record | None) -> None:
        self.delivered += attempt.delivered


class _Shard:
    """The records of one shard, read through the API. `after` is the last one that `read` has returned.

    `fetch` fetches the records in the shard, and `read` returns no later ones, so that a round ends even if
    the function changes its own table.
    """

    def __init__(self, execute: Execute, stream: str, shard: str, after: str | None) -> None:
        self.after = after
        self.exhausted = False
        self._execute = execute
        self._stream = stream
        self._shard = shard
        self._fetched: list[Record] = []
        self._ended = False

    def fetch(self) -> None:
        """Fetch the records after those that are fetched already."""
        last = sequence_of(self._fetched[-1]) if self._fetched else self.after
        while not self._ended:
            try:
                answer = self._answer(last)
            except TrimmedDataAccessException:
                # A day has passed since then: the remaining records begin at the horizon.
                answer = self._answer(None)
            except ResourceNotFoundException:
                self._ended = True
                return
            self._fetched += [_record(received, self._stream) for received in answer["Records"]]
            self._ended = answer.get("NextShardIterator") is None
            if not answer["Records"]:
                return
            last = sequence_of(self._fetched[-1])

    def read(self) -> list[Record]:
        """The records that were fetched and not read yet, perhaps none."""
        records, self._fetched = self._fetched, []
        if records:
            self.after = sequence_of(records[-1])
        self.exhausted = self._ended
        return records

    def _answer(self, after: str | None) -> dict[str, Any]:
        request = {"StreamArn": self._stream, "ShardId": self._shard, "ShardIteratorType": "TRIM_HORIZON"}
        if after is not None:
            request |= {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": after}
        iterator = self._execute("GetShardIterator", request)["ShardIterator"]
        return self._execute("GetRecords", {"ShardIterator": iterator, "Limit": _PAGE_RECORDS_MAX})


def _record(received: dict[str, Any], stream: str) -> Record:
    """The record of a Lambda event: the record of GetRecords, with the stream's ARN and Lambda's names."""
    record = {**received, "eventSourceARN": stream}
    identity = received.get("userIdentity")
    if identity is not None:
        record["userIdentity"] = {"type": identity.get("Type"), "principalId": identity.get("PrincipalId")}
    return record
