"""What the streams of tables make, read through the API; for `moments`."""

from __future__ import annotations

from collections.abc import Callable

from hashrange.values import Item
from model.acknowledged import Answer, Key, key_of

Ask = Callable[[str, Answer], Answer]
"""Answers an operation's request."""


def shards(ask: Ask, arn: str) -> list[Answer]:
    """The shards of a stream, each with an `iterator` that begins with its first record."""
    found: list[Answer] = ask("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]
    for shard in found:
        request = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        shard["iterator"] = ask("GetShardIterator", request)["ShardIterator"]
    return found


def folded(ask: Ask, arn: str) -> dict[Key, Item]:
    """The items that the records of a stream make."""
    found: list[Answer] = []
    for shard in shards(ask, arn):
        iterator: str | None = shard["iterator"]
        answer: Answer = {"Records": [None]}
        while answer["Records"] and iterator is not None:
            answer = ask("GetRecords", {"ShardIterator": iterator, "Limit": 100})
            found += answer["Records"]
            iterator = answer.get("NextShardIterator")
    items: dict[Key, Item] = {}
    for record in sorted(found, key=lambda one: int(one["dynamodb"]["SequenceNumber"])):
        key = key_of(record["dynamodb"]["Keys"])
        assert items.pop(key, None) == record["dynamodb"].get("OldImage")
        if "NewImage" in record["dynamodb"]:
            items[key] = record["dynamodb"]["NewImage"]
    return items
