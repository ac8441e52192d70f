"""Patterns: tested recipes for what many programs build on DynamoDB.

    counters    exactly once per event, batched
    sharded     counters for more additions than one item takes
    windows     counts per minute, hour and day
    visitors    unique visitors
    events      a queue of events, and workers; at a broker: `brokers`, `sqs`
    handlers    functions for AWS Lambda that report what failed
    feeds       posts, followers, and the feed of each reader, newest first
    entities    classes of items: typed, versioned, several in one table
    jobs        a queue of jobs in a table, and an outbox; `job_worker` does them
    locks       a lock with a lease and a fence
    idempotency handlers that may be called twice, but act once
    rates       a rate limiter
    sessions    login sessions of browsers
    migrations  changes of data in versions, by files

    from hashrange_patterns import Counters

    counters = Counters(boto3.client("dynamodb"), "blog")
    counters.once("/home", event_id="2026-11-22T10:00:00Z#reader7#/home")

The patterns use only the public API, so they work with tables on AWS too, and use no other part of Hashrange.
Every class has a second form for aiobotocore, whose name begins with Async; both perform the same logic
(`flows`). Guides and costs: packages/patterns/docs.
"""

from hashrange_patterns.counters import AsyncCounters, Counters, Event
from hashrange_patterns.cursors import InvalidCursor
from hashrange_patterns.entities import AsyncEntities, Entities, Entity, Expires, Key
from hashrange_patterns.events import Delivery, EventQueue, QueueFull, TableEvents, Worker
from hashrange_patterns.feed_pages import Page, Post
from hashrange_patterns.feeds import AsyncFeeds, Feeds, Switching
from hashrange_patterns.handlers import sqs_handler, stream_handler
from hashrange_patterns.idempotency import AsyncIdempotency, Idempotency, InProgress, KeyReused, Started
from hashrange_patterns.job_worker import JobWorker
from hashrange_patterns.jobs import AsyncJobs, DeadJob, Job, Jobs
from hashrange_patterns.locks import AsyncLocks, Held, Locks
from hashrange_patterns.rates import AsyncRates, Contended, Decision, Rates
from hashrange_patterns.requests import Runtime, StillUnprocessed, Unreachable
from hashrange_patterns.sessions import AsyncSessions, Session, Sessions
from hashrange_patterns.sharded import AsyncShardedCounters, Moving, ShardedCounters
from hashrange_patterns.sqs import SqsEvents
from hashrange_patterns.tables import Index, Table
from hashrange_patterns.visitors import AsyncUniqueVisitors, UniqueVisitors
from hashrange_patterns.windows import AsyncWindowedCounters, Bucket, TimedEvent, WindowedCounters

__all__ = [
    "AsyncCounters",
    "AsyncEntities",
    "AsyncFeeds",
    "AsyncIdempotency",
    "AsyncJobs",
    "AsyncLocks",
    "AsyncRates",
    "AsyncSessions",
    "AsyncShardedCounters",
    "AsyncUniqueVisitors",
    "AsyncWindowedCounters",
    "Bucket",
    "Contended",
    "Counters",
    "DeadJob",
    "Decision",
    "Delivery",
    "Entities",
    "Entity",
    "Event",
    "EventQueue",
    "Expires",
    "Feeds",
    "Held",
    "Idempotency",
    "InProgress",
    "Index",
    "InvalidCursor",
    "Job",
    "JobWorker",
    "Jobs",
    "Key",
    "KeyReused",
    "Locks",
    "Moving",
    "Page",
    "Post",
    "QueueFull",
    "Rates",
    "Runtime",
    "Session",
    "Sessions",
    "ShardedCounters",
    "SqsEvents",
    "Started",
    "StillUnprocessed",
    "Switching",
    "Table",
    "TableEvents",
    "TimedEvent",
    "UniqueVisitors",
    "Unreachable",
    "WindowedCounters",
    "Worker",
    "sqs_handler",
    "stream_handler",
]
