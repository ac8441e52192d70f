"""Makes the stream record of an item's change.

`applying.apply` calls `record` in the item's own transaction, for every write to a table with a stream. So
this module is compiled, and separate from `tables.streams`, which cannot be compiled: that module has the
streams themselves, the form of a record, and the code that reads records.
"""

from __future__ import annotations

import msgspec
import orjson

from hashrange.storage.api import Transaction
from hashrange.tables.items import records
from hashrange.tables.items.item_change import ItemChange, Occasion
from hashrange.tables.streams import TIME_AT, Stream, StreamRecord
from hashrange.values import Item, equal, item_size

# A set of any type begins with these bytes in stored JSON; no other value does.
_SET = b'S":["'

_ENCODE = msgspec.msgpack.Encoder()


def record(txn: Transaction, stream: Stream, made: ItemChange, occasion: Occasion) -> None:
    """Append the change of an item to the stream, unless the item did not change."""
    item = made.new_item if made.new_item is not None else made.old_item
    if item is None:
        return
    old = made.old[records.HEADER_BYTES :] if made.old is not None else None
    new = made.new[records.HEADER_BYTES :] if made.new is not None else None
    if made.old_size == made.new_size and _unchanged(old, made.old_item, new, made.new_item):
        return
    key_names = made.table.key_names
    keys = {name: item[name] for name in item if name in key_names}
    view = stream.view_type
    size, shown_new, shown_old = item_size(keys), None, None
    if new is not None and view in ("NEW_IMAGE", "NEW_AND_OLD_IMAGES"):
        shown_new, size = new, size + made.new_size
    if old is not None and view in ("OLD_IMAGE", "NEW_AND_OLD_IMAGES"):
        shown_old, size = old, size + made.old_size
    event = "INSERT" if old is None else "REMOVE" if new is None else "MODIFY"
    stored = _ENCODE.encode(
        StreamRecord(event, occasion.now, size, orjson.dumps(keys), shown_new, shown_old, occasion.by_expiry)
    )
    hashed = int.from_bytes(made.partition[:2])
    for high, shard in stream.open_shards:
        if hashed < high:
            txn.append(stream.space, shard, stored, TIME_AT)
            return


def _unchanged(old: bytes | None, old_item: Item | None, new: bytes | None, new_item: Item | None) -> bool:
    if old is None or new is None or old_item is None or new_item is None:
        return False
    if old == new or old_item == new_item:
        return True
    # The records differ. The items can be equal only if they hold sets, whose members may be in another
    # order.
    return _SET in old and equal({"M": old_item}, {"M": new_item})
