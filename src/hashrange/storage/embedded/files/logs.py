"""Reads and writes RocksDB's log format, which its write-ahead logs and its MANIFEST share.

    file    blocks of 32 KiB, the last one shorter
    block   physical records; fewer than 7 bytes at its end are zeros
    record  crc32c of type and payload, masked: 4 bytes | length: 2 | type: 1 | payload; little-endian
    type    1 the whole of a logical record; 2, 3, 4 its first part, a middle one, its last

After bytes that are not a record, reading continues where the next record can begin: at the end that the bad
record's length gives, if a sound record begins there; otherwise at the next block, because a block always
begins with a record. Reading never searches inside payloads, because a payload may hold bytes that look like
a record.

Source: RocksDB's wiki, "Write Ahead Log File Format". Refuses to know: files, and what the payloads mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

BLOCK_BYTES: Final = 32 * 1024
_header = Struct("<IHB")
HEADER_BYTES: Final = _header.size
CUT_SHORT: Final = "the file ends inside a record"
_MASK_DELTA: Final = 0xA282EAD8
_WORD: Final = 0xFFFF_FFFF
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


class LogRecord(NamedTuple):
    """A logical record, and the bytes of the file that hold it."""

    offset: int
    end: int
    payload: bytes


class BadBytes(NamedTuple):
    """Bytes of a log that hold no whole record, and why."""

    offset: int
    end: int
    cause: str


def read_log(data: bytes) -> Iterator[LogRecord | BadBytes]:
    """The records of a log, and the stretches between them that hold none, in order."""
    position = start = bad = 0
    cause = ""
    parts: list[bytes] = []
    size = len(data)
    while position < size:
        left = BLOCK_BYTES - position % BLOCK_BYTES
        if left < HEADER_BYTES:
            position += left
            continue
        payload, kind, problem = _physical(data, position, left)
        if payload is None:
            if not cause:
                bad, cause = (start if parts else position), problem
            parts = []
            position = _resume(data, position, left)
            continue
        end = position + HEADER_BYTES + len(payload)
        if kind in (_WHOLE, _FIRST):
            if parts and not cause:
                bad, cause = start, "a record without its end"
            parts = []
            if cause:
                yield BadBytes(bad, position, cause)
                cause = ""
            start = position
            if kind == _WHOLE:
                yield LogRecord(position, end, payload)
            else:
                parts = [payload]
        elif kind in (_MIDDLE, _LAST):
            if parts:
                parts.append(payload)
                if kind == _LAST:
                    yield LogRecord(start, end, b"".join(parts))
                    parts = []
            elif not cause:
                bad, cause = position, "the end of a record without its beginning"
        position = end
    if parts and not cause:
        bad, cause = start, CUT_SHORT
    if cause:
        yield BadBytes(bad, size, cause)


def write_log(payloads: Iterable[bytes]) -> bytes:
    """A log that holds these records."""
    log = bytearray()
    for payload in payloads:
        rest, first = payload, True
        while first or rest:
            left = BLOCK_BYTES - len(log) % BLOCK_BYTES
            if left < HEADER_BYTES:
                log += bytes(left)
                left = BLOCK_BYTES
            part, rest = rest[: left - HEADER_BYTES], rest[left - HEADER_BYTES :]
            if first:
                kind = _FIRST if rest else _WHOLE
            else:
                kind = _MIDDLE if rest else _LAST
            log += _header.pack(_masked(crc32c(bytes((kind,)) + part)), len(part), kind) + part
            first = False
    return bytes(log)


def _physical(data: bytes, position: int, left: int) -> tuple[bytes | None, int, str]:
    """The payload and type of the physical record at `position`; or None, and what is wrong there."""
    end = position + HEADER_BYTES
    if end > len(data):
        return None, 0, CUT_SHORT
    crc, length, kind = _header.unpack_from(data, position)
    if length > left - HEADER_BYTES or kind == 0:
        return None, 0, "no record begins here"
    end += length
    if end > len(data):
        return None, 0, CUT_SHORT
    if crc != _masked(crc32c(data[position + 6 : end])):
        return None, 0, "checksum mismatch"
    return data[position + HEADER_BYTES : end], kind, ""


def _resume(data: bytes, position: int, left: int) -> int:
    """The position at which reading continues after a bad record."""
    if position + HEADER_BYTES <= len(data):
        _, length, _ = _header.unpack_from(data, position)
        behind: int = position + HEADER_BYTES + length
        rest = left - HEADER_BYTES - length
        if rest >= HEADER_BYTES and _physical(data, behind, rest)[0] is not None:
            return behind
    return position + left


def _masked(crc: int) -> int:
    """The form in which RocksDB stores a checksum. It differs from the checksum itself, because the checksum
    of data that contain checksums would be misleading."""
    rotated = (crc >> 15) | ((crc << 17) & _WORD)
    return (rotated + _MASK_DELTA) & _WORD
