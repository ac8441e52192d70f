"""Builds the write batches of the embedded engine and hands them to RocksDB; lists keys at the start.

Refuses to know: when a batch is written, and whether it is durable.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from rocksdict import Rdict, WriteBatch, WriteOptions

from hashrange.storage import features
from hashrange.storage.embedded.keys import after, pack, space_range, unpack

_PAUSE_SECONDS: Final = 0.002


def _write_options(logged: bool) -> WriteOptions:
    options = WriteOptions()
    options.sync = False
    # `disable_wal` is a property, but the type stubs of rocksdict declare a method.
    options.disable_wal = not logged  # type: ignore[method-assign, assignment]
    # A stall inside RocksDB would hold the GIL; ours releases it.
    options.no_slowdown = True
    return options


_LOGGED: Final = _write_options(True)
_UNLOGGED: Final = _write_options(False)


def write(db: Rdict, make: Callable[[], WriteBatch], *, logged: bool = True) -> None:
    """Hand the batch that `make` builds to RocksDB, in one atomic write. A batch that is not `logged` is only
    in RocksDB's memory until the next flush.

    A batch can be tried only once, so `make` is called again for each further try.
    """
    options = _LOGGED if logged else _UNLOGGED
    while True:
        try:
            db.write(make(), options)
            return
        except Exception as error:
            if not str(error).startswith("Result incomplete"):
                raise
        time.sleep(_PAUSE_SECONDS)  # gives RocksDB time for the flushes and compactions that it waits for


def writing(records: Mapping[bytes, bytes | None]) -> WriteBatch:
    """The batch that writes records (None: deletes one)."""
    writes = WriteBatch(raw_mode=True)
    for key, value in records.items():
        if value is None:
            writes.delete(key)
        else:
            writes.put(key, value)
    return writes


def clearing(spaces: Iterable[int]) -> WriteBatch:
    """The batch that drops all records of `spaces`. Their notes under CLEARING remain (`upkeep`)."""
    writes = WriteBatch(raw_mode=True)
    for space in spaces:
        writes.delete_range(*space_range(space))
    return writes


def keys_under(db: Rdict, prefix: bytes) -> list[bytes]:
    """All keys that begin with `prefix`."""
    end = after(prefix)
    keys = []
    for key in db.keys(from_key=prefix):
        if not prefix <= key < end:  # type: ignore[operator]
            break
        keys.append(key)
    return keys  # type: ignore[return-value]


def needs_of(db: Rdict) -> list[bytes]:
    """The names of the features that a store needs."""
    return [unpack(key)[2] for key in keys_under(db, pack(features.SPACE, features.NEEDS, b""))]
