"""What the embedded engine hands to RocksDB in one call, and what it asks it at the start.

Refuses to know: when, and whether it is durable.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from rocksdict import Rdict, WriteBatch, WriteOptions

from hashrange.storage.embedded.keys import after, space_range

_PAUSE_SECONDS: Final = 0.002


def _write_options() -> WriteOptions:
    options = WriteOptions()
    options.sync = False
    # A stall inside RocksDB would hold the GIL; ours releases it.
    options.no_slowdown = True
    return options


_OPTIONS: Final = _write_options()


def write(db: Rdict, make: Callable[[], WriteBatch]) -> None:
    """Hand a batch to RocksDB, in one atomic write, made anew for each try: one uses it up."""
    while True:
        try:
            db.write(make(), _OPTIONS)
            return
        except Exception as error:
            if not str(error).startswith("Result incomplete"):
                raise
        time.sleep(_PAUSE_SECONDS)  # flushes and compactions are behind


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
    """The batch that drops all records of some spaces. The notes that they are to be dropped stay."""
    writes = WriteBatch(raw_mode=True)
    for space in spaces:
        writes.delete_range(*space_range(space))
    return writes


def keys_under(db: Rdict, prefix: bytes) -> list[bytes]:
    """All keys that begin with `prefix`."""
    end = after(prefix)
    found = []
    for key in db.keys(from_key=prefix):
        if not prefix <= key < end:  # type: ignore[operator]
            break
        found.append(key)
    return found  # type: ignore[return-value]
