"""The newest changes of a table's stream."""

from __future__ import annotations

from typing import Annotated, Any, Final

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from hashrange.clock import show_moment
from hashrange_mcp import answers
from hashrange_mcp.connection import Connection
from hashrange_mcp.tools.tables import Table
from hashrange_mcp.values import shown_item

Json = dict[str, Any]

_PAGES_MAX: Final = 50
"""The most pages that one call reads, each of at most 1,000 records and 1 MB."""
_SHARDS_MAX: Final = 100
_PAGE_RECORDS: Final = 1_000
_EMPTY_MAX: Final = 5
"""A shard that gives so many empty pages in a row is read to its end: on AWS one may be empty before it."""


class Changes:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def recent_changes(
        self,
        table: Table,
        limit: Annotated[int, Field(ge=1, le=1_000, description="The most changes to show.")] = 20,
        after: Annotated[
            dict[str, str] | None,
            Field(description="`positions` of an earlier answer: show only changes since then."),
        ] = None,
    ) -> str:
        """Show the newest changes of a table whose stream is on, the newest first: what happened, to which
        key, and the images that the stream has. Send `positions` as `after` to see what happened since.
        Changes are kept for 24 hours."""
        described = self._connection.table(table)
        arn = described.get("LatestStreamArn")
        if arn is None:
            raise ToolError(
                f"The table {table} has no stream. Ask the user to enable one (UpdateTable, "
                "StreamSpecification), or read the table with scan."
            )
        positions = dict(after or {})
        newest: list[tuple[int, Json]] = []
        pages = _PAGES_MAX
        # The newest shards come last, and those are read first.
        for shard in reversed(self._shards(arn)):
            if pages <= 0 or (len(newest) >= limit and not after):
                break
            found, last, pages = self._read(arn, shard, positions.get(shard), pages)
            newest.extend(found)
            if last:
                positions[shard] = last
        newest.sort(key=lambda numbered: numbered[0], reverse=True)
        shown = [change for _, change in newest[:limit]]
        about: Json = {"positions": positions, "older_not_shown": len(newest) - len(shown)}
        if pages <= 0:
            about["note"] = (
                "There are more changes than one call reads: send `positions` as `after` to go on."
            )
        return answers.bounded(about, "changes", shown, self._connection.bytes_max)

    def _shards(self, arn: str) -> list[str]:
        """The shards of a stream, the oldest first."""
        shards: list[str] = []
        more: Json = {}
        while True:
            page = self._connection.clients.streams.describe_stream(StreamArn=arn, **more)
            described = page["StreamDescription"]
            shards += [shard["ShardId"] for shard in described["Shards"]]
            if "LastEvaluatedShardId" not in described:
                return shards[-_SHARDS_MAX:]
            more = {"ExclusiveStartShardId": described["LastEvaluatedShardId"]}

    def _read(
        self, arn: str, shard: str, after: str | None, pages: int
    ) -> tuple[list[tuple[int, Json]], str | None, int]:
        """The changes of a shard after a sequence number, each with its own, the last sequence number, and
        how many pages may still be read."""
        streams = self._connection.clients.streams
        start = (
            {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": after}
            if after
            else {"ShardIteratorType": "TRIM_HORIZON"}
        )
        iterator = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, **start)["ShardIterator"]
        found: list[tuple[int, Json]] = []
        empty = 0
        while iterator is not None and pages > 0 and empty < _EMPTY_MAX:
            page = streams.get_records(ShardIterator=iterator, Limit=_PAGE_RECORDS)
            pages -= 1
            empty = 0 if page["Records"] else empty + 1
            found += [(int(one["dynamodb"]["SequenceNumber"]), _change(one)) for one in page["Records"]]
            after = page["Records"][-1]["dynamodb"]["SequenceNumber"] if page["Records"] else after
            iterator = page.get("NextShardIterator")
        return found, after, pages


def _change(record: Json) -> Json:
    stored = record["dynamodb"]
    change: Json = {
        "time": show_moment(stored["ApproximateCreationDateTime"].timestamp()),
        "event": record["eventName"],
        "key": shown_item(stored["Keys"]),
    }
    for member, name in (("OldImage", "before"), ("NewImage", "after")):
        if member in stored:
            change[name] = shown_item(stored[member])
    if "userIdentity" in record:
        change["by"] = record["userIdentity"]
    return change
