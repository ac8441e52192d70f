"""The form of every object of a copy but the lease.

    hashrange copy 1\\n
    HEADER\\n                            JSON: what the object is; with `salt` and `key` if it is sealed
    length and flag, checksum, chunk    4, 4 and `length` bytes, repeated; the flag marks the last chunk
    digest                              SHA-256 of all bytes before it

A chunk is at most CHUNK_BYTES of the content, compressed by zstd and then sealed if there is a key. Numbers
are big-endian; the checksum is CRC-32 of the stored chunk, and finds out which part of an object is damaged.
The digest chains segments (`segments`). Anyone can verify digests; only the key opens sealed chunks.

Refuses to know: what the content means.
"""

from __future__ import annotations

import hashlib
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from hashrange_replication.failures import CopyError, Damaged
from hashrange_replication.format.sealing import SALT_BYTES, Cipher, Key

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC: Final = b"hashrange copy 1\n"
CHUNK_BYTES: Final = 1024 * 1024
DIGEST_BYTES: Final = 32

_ANY_MAGIC: Final = b"hashrange copy "
_HEADER_BYTES_MAX: Final = 64 * 1024
_STORED_BYTES_MAX: Final = 2 * CHUNK_BYTES
_LAST: Final = 1 << 31
# The lowest level: a segment is compressed while a server works, and the blocks of SST files are compressed.
_LEVEL: Final = 1

Header = Mapping[str, Any]

_encode_header = msgspec.json.Encoder(order="deterministic").encode


class Writer:
    """Writes an object piece by piece through `write`, in constant memory."""

    def __init__(self, write: Callable[[bytes], object], header: Header, key: Key | None) -> None:
        self._write = write
        self._digest = hashlib.sha256()
        self._held = bytearray()
        self._cipher: Cipher | None = None
        head = dict(header)
        salt = b""
        if key is not None:
            salt = key.random(SALT_BYTES)
            head |= {"key": key.id, "salt": salt.hex()}
        line = MAGIC + _encode_header(head) + b"\n"
        if key is not None:
            self._cipher = key.cipher(salt, line)
        self._put(line)

    def write(self, data: bytes) -> None:
        """Add to the content."""
        held = self._held
        held += data
        while len(held) > CHUNK_BYTES:
            self._chunk(bytes(memoryview(held)[:CHUNK_BYTES]), last=False)
            del held[:CHUNK_BYTES]

    def finish(self) -> str:
        """Write the end; returns the digest of the object, in hexadecimal."""
        self._chunk(bytes(self._held), last=True)
        digest = self._digest.digest()
        self._write(digest)
        return digest.hex()

    def _chunk(self, content: bytes, *, last: bool) -> None:
        stored = zstd.compress(content, _LEVEL)
        if self._cipher is not None:
            stored = self._cipher.seal(stored, last=last)
        head = (len(stored) | (_LAST if last else 0)).to_bytes(4) + zlib.crc32(stored).to_bytes(4)
        self._put(head + stored)

    def _put(self, data: bytes) -> None:
        self._digest.update(data)
        self._write(data)


def encode(header: Header, content: bytes, key: Key | None) -> tuple[bytes, str]:
    """An object in memory, and its digest."""
    pieces: list[bytes] = []
    writer = Writer(pieces.append, header, key)
    writer.write(content)
    digest = writer.finish()
    return b"".join(pieces), digest


class Reader:
    """Reads an object through `read`, which returns up to so many bytes, and b"" at the end. All methods
    raise Damaged, and CopyError if the key does not fit.

    `sealed_too`: without the key, `chunks` gives nothing of a sealed object, and only compares checksums.
    """

    def __init__(self, read: Callable[[int], bytes], key: Key | None, *, sealed_too: bool = False) -> None:
        self._read = read
        self._digest = hashlib.sha256()
        self._buffer = b""
        line = self._header_line()
        self.header: dict[str, Any] = _header_of(line[len(MAGIC) :])
        self.digest = ""
        """The digest of the object, in hexadecimal, once `chunks` has come to its end."""
        key_id = self.header.get("key", "")
        self._cipher: Cipher | None = None
        self.is_readable = not key_id or key is not None or not sealed_too
        if not key_id:
            return
        if key is None:
            if not sealed_too:
                raise CopyError(f"The copy is sealed by the key {key_id}: give its file to --copy-key-file.")
        elif key.id != key_id:
            raise CopyError(f"The copy is sealed by the key {key_id}; the key file holds the key {key.id}.")
        else:
            self._cipher = key.cipher(bytes.fromhex(str(self.header.get("salt", ""))), line)

    def chunks(self) -> Iterator[bytes]:
        """The content, piece by piece."""
        last = False
        while not last:
            head = self._take(8)
            number = int.from_bytes(head[:4])
            last, length = bool(number & _LAST), number & ~_LAST
            if length > _STORED_BYTES_MAX:
                raise Damaged(f"a chunk says that it has {length} bytes")
            stored = self._take(length)
            if zlib.crc32(stored) != int.from_bytes(head[4:]):
                raise Damaged("the checksum of a chunk is wrong")
            if self.is_readable:
                yield self._opened(stored, last)
        wanted = self._digest.digest()
        if self._exactly(DIGEST_BYTES) != wanted:
            raise Damaged("the digest is wrong")
        if self._buffer or self._read(1):
            raise Damaged("there are bytes behind the end")
        self.digest = wanted.hex()

    def content(self) -> bytes:
        """All of the content."""
        return b"".join(self.chunks())

    def _opened(self, stored: bytes, last: bool) -> bytes:
        if self._cipher is not None:
            stored = self._cipher.open(stored, last=last)
        try:
            content = zstd.decompress(stored)
        except zstd.ZstdError as error:
            raise Damaged(f"a chunk cannot be decompressed: {error}") from None
        if len(content) > CHUNK_BYTES:
            raise Damaged(f"a chunk holds {len(content)} bytes")
        return content

    def _header_line(self) -> bytes:
        while self._buffer.count(b"\n") < 2:
            more = self._read(4096)
            self._buffer += more
            if not more or len(self._buffer) > _HEADER_BYTES_MAX:
                raise Damaged("the object has no header")
        if not self._buffer.startswith(MAGIC):
            if self._buffer.startswith(_ANY_MAGIC):
                version = self._buffer.partition(b"\n")[0].decode("ascii", "replace")
                raise CopyError(f"An object is of the form {version!r}: use the version that has written it.")
            raise Damaged("the object is not one of a copy")
        end = self._buffer.index(b"\n", len(MAGIC)) + 1
        line, self._buffer = self._buffer[:end], self._buffer[end:]
        self._digest.update(line)
        return line

    def _take(self, length: int) -> bytes:
        data = self._exactly(length)
        self._digest.update(data)
        return data

    def _exactly(self, length: int) -> bytes:
        pieces = [self._buffer[:length]]
        self._buffer = self._buffer[length:]
        missing = length - len(pieces[0])
        while missing:
            more = self._read(missing)
            if not more:
                raise Damaged("the object is cut off")
            pieces.append(more)
            missing -= len(more)
        return b"".join(pieces)


def _header_of(line: bytes) -> dict[str, Any]:
    try:
        header = msgspec.json.decode(line, type=dict[str, Any])
        bytes.fromhex(str(header.get("salt", "")))
    except (msgspec.DecodeError, ValueError):
        raise Damaged("the header cannot be read") from None
    return header


def in_memory(content: bytes) -> Callable[[int], bytes]:
    """A function for `Reader` that reads an object in memory."""
    from io import BytesIO

    return BytesIO(content).read
