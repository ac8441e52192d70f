"""The layout of the embedded engine's keys on disk.

    key = space, 4 bytes big-endian | len(partition), 1 byte | partition | sort

    space  partition  sort   key
    1      -          -      00000001 00
    7      abcd       01     00000007 02 abcd 01
    7      abcd       -      00000007 02 abcd
    258    00         00ff   00000102 01 00 00ff

The length byte keeps the records of one partition together whatever bytes partitions and sorts hold
(without it, partition `ab` with sort `cd..` would lie inside partition `abcd`). Keys compare as unsigned
bytes, so within one space and one length of partition they are ordered by (partition, sort).

Space 0xFFFFFFFF is the engine's own:

    partition    sort       value
    "batch"      -          number of the last batch, last sequence number given: 8 bytes big-endian each
    "stamp"      -          the last stamp of a body, 8 bytes big-endian; absent before the first
    "totals"     a space    records, bytes: 8 bytes big-endian each, signed
    "clearing"   a space    empty; the space was deleted, its records are still to be dropped or their files
                            to be compacted
    "followed"   -          what `Following.apply` got as its note, in a store that follows another one

Refuses to know: what the records mean.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

ENGINE_SPACE: Final = 0xFFFF_FFFF

_space = Struct(">I").pack
_two_unsigned = Struct(">QQ")
_two_signed = Struct(">qq")

HEAD_BYTES: Final = 5


def pack(space: int, partition: bytes, sort: bytes) -> bytes:
    """The key of a record."""
    return b"%b%b%b" % ((space << 8 | len(partition)).to_bytes(5, "big"), partition, sort)


def unpack(key: bytes) -> tuple[int, bytes, bytes]:
    """The `(space, partition, sort)` of a key."""
    end = HEAD_BYTES + key[4]
    return int.from_bytes(key[:4], "big"), key[HEAD_BYTES:end], key[end:]


def after(prefix: bytes) -> bytes:
    """The lowest key above every key that starts with `prefix` (which is not all 0xFF)."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")


def space_range(space: int) -> tuple[bytes, bytes]:
    """The lowest key of a space, and the lowest key above it."""
    return _space(space), _space(space + 1)


def space_bound(space: int, partition: bytes, sort: bytes, partition_bytes: int) -> bytes:
    """The lowest key that a record at or above `(partition, sort)` can have, in a space whose partitions are
    `partition_bytes` long. The bound's own partition may have another length."""
    length = len(partition)
    if length == partition_bytes:
        return pack(space, partition, sort)
    if length < partition_bytes:
        return pack(space, partition + bytes(partition_bytes - length), b"")
    return after(pack(space, partition[:partition_bytes], b""))


BATCH_KEY: Final = pack(ENGINE_SPACE, b"batch", b"")
STAMP_KEY: Final = pack(ENGINE_SPACE, b"stamp", b"")
FOLLOWED_KEY: Final = pack(ENGINE_SPACE, b"followed", b"")
TOTALS: Final = b"totals"
TOTALS_PREFIX: Final = pack(ENGINE_SPACE, TOTALS, b"")
CLEARING: Final = pack(ENGINE_SPACE, b"clearing", b"")

pack_batch = _two_unsigned.pack
unpack_batch = _two_unsigned.unpack
pack_totals = _two_signed.pack
unpack_totals = _two_signed.unpack


def totals_key(space: int) -> bytes:
    """The key of the totals of a space."""
    return TOTALS_PREFIX + _space(space)


def clearing_key(space: int) -> bytes:
    """The key of the note that a deleted space may still take disk space."""
    return CLEARING + _space(space)
