"""DescribeStream: a stream and its shards, in pages of up to 100.

Source: API reference, DescribeStream; for error messages DynamoDB Local, as decision 5 says.
"""

from __future__ import annotations

from typing import Any, Final

from hashrange.errors import ValidationException
from hashrange.operations.context import Answer, Context, ReadBody, Request
from hashrange.operations.streams.stream_requests import limit_of, open_stream
from hashrange.storage.api import Reader
from hashrange.tables import streams
from hashrange.tables.streams import Shard

_SHARDS_MAX: Final = 100


def prepare(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeStream."""
    arn = request["StreamArn"]
    limit = limit_of(request, _SHARDS_MAX, "Limit cannot be greater than the maximum:")
    start, shard_filter = request.get("ExclusiveStartShardId"), request.get("ShardFilter")

    if shard_filter is not None and shard_filter.get("Type") is None:
        raise ValidationException(
            "1 validation error detected: Value 'null' at 'shardFilter.type' failed to satisfy constraint: "
            "Member must be CHILD_SHARDS"
        )
    if shard_filter is not None and not shard_filter.get("ShardId"):
        raise ValidationException("ShardFilter must have a ShardId")

    def body(reader: Reader) -> Answer:
        stream = open_stream(reader, arn, context.scope)
        shards = sorted(stream.shards, key=lambda shard: shard.id)
        if shard_filter is not None:
            shards = [shard for shard in shards if shard.parent == shard_filter["ShardId"]]
        shards = [shard for shard in shards if start is None or shard.id > start]
        shown: dict[str, Any] = {
            "StreamArn": arn,
            "StreamLabel": stream.label,
            "StreamStatus": "ENABLED" if stream.closed is None else "DISABLED",
            "StreamViewType": stream.view_type,
            "CreationRequestDateTime": round(stream.created, 3),
            "TableName": stream.table,
            "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in stream.key],
            "Shards": [_show_shard(shard) for shard in shards[:limit]],
        }
        if len(shards) > limit:
            shown["LastEvaluatedShardId"] = shards[limit - 1].id
        return {"StreamDescription": shown}

    return body


def _show_shard(shard: Shard) -> dict[str, Any]:
    numbers = {"StartingSequenceNumber": streams.show_sequence(shard.start)}
    if shard.end is not None:
        numbers["EndingSequenceNumber"] = streams.show_sequence(shard.end)
    shown: dict[str, Any] = {"ShardId": shard.id, "SequenceNumberRange": numbers}
    if shard.parent is not None:
        shown["ParentShardId"] = shard.parent
    return shown
