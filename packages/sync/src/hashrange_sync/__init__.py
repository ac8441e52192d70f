"""Sync: keeps two DynamoDB tables equal, whatever serves them, through outages of either side.

    settings   the settings file
    sync       all pairs: `Sync`
    pair       one pair: follows the streams, and sweeps when that is needed
    deciding   what to do about an item: a function
    policies   who wins a conflict
    scopes     which items and attributes are shared
    items      equality, digests and differences of items
    errors     what stops a pair
    estimates  what a first copy will take
    rights     the least IAM policies
    sides      a table behind the public API
    stored     what a pair keeps, in tables of the edge
    work       making items equal, recovering, sweeping, verifying
    served     what the server of the edge tells about its pairs
    pages      the page of the console
    commands   `hashrange sync`
    ring       what sync adds to Hashrange

    from hashrange_sync import Pair, Settings, Sync

    Sync(Settings(pairs=[Pair(table="orders", conflicts="newest: updated")])).once()

The life of a change: `pair.Pair.cycle` reads a page of a stream (`sides.streams.Follower`). For each item in
it, `work.applying.Applier` reads both sides and the state of the item (`stored.table`), that is, what both
sides last agreed on. `deciding.decide` compares the three. A write (`sides.writing`) is conditional on what
was read; one to the edge is made in the transaction that stores the new state and how far the stream was
read. A write to the cloud is noted in a journal before, so that a process that died in between learns from
the stream whether the write was made (`work.recovering`).
"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "Clients",
    "Conflict",
    "Filter",
    "Pair",
    "PairStatus",
    "Place",
    "Prefix",
    "Settings",
    "SettingsError",
    "Sync",
    "SyncError",
    "Unavailable",
    "connect",
    "load",
]

_MODULES = {
    "Clients": "hashrange.cli.remote.clients",
    "Conflict": "hashrange_sync.stored.conflicts",
    "Filter": "hashrange_sync.settings",
    "Pair": "hashrange_sync.settings",
    "PairStatus": "hashrange_sync.stored.status",
    "Place": "hashrange_sync.settings",
    "Prefix": "hashrange_sync.settings",
    "Settings": "hashrange_sync.settings",
    "SettingsError": "hashrange_sync.errors",
    "Sync": "hashrange_sync.sync",
    "SyncError": "hashrange_sync.errors",
    "Unavailable": "hashrange_sync.errors",
    "connect": "hashrange.cli.remote.clients",
    "load": "hashrange_sync.settings",
}

if TYPE_CHECKING:
    from hashrange.cli.remote.clients import Clients, connect
    from hashrange_sync.errors import SettingsError, SyncError, Unavailable
    from hashrange_sync.settings import Filter, Pair, Place, Prefix, Settings, load
    from hashrange_sync.stored.conflicts import Conflict
    from hashrange_sync.stored.status import PairStatus
    from hashrange_sync.sync import Sync
else:

    def __getattr__(name):
        # (the ring is found before anybody wants boto3, which loads slowly)
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_MODULES[name]), name)
