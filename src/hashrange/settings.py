"""What an operator can set about the database's behaviour; the defaults suit local use.

Sockets have their own settings in `server`. Times are in seconds, sizes in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from hashrange.limits import ITEM_COLLECTION_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one database.

    create_seconds, delete_seconds, update_seconds: how long tables stay CREATING, DELETING, UPDATING.
    item_collection_bytes_max: the limit of an item collection in a table with local indexes.
    gsi_delay_seconds: how long a change takes to reach global indexes; 0 keeps them up to date at once.
    transaction_seconds: how long a transaction holds its items against others; see `tables.holds`.
    stream_shards: how many shards a new stream has.
    stream_shard_seconds: how old a shard gets before it is closed and another opened.
    sweep_seconds: how often the background work looks for expired items.
    ttl_changes_limited: refuse a second change of time to live within an hour, as AWS does.
    """

    create_seconds: float = 0.0
    delete_seconds: float = 0.0
    update_seconds: float = 0.0
    item_collection_bytes_max: int = ITEM_COLLECTION_BYTES_MAX
    gsi_delay_seconds: float = 0.0
    transaction_seconds: float = 0.0
    stream_shards: int = 1
    stream_shard_seconds: float = 4 * 3600.0
    sweep_seconds: float = 1.0
    ttl_changes_limited: bool = False
