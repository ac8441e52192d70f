"""What the embedded engine hands to RocksDB in one call, and what it asks it at the start.

Refuses to know: when, and whether it worked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rocksdict import Rdict, WriteBatch

from hashrange.storage.embedded_keys import after, clearing_key, space_range


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
    """The batch that drops all records of some spaces, and the notes that they are to be dropped."""
    writes = WriteBatch(raw_mode=True)
    for space in spaces:
        writes.delete_range(*space_range(space))
        writes.delete(clearing_key(space))
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
