"""The requests that read a stream. They are made by asking the server, because only it knows shards and
iterators.

Knows the API of streams and no server. A server without streams gives an error, and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bench.wire import Request

Ask = Callable[[Request], dict[str, Any]]


class StreamError(Exception):
    """The table has no stream, or too little is in it; `str()` says which."""


def stream_arn(ask: Ask, table: str) -> str:
    """The ARN of a table's stream. A server may ignore StreamSpecification: its puts would seem cheap."""
    described = ask(Request("DescribeTable", {"TableName": table}))["Table"]
    arn = described.get("LatestStreamArn")
    if not isinstance(arn, str):
        raise StreamError(f"{table} was given no stream")
    return arn


def pages(ask: Ask, table: str, limit: int) -> list[Request]:
    """A GetRecords for every full page of `limit` records that a table's stream has now.

    An iterator may be used again and again for some minutes (15 in DynamoDB), and gives the same page.
    """
    arn = stream_arn(ask, table)
    found = [request for shard in _shards(ask, arn) for request in _shard_pages(ask, arn, shard, limit)]
    if not found:
        raise StreamError(f"the stream of {table} has no page of {limit} records")
    return found


def _shards(ask: Ask, arn: str) -> Iterator[str]:
    start: dict[str, str] = {}
    while True:
        described = ask(Request("DescribeStream", {"StreamArn": arn} | start))["StreamDescription"]
        yield from (shard["ShardId"] for shard in described["Shards"])
        if "LastEvaluatedShardId" not in described:
            return
        start = {"ExclusiveStartShardId": described["LastEvaluatedShardId"]}


def _shard_pages(ask: Ask, arn: str, shard: str, limit: int) -> Iterator[Request]:
    where = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
    iterator = ask(Request("GetShardIterator", where))["ShardIterator"]
    while iterator is not None:
        request = Request("GetRecords", {"ShardIterator": iterator, "Limit": limit})
        page = ask(request)
        if len(page["Records"]) < limit:
            return
        yield request
        iterator = page.get("NextShardIterator")
