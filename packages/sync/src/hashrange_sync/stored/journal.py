"""The writes that are under way outside of a transaction with the state: all of the cloud's, and deletions.

They are noted before the first is sent, and the note is removed in the transaction that stores what they have
made of the states. A process that finds a note, because another one died or got no answer, looks into the
stream which of these writes were made (`work.recovering`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from hashrange_sync.deciding import SideName, State
from hashrange_sync.items import Item


@dataclass(frozen=True, slots=True)
class Entry:
    """A write that may have been made.

    echo: see `sides.writing.Write`. old: the digest of the item that it writes over. state: what both sides
    agree on if it was made; its `base` is kept elsewhere if there is one. deletes, blind: what kind of write
    it is.
    """

    key: Item
    side: SideName
    echo: bytes
    old: bytes
    state: State
    deletes: bool
    blind: bool
    has_base: bool

    def with_base(self, base: Item | None) -> Entry:
        """The entry with this `base` of its state."""
        return replace(self, state=replace(self.state, base=base))


_decode: Final = msgspec.msgpack.Decoder(list[Entry]).decode


def show(entries: Sequence[Entry]) -> bytes:
    """A journal as bytes, without the images."""
    return msgspec.msgpack.encode([entry.with_base(None) if entry.has_base else entry for entry in entries])


def parse(stored: bytes) -> list[Entry]:
    """The journal in bytes."""
    return _decode(stored)
