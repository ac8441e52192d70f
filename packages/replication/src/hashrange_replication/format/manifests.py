"""The manifest of a base: the files of a checkpoint, and which segment holds the batches after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from hashrange_replication.failures import Damaged
from hashrange_replication.format.names import BaseName
from hashrange_replication.format.objects import Reader, encode
from hashrange_replication.format.sealing import Key

_KIND: Final = "base"


class BaseFile(msgspec.Struct, frozen=True):
    """A file of a base: its path in the data directory, its size, and the SHA-256 of its content."""

    path: str
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A base. It holds all batches up to the number `batch`, which were committed until `moment` (epoch
    milliseconds); its files are those of a data directory of the format `data_format`. Later batches are in
    the segments from `index` on, the first of which follows the segment with the digest `predecessor`; these
    segments may also hold earlier batches."""

    epoch: int
    batch: int
    moment: int
    store_id: str
    data_format: int
    index: int
    predecessor: str
    files: list[BaseFile]

    @property
    def name(self) -> BaseName:
        return BaseName(self.epoch, self.batch)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


def encode_manifest(manifest: Manifest, key: Key | None) -> bytes:
    """The object of a manifest."""
    content = msgspec.json.encode(manifest)
    return b"".join(
        encode({"kind": _KIND, "epoch": manifest.epoch, "batch": manifest.batch}, content, key)[0]
    )


def decode_manifest(read: Callable[[int], bytes], key: Key | None) -> Manifest:
    """The manifest in an object. Raises Damaged, and CopyError if the key does not fit."""
    reader = Reader(read, key)
    if reader.header.get("kind") != _KIND:
        raise Damaged("the object is not the manifest of a base")
    try:
        manifest = msgspec.json.decode(reader.content(), type=Manifest)
    except msgspec.DecodeError as error:
        raise Damaged(f"the manifest cannot be read: {error}") from None
    if any(_leads_out(file.path) for file in manifest.files):
        raise Damaged("the manifest names a file outside of the directory")
    return manifest


def _leads_out(path: str) -> bool:
    parts = path.split("/")
    return any(part in ("", ".", "..") or "\\" in part or ":" in part or "\0" in part for part in parts)
