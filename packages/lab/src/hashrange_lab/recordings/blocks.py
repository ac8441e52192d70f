"""Blocks of bytes, each compressed by itself, one after the other: by zstd where Python has it, else by gzip.

`pieces` reads such a text, of either kind or not compressed, up to where a file was cut off or is damaged.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any, Final

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_GZIP_MAGIC: Final = b"\x1f\x8b"
_PIECE_BYTES: Final = 65_536
_LEVEL: Final = 3
"""A level that takes little time: the program that is recorded shares the machine."""

if TYPE_CHECKING:
    zstd: Any
else:
    try:
        from compression import zstd
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            zstd = None

_DAMAGED: Final = (zlib.error, EOFError) if zstd is None else (zlib.error, EOFError, zstd.ZstdError)


class NeedsZstd(Exception):
    """The text was compressed by zstd, and this Python has none."""

    def __init__(self) -> None:
        super().__init__(
            "It is compressed by zstd, for which this Python needs the extra zstd of hashrange: "
            "pip install backports.zstd"
        )


class Damaged(Exception):
    """The text ends within a block, or a block is damaged."""


def kind() -> str:
    """How blocks are compressed here: `zstd` or `gzip`."""
    return "gzip" if zstd is None else "zstd"


def compressed(block: bytes) -> bytes:
    """A block that can follow others."""
    if zstd is None:
        return gzip.compress(block, _LEVEL)
    parameters = {
        zstd.CompressionParameter.compression_level: _LEVEL,
        zstd.CompressionParameter.checksum_flag: 1,  # as gzip always has one
    }
    packed: bytes = zstd.compress(block, options=parameters)
    return packed


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """The text in a file of blocks, in pieces.

    Raises `Damaged` where a block is cut off or damaged, after all that can be read, `NeedsZstd`, OSError.
    """
    begun = file.read(_PIECE_BYTES)
    if begun.startswith(_ZSTD_MAGIC):
        if zstd is None:
            raise NeedsZstd
        yield from _opened(file, begun, zstd.ZstdDecompressor)
    elif begun.startswith(_GZIP_MAGIC):
        yield from _opened(file, begun, lambda: zlib.decompressobj(wbits=31))
    else:
        while begun:
            yield begun
            begun = file.read(_PIECE_BYTES)


def _opened(file: IO[bytes], packed: bytes, open_block: Callable[[], Any]) -> Iterator[bytes]:
    block, is_begun = open_block(), False
    while packed or (packed := file.read(_PIECE_BYTES)):
        try:
            piece = block.decompress(packed)
        except _DAMAGED:
            raise Damaged from None
        if piece:
            yield piece
        packed, is_begun = b"", True
        if block.eof:
            packed, block, is_begun = block.unused_data, open_block(), False
    if is_begun:
        raise Damaged
