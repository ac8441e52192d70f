"""Images: the state of an item before a change, and who changed it.

    1 byte    1: a request changed the item; 2: time to live deleted it
    1 byte    the length of the next part
    …         the access key of the request, in UTF-8
    rest      the stored record of the item before the change; empty if there was no item

An image lies at its item's place, followed by the stamp of the change. The place is the item's sort with 00
written as 00 ff, and 00 01 at its end, so that the images of an item lie together and no other item's images
lie between them, whatever bytes the sorts contain.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hashrange.encoding import escape
from hashrange.storage.api import STAMP_BYTES, Transaction
from hashrange.tables.definitions.spans import History, stamp_at
from hashrange.tables.items.item_change import ItemChange, Occasion

_BY_REQUEST: Final = 1
_BY_EXPIRY: Final = 2
_HEADER_BYTES: Final = 2
_CALLER_BYTES_MAX: Final = 255

_END: Final = b"\x00\x01"
_BEHIND: Final = b"\x00\x02"


class Image(NamedTuple):
    """The parts of an image: the record before the change (None: no item), and who made the change."""

    record: bytes | None
    caller: str
    by_expiry: bool


def keep(txn: Transaction, history: History, change: ItemChange, occasion: Occasion) -> None:
    """Store the image of a change, unless the record stays the same."""
    old = change.old
    if old == change.new:
        return
    caller = occasion.caller.encode()[:_CALLER_BYTES_MAX]
    header = bytes((_BY_EXPIRY if occasion.by_expiry else _BY_REQUEST, len(caller)))
    image = header + caller if old is None else header + caller + old
    txn.keep(history.space, change.partition, place_of(change.sort), image, stamp_at(occasion.now))


def place_of(sort: bytes) -> bytes:
    """The place of the item with this sort."""
    return escape(sort) + _END


def behind(place: bytes) -> bytes:
    """The lowest sort bytes above all images of the item at `place`."""
    return place[: -len(_END)] + _BEHIND


def sort_of(place: bytes) -> bytes:
    """The sort of the item whose place this is."""
    escaped = place[: -len(_END)]
    return escaped.replace(b"\x00\xff", b"\x00") if b"\x00" in escaped else escaped


def stamped(place: bytes, stamp: int) -> bytes:
    """The sort bytes of the image of a change with this stamp."""
    return place + stamp.to_bytes(STAMP_BYTES, "big")


def split(sort: bytes) -> tuple[bytes, int] | None:
    """The place and the stamp in the sort bytes of an image; None if they are malformed."""
    place, stamp = sort[:-STAMP_BYTES], sort[-STAMP_BYTES:]
    if len(stamp) < STAMP_BYTES or place[-len(_END) :] != _END:
        return None
    return place, int.from_bytes(stamp, "big")


def record_of(image: bytes) -> bytes | None:
    """The record of an image; None: there was no item."""
    return image[_HEADER_BYTES + image[1] :] or None


def unpack(image: bytes) -> Image:
    """The parts of an image."""
    end = _HEADER_BYTES + image[1]
    caller = image[_HEADER_BYTES:end].decode(errors="replace")
    return Image(image[end:] or None, caller, image[0] == _BY_EXPIRY)


def is_image(image: bytes) -> bool:
    """Whether the bytes can be an image: for the checker."""
    return (
        len(image) >= _HEADER_BYTES
        and image[0] in (_BY_REQUEST, _BY_EXPIRY)
        and len(image) >= _HEADER_BYTES + image[1]
    )
