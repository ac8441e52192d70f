"""The errors of storage, and how tests make commits fail.

StorageError
    StoreClosed
    CommitError
        CommitFailed            none of the writes is visible
        CommitUnknown           all of the writes are visible, or none
        StoreOutgrown           as CommitFailed, until this process has ended
    Stopped                     may be run again
    DataDirectoryLocked
    UnknownFormat
    UnfinishedCopy
    StoreDamaged
    Unsupported
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

Moment = Literal["before", "after"]
"""A moment of a commit: before any write reached the store, or after all writes did and before any caller
hears of it."""

CommitFault = Callable[[Moment], None]
"""Called by an engine at both moments of each commit that writes something. An exception from it fails the
commit with `CommitFailed`. If it raises `CommitUnknown`, the bodies end with `CommitUnknown`, and their
writes are stored if the moment was "after". `hashrange_engine_tests.faults` makes such
functions."""


class StorageError(Exception):
    """Something is wrong with the store or its use; the text says what to do."""


class StoreClosed(StorageError):
    """The store was used after it was closed."""

    def __init__(self) -> None:
        super().__init__(
            "The database is closed. Open it again with hashrange.Database.open(path), and make new clients "
            "with hashrange.client.connect; or close it later, after the last request."
        )


class CommitError(StorageError):
    """A batch was not acknowledged. The engine has logged the cause, once for all bodies of the batch."""

    is_final = False
    """Whether no later request will fare better."""


class CommitFailed(CommitError):
    """The engine could not make a batch durable; none of its writes is visible."""


class CommitUnknown(CommitError):
    """The engine does not know whether a batch became durable: either all of it did, or none of it."""


class StoreOutgrown(CommitError):
    """A newer program has upgraded the store that this one has open: this one neither reads nor writes."""

    is_final = True

    def __init__(self, what: str) -> None:
        super().__init__(
            f"A newer version of Hashrange has upgraded the store: it {what}, which this server does not "
            "know. Restart this server with the newer version; until then it answers no request."
        )


class Stopped(StorageError):
    """A queued body was ended by a `BaseException` that is not an `Exception`, such as `pace.TurnOver`. The
    body has written nothing, and may be run again."""


class DataDirectoryLocked(StorageError):
    """Another process has the data directory open."""


class UnknownFormat(StorageError):
    """The store was written by another version, or the data directory by a foreign program."""


class UnfinishedCopy(StorageError):
    """The store is an unfinished copy: it is still being made, or was cut off."""


class StoreDamaged(StorageError):
    """Files of the store are missing or damaged. The engine has not changed them."""


class Unsupported(StorageError):
    """The engine does not have this capability."""
