"""Compressed streams, read and written in constant memory."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from typing import Any, BinaryIO, Final, Protocol

_DAMAGED_ZSTD: tuple[type[Exception], ...] = ()
try:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    _DAMAGED_ZSTD = (zstd.ZstdError,)
except ImportError:  # an extra; `unreadable` says so
    pass

COMPRESSIONS: Final = ("GZIP", "ZSTD", "NONE")

DAMAGED: Final[tuple[type[Exception], ...]] = (gzip.BadGzipFile, zlib.error, EOFError, *_DAMAGED_ZSTD)
"""The errors of reading a stream that is not compressed as expected, damaged or cut off."""

_LEVEL: Final = 6


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


class Digest(Protocol):
    """What `hashlib` makes."""

    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...

    def hexdigest(self) -> str: ...


_BEGINNINGS: Final = {b"\x1f\x8b": "GZIP", b"\x28\xb5\x2f\xfd": "ZSTD"}


def compression_of(source: BinaryIO) -> str:
    """The compression of a stream, by its first bytes. The stream then stands where it stood before."""
    place = source.tell()
    first = source.read(4)
    source.seek(place)
    return next((name for mark, name in _BEGINNINGS.items() if first.startswith(mark)), "NONE")


def unreadable(compression: str) -> str | None:
    """Why this installation cannot read a compression, and the remedy; None if it can."""
    if compression == "ZSTD" and not _DAMAGED_ZSTD:
        return "zstd needs Python 3.14, or the extra zstd of hashrange: pip install backports.zstd"
    return None


def reader(source: Any, compression: str) -> Readable:
    """The decompressed bytes of `source`. Its `read` raises one of `DAMAGED` for bytes that cannot be
    decompressed.

    An empty stream is accepted, whatever the compression. Ask `unreadable` first.
    """
    if compression == "GZIP":
        return gzip.GzipFile(fileobj=source, mode="rb")
    if compression == "ZSTD":
        first = source.read(1)
        source = zstd.ZstdFile(_Begun(first, source), mode="rb") if first else source
    return source  # type: ignore[no-any-return]


class _Begun(io.RawIOBase):
    """A stream whose first byte has been read."""

    def __init__(self, first: bytes, source: Any) -> None:
        self._first = first
        self._source = source

    def read(self, size: int = -1, /) -> bytes:
        if self._first and size:
            first, self._first = self._first, b""
            return first
        read: bytes = self._source.read(size)
        return read


def gzip_writer(sink: Any, level: int = _LEVEL) -> gzip.GzipFile:
    """A stream that compresses into `sink`; equal contents give equal bytes."""
    return gzip.GzipFile(filename="", fileobj=sink, mode="wb", compresslevel=level, mtime=0)


class Digesting:
    """A sink for `gzip_writer` that passes bytes on to `sink`, counts them, and adds them to `digest`."""

    def __init__(self, sink: Any, digest: Digest) -> None:
        self._sink = sink
        self.digest = digest
        self.count = 0

    def write(self, data: Any) -> int:
        content = bytes(data)
        self._sink.write(content)
        self.digest.update(content)
        self.count += len(content)
        return len(content)

    def flush(self) -> None:
        """Nothing: the sink is flushed by who opened it."""
