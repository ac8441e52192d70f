"""Patterns: what programs build on DynamoDB, done right once.

    counters    exactly once per event, batched
    sharded     counters for more additions than one item takes
    windows     counts per minute, hour and day
    visitors    unique visitors, exact and approximate

    from hashrange.patterns import Counters

    counters = Counters(boto3.client("dynamodb"), "blog")
    counters.once("2026-11-22T10:00:00Z#reader7#/home", "/home")

On the public API only: a table on AWS will do as well as one of Hashrange, and nothing of the rest of
Hashrange is used. Every class has a twin for aiobotocore, whose name begins with Async; both perform the same
logic (`flows`). Guides and what everything costs: docs/patterns.
"""

from hashrange.patterns.batches import StillUnprocessed
from hashrange.patterns.counters import AsyncCounters, Counters, Event
from hashrange.patterns.requests import Runtime
from hashrange.patterns.sharded import AsyncShardedCounters, Moving, ShardedCounters
from hashrange.patterns.tables import Table
from hashrange.patterns.visitors import (
    ApproximateVisitors,
    AsyncApproximateVisitors,
    AsyncUniqueVisitors,
    Estimate,
    UniqueVisitors,
)
from hashrange.patterns.windows import AsyncWindowedCounters, Bucket, TimedEvent, WindowedCounters

__all__ = [
    "ApproximateVisitors",
    "AsyncApproximateVisitors",
    "AsyncCounters",
    "AsyncShardedCounters",
    "AsyncUniqueVisitors",
    "AsyncWindowedCounters",
    "Bucket",
    "Counters",
    "Estimate",
    "Event",
    "Moving",
    "Runtime",
    "ShardedCounters",
    "StillUnprocessed",
    "Table",
    "TimedEvent",
    "UniqueVisitors",
    "WindowedCounters",
]
