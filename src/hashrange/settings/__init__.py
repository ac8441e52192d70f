"""The settings of the database's behaviour, for operators; the defaults suit local use.

The settings of sockets are in `server.settings`. Times are in seconds, sizes in bytes.

    waves  how far the words of the service have changed, by region
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from hashrange.clock import parse_duration
from hashrange.limits import ITEM_COLLECTION_BYTES_MAX
from hashrange.settings import waves


class Lag(NamedTuple):
    """How far reads are behind: `seconds`, or a time up to that, drawn from a generator that starts with
    `seed` if it is not empty. `monotonic`: no caller sees an older state than before."""

    seconds: float = 0.0
    seed: str = ""
    monotonic: bool = False


def parse_lag(text: str) -> Lag:
    """The lag of a text such as ``2s`` or ``2s seed=7 monotonic``; "" is none. Raises ValueError."""
    if not text.strip():
        return Lag()
    match = re.fullmatch(r"(\S+)(?: +seed=(\S+))?( +monotonic)?", text.strip(), re.ASCII)
    try:
        seconds = parse_duration(match[1] if match else "")
    except ValueError:
        match = None
    if match is None:
        raise ValueError(f"{text!r} is not a lag of reads, such as 2s, 0.5s or '2s seed=7 monotonic'.")
    return Lag(seconds, match[2] or "", match[3] is not None)


ALL_VECTORS: Final = 1_000_000_000
"""More vectors than a HASH value can have here."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one database.

    create_seconds: how long a new table stays CREATING; on AWS several seconds. With 0 a program that forgets
        to wait for ACTIVE works here and fails there.
    delete_seconds: how long a deleted table stays DELETING, during which its name is taken.
    update_seconds: how long a table stays UPDATING after UpdateTable, and its new and deleted replicas stay
        CREATING and DELETING.
    item_collection_bytes_max: how large the items of one partition key may get, index entries included, in a
        table with local indexes; AWS's limit is 10 GB.
    gsi_delay_seconds: how long a change takes to reach global indexes. On AWS they are eventually consistent;
        with 0 they are up to date at once, which hides mistakes in programs that read their own writes there.
    vector_fill_seconds: how long it takes, at least, to fill a vector index that is added to a table; on AWS
        many minutes, however few items there are.
    vector_start_seconds: how long a vector index refuses searches after it has become ACTIVE, as AWS may do.
    vector_memory_bytes: memory for searched vectors; beyond that a search reads them from the store.
    vector_exact_max: the most vectors of a HASH value that a search compares one by one. Of more vectors, a
        search compares those that a graph proposes, and may miss some of the nearest. No HASH value has more
        than the default. Graphs need usearch.
    transaction_seconds: how long a transaction holds its items; meanwhile other requests get a
        TransactionConflictException. With 0 there are no conflicts.
    stream_shards: how many shards a new stream has; records of an item always go to the same shard.
    stream_shard_seconds: the age at which a shard of a stream is closed and a child opened, which consumers
        have to follow; on AWS about 4 hours.
    stream_delay_seconds: how old a record of a stream is before GetRecords shows it; on AWS a moment.
    sweep_seconds: how often background work is done: the search for expired items, records past their
        retention and other due work; on AWS expired items may stay for days.
    separate_accounts: give each account its own tables. A caller's account is its access key if that has 12
        digits, and --account-id otherwise. Without this option all callers share all tables.
    separate_regions: give each region its own tables, or with --separate-accounts each region of an account.
        Global tables need shared regions, so they cannot be created with this option.
    recovery_lag_seconds: how long after a write its table can be restored to that moment; on AWS five
        minutes. With 0 everything that was written can be restored at once.
    ttl_changes_limited: refuse a second change of time to live within an hour, as AWS does.
    policy_changes_limited: refuse a second change of a policy within 15 seconds, as AWS does.
    policy_delay_seconds: how long GetResourcePolicy shows the former policy after a change; on AWS seconds.
    account_limits: enforce the quotas of an account: 2,500 tables in a region, of which 500 may be CREATING,
        UPDATING or DELETING.
    s3_dir: the directory whose folders are the buckets of imports and exports.
    s3_endpoint: a real store instead of folders: `aws`, or the URL of a store that speaks S3's protocol.
        boto3 finds the credentials.
    kinesis_endpoint: where tables send their changes: `aws`, or the URL of a server that speaks Kinesis'
        protocol.
    backup_dir: the directory of backups, which may be on another disk. A backup that is copied into this
        directory can be restored.
    throttle: throttle requests as AWS does: refuse those that exceed the throughput of a table, an index or
        one of their partitions. `hashrange lab` changes this, also for one table.
    split_seconds: how long a partition is hot before it is split, with --throttle. AWS does not publish this
        time.
    eventual_reads: let reads lag: with `2s`, reads without ConsistentRead, of tables and of indexes, show the
        state of two seconds ago, so that a program that reads its own writes always fails. With `2s seed=7`
        each read has a random lag of up to 2 seconds; with `2s seed=7 monotonic` no caller sees an older
        state than before.
    words: the region or wave whose error texts to use; docs/compatibility.md lists the waves of the service's
        changes. Programs that compare texts may need the words of the region that they run in.
    """

    create_seconds: float = 0.0
    delete_seconds: float = 0.0
    update_seconds: float = 0.0
    item_collection_bytes_max: int = ITEM_COLLECTION_BYTES_MAX
    gsi_delay_seconds: float = 0.0
    vector_fill_seconds: float = 0.0
    vector_start_seconds: float = 0.0
    vector_memory_bytes: int = 256 * 1024 * 1024
    vector_exact_max: int = ALL_VECTORS
    transaction_seconds: float = 0.0
    stream_shards: int = 1
    stream_shard_seconds: float = 4 * 3600.0
    stream_delay_seconds: float = 0.0
    sweep_seconds: float = 1.0
    recovery_lag_seconds: float = 0.0
    separate_accounts: bool = False
    separate_regions: bool = False
    ttl_changes_limited: bool = False
    policy_changes_limited: bool = False
    policy_delay_seconds: float = 0.0
    account_limits: bool = False
    s3_dir: str = ""
    s3_endpoint: str = ""
    kinesis_endpoint: str = ""
    backup_dir: str = ""
    throttle: bool = False
    split_seconds: float = 300.0
    eventual_reads: str = ""
    words: str = waves.DEFAULT

    def __post_init__(self) -> None:
        """Raises ValueError for `eventual_reads` of another form, and for `words` that are not known."""
        parse_lag(self.eventual_reads)
        waves.newer(self.words)

    @property
    def is_lab_on(self) -> bool:
        """Whether requests are throttled, or reads show the past."""
        return self.throttle or parse_lag(self.eventual_reads).seconds > 0

    def with_data_dir(self, path: str) -> Settings:
        """The settings of a database in the directory `path`: by default its buckets are in `s3` there, and
        its backups in `backups`."""
        s3_dir = self.s3_dir or os.path.join(path, "s3")
        backup_dir = self.backup_dir or os.path.join(path, "backups")
        return replace(self, s3_dir=s3_dir, backup_dir=backup_dir)


LIKE_AWS: Final[dict[str, Any]] = {
    "account_limits": True,
    "create_seconds": 8.0,
    "delete_seconds": 4.0,
    "eventual_reads": "1",
    "gsi_delay_seconds": 1.0,
    "policy_changes_limited": True,
    "policy_delay_seconds": 5.0,
    "recovery_lag_seconds": 300.0,
    "separate_accounts": True,
    "separate_regions": True,
    "stream_delay_seconds": 1.0,
    "throttle": True,
    "transaction_seconds": 0.02,
    "ttl_changes_limited": True,
    "update_seconds": 10.0,
    "vector_fill_seconds": 600.0,
    "vector_start_seconds": 60.0,
}
"""The settings that make a database as slow, eventual and strict as the service. The times are of the order
of the service's, which publishes none of them; docs/like-aws.md says which mistakes each finds."""

LIKE_AWS_FAST: Final = 60.0
"""How many times as fast as the machine's the clock of `hashrange serve --like-aws=fast` runs."""


def like_aws(settings: Settings, given: Collection[str] = ()) -> Settings:
    """`settings`, with those of `LIKE_AWS` in place of the ones that have their defaults. Those that were
    `given` stay in any case."""
    plain = Settings()
    unset = [name for name in LIKE_AWS.keys() - set(given) if getattr(settings, name) == getattr(plain, name)]
    return replace(settings, **{name: LIKE_AWS[name] for name in unset})
