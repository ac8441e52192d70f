"""The form of every object of a copy but the lease.

    hashrange copy 1\\n
    HEADER\\n                            JSON: what the object is; with `salt` and `key` if it is sealed
    length and flags, chunk    4 and `length` bytes, repeated; flags mark the last chunk, and compressed ones
    digest                     SHA-256 of all bytes before it

A chunk is at most CHUNK_BYTES of the content, compressed by zstd where that makes it much smaller, and then
sealed if there is a key. Numbers are big-endian. The digest finds all damage, and chains segments
(`segments`). Anyone can verify digests; only the key opens sealed chunks. What a reader gives before it has
come to the digest may be damaged.

Refuses to know: what the content means.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from hashrange_replication.failures import CopyError, Damaged
from hashrange_replication.format.sealing import SALT_BYTES, Cipher, Data, Key

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC: Final = b"hashrange copy 1\n"
CHUNK_BYTES: Final = 1024 * 1024
DIGEST_BYTES: Final = 32

_ANY_MAGIC: Final = b"hashrange copy "
_HEADER_BYTES_MAX: Final = 64 * 1024
_HEAD_BYTES: Final = 4
_STORED_BYTES_MAX: Final = 2 * CHUNK_BYTES
_LAST: Final = 1 << 31
_COMPRESSED: Final = 1 << 30
# The lowest level that encodes literals.
_LEVEL: Final = 1
# A chunk is compressed if so many of its bytes become that much smaller.
_SAMPLE_BYTES: Final = 16 * 1024
_WORTH: Final = 0.7

Header = Mapping[str, Any]

_encode_header = msgspec.json.Encoder(order="deterministic").encode


class Writer:
    """Writes an object piece by piece through `write`, which takes anything like bytes, in constant memory.
    What is written must not change before `finish`: pieces as large as a chunk are not copied. `quick`:
    without compressing."""

    def __init__(
        self, write: Callable[[Any], object], header: Header, key: Key | None, *, quick: bool = False
    ) -> None:
        self._write = write
        self._digest = hashlib.sha256()
        self._held: list[memoryview] = []  # of the next chunk
        self._room = CHUNK_BYTES
        self._cipher: Cipher | None = None
        self._compressor = None if quick else zstd.ZstdCompressor(_LEVEL)
        head = dict(header)
        salt = b""
        if key is not None:
            salt = key.random(SALT_BYTES)
            head |= {"key": key.id, "salt": salt.hex()}
        line = MAGIC + _encode_header(head) + b"\n"
        if key is not None:
            self._cipher = key.cipher(salt, line)
        self._put(line)

    def write(self, data: Data) -> None:
        """Add to the content."""
        view = memoryview(data)
        while len(view) > self._room:
            self._held.append(view[: self._room])
            view = view[self._room :]
            self._chunk(last=False)
        self._held.append(view)
        self._room -= len(view)

    def finish(self) -> str:
        """Write the end; returns the digest of the object, in hexadecimal."""
        self._chunk(last=True)
        digest = self._digest.digest()
        self._write(digest)
        return digest.hex()

    def _chunk(self, *, last: bool) -> None:
        held = [piece for piece in self._held if piece]
        self._held, self._room = [], CHUNK_BYTES
        flags = _LAST if last else 0
        stored: Data = held[0] if len(held) == 1 else b"".join(held)
        if self._compressor is not None and _shrinks(self._compressor, stored):
            flags |= _COMPRESSED
            stored = _compressed(self._compressor, stored)
        if self._cipher is not None:
            stored = self._cipher.seal(stored, flags)
        self._put((len(stored) | flags).to_bytes(_HEAD_BYTES))
        self._put(stored)

    def _put(self, data: Data) -> None:
        self._digest.update(data)
        self._write(data)


def _shrinks(compressor: zstd.ZstdCompressor, content: Data) -> bool:
    middle = max(0, len(content) - _SAMPLE_BYTES) // 2
    sample = memoryview(content)[middle : middle + _SAMPLE_BYTES]
    return len(_compressed(compressor, sample)) < _WORTH * len(sample)


def _compressed(compressor: zstd.ZstdCompressor, content: Data) -> bytes:
    return compressor.compress(content, zstd.ZstdCompressor.FLUSH_FRAME)


def encode(
    header: Header, content: bytes | bytearray, key: Key | None, *, quick: bool = False
) -> tuple[list[Data], str]:
    """The pieces of an object in memory, which may be parts of `content`; and its digest."""
    pieces: list[Data] = []
    writer = Writer(pieces.append, header, key, quick=quick)
    writer.write(content)
    return pieces, writer.finish()


class Reader:
    """Reads an object through `read`, which returns up to so many bytes, and b"" at the end. All methods
    raise Damaged, and CopyError if the key does not fit.

    `sealed_too`: without the key, `chunks` gives nothing of a sealed object, and only compares digests.
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
        """The content, piece by piece; only at the end it is known that all of it is right."""
        last = False
        while not last:
            number = int.from_bytes(self._take(_HEAD_BYTES))
            flags = number & (_LAST | _COMPRESSED)
            last, length = bool(flags & _LAST), number - flags
            if length > _STORED_BYTES_MAX:
                raise Damaged(f"a chunk says that it has {length} bytes")
            stored = self._take(length)
            if self.is_readable:
                yield self._opened(stored, flags)
        wanted = self._digest.digest()
        if self._exactly(DIGEST_BYTES) != wanted:
            raise Damaged("the digest is wrong")
        if self._buffer or self._read(1):
            raise Damaged("there are bytes behind the end")
        self.digest = wanted.hex()

    def content(self) -> bytes:
        """All of the content."""
        return b"".join(self.chunks())

    def _opened(self, stored: bytes, flags: int) -> bytes:
        if self._cipher is not None:
            stored = self._cipher.open(stored, flags)
        if not flags & _COMPRESSED:
            return stored
        decompressor = zstd.ZstdDecompressor()
        try:
            content = decompressor.decompress(stored, CHUNK_BYTES + 1)
        except zstd.ZstdError as error:
            raise Damaged(f"a chunk cannot be decompressed: {error}") from None
        if len(content) > CHUNK_BYTES or not decompressor.eof or decompressor.unused_data:
            raise Damaged(f"a chunk is not one frame of at most {CHUNK_BYTES} bytes")
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
