"""The settings of the database's behaviour, for operators; the defaults suit local use.

The settings of sockets are in `server.settings`. Times are in seconds, sizes in bytes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from hashrange.limits import ITEM_COLLECTION_BYTES_MAX


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
    vector_fill_seconds: how long a vector index is filled; at least, if it is added to a table that exists.
        On AWS this takes many minutes, however few items there are.
    vector_start_seconds: how long it then refuses searches; AWS may do so for a while after the index has
        become ACTIVE.
    vector_memory_bytes: memory for searched vectors; beyond that a search reads them from the store.
    transaction_seconds: how long a transaction holds its items; meanwhile other requests get a
        TransactionConflictException. With 0 this cannot happen.
    stream_shards: how many shards a new stream has; records of an item always go to the same shard.
    stream_shard_seconds: how old a shard of a stream gets before it is closed and a child opened, which
        consumers have to follow; on AWS about 4 hours.
    sweep_seconds: how often the background work looks for expired items, records past their retention and
        other due work; on AWS expired items may stay for days.
    separate_accounts: give each account its own tables. A caller's account is its access key if that has 12
        digits, and --account-id otherwise. Without this option all callers share all tables.
    separate_regions: give each region its own tables, or with --separate-accounts each region of an account.
        Global tables need shared regions, so they cannot be created with this option.
    recovery_lag_seconds: how long after a write its table can be restored to that moment; on AWS five
        minutes. With 0 everything that was written can be restored at once.
    ttl_changes_limited: refuse a second change of time to live within an hour, as AWS does.
    policy_changes_limited: refuse a second change of a policy in 15 s; AWS does.
    s3_dir: the directory whose folders are the buckets of imports.
    s3_endpoint: a real store instead of folders: `aws`, or the URL of a store that speaks S3's protocol.
        boto3 finds the credentials.
    kinesis_endpoint: where tables send their changes: `aws`, or the URL of a server that speaks Kinesis'
        protocol.
    backup_dir: the directory of the backups' folders, which may be on another disk; a backup's folder that is
        copied into it from elsewhere can be restored.
    older_words: answer wrong requests with the messages that the service used before June 2026; it still does
        in few regions, and programs that compare texts may need one or the other.
    """

    create_seconds: float = 0.0
    delete_seconds: float = 0.0
    update_seconds: float = 0.0
    item_collection_bytes_max: int = ITEM_COLLECTION_BYTES_MAX
    gsi_delay_seconds: float = 0.0
    vector_fill_seconds: float = 0.0
    vector_start_seconds: float = 0.0
    vector_memory_bytes: int = 256 * 1024 * 1024
    transaction_seconds: float = 0.0
    stream_shards: int = 1
    stream_shard_seconds: float = 4 * 3600.0
    sweep_seconds: float = 1.0
    recovery_lag_seconds: float = 0.0
    separate_accounts: bool = False
    separate_regions: bool = False
    ttl_changes_limited: bool = False
    policy_changes_limited: bool = False
    s3_dir: str = ""
    s3_endpoint: str = ""
    kinesis_endpoint: str = ""
    backup_dir: str = ""
    older_words: bool = False

    def with_data_dir(self, path: str) -> Settings:
        """The settings of a database in the directory `path`: by default its buckets are in `s3` there, and
        its backups in `backups`."""
        s3_dir = self.s3_dir or os.path.join(path, "s3")
        backup_dir = self.backup_dir or os.path.join(path, "backups")
        return replace(self, s3_dir=s3_dir, backup_dir=backup_dir)
