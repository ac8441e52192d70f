"""The errors of copies.

CopyError          something is wrong with a copy or its use; the text says what to do
    Damaged        an object of a copy is missing, or not as it was written
    Fenced         another server has taken over; for good
    Held           another server ships to the copy, and its lease has not run out

`ERRORS` are these, and what a bucket, a store and a disk may raise beside them.
"""

from __future__ import annotations

from typing import Final

from hashrange.buckets import BucketError
from hashrange.storage.failures import StorageError


class CopyError(Exception):
    """Something is wrong with a copy or with its use."""


class Damaged(CopyError):
    """An object of a copy is missing, or is not as it was written."""


class Fenced(CopyError):
    """Another server has taken over the copy: this one must never acknowledge a write again."""


class Held(CopyError):
    """Another server holds the lease of the copy."""


ERRORS: Final = (OSError, BucketError, StorageError, CopyError)
