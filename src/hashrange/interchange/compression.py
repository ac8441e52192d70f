"""Compressed streams, read and written in constant memory."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from typing import Any, Final, Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESSIONS: Final = ("GZIP", "ZSTD", "NONE")

DAMAGED: Final = (gzip.BadGzipFile, zlib.error, EOFError, zstd.ZstdError)
"""What reading raises for a stream that is not compressed as expected, damaged or cut off."""

_LEVEL: Final = 6


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


def reader(source: Any, compression: str) -> Readable:
    """The decompressed bytes of `source`. Its `read` raises one of `DAMAGED` for what cannot be read.

    An empty stream holds nothing, whatever the compression.
    """
    if compression == "GZIP":
        return gzip.GzipFile(fileobj=source, mode="rb")
    if compression == "ZSTD":
        first = source.read(1)
        source = zstd.ZstdFile(_Begun(first, source), mode="rb") if first else source
    return source  # type: ignore[no-any-return]


class _Begun(io.RawIOBase):
    """A stream whose first byte was read already."""

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
    """A stream that writes what it is given to `sink`, compressed; the same bytes for the same content."""
    return gzip.GzipFile(filename="", fileobj=sink, mode="wb", compresslevel=level, mtime=0)
