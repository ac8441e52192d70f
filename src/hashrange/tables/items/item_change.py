"""The change of an item: the form in which a write goes from its operation to the indexes and the stream.

A compiled class, because every write makes one.
"""

from __future__ import annotations

from hashrange.settings import Settings
from hashrange.tables.definitions.table import Table
from hashrange.tables.items import records
from hashrange.tables.items.capacity import NOTHING_WRITTEN, WriteUnits
from hashrange.values import Item


class Occasion:
    """The circumstances of a change: the time (epoch seconds), the settings, the access key of the request,
    and whether expiry makes the change."""

    __slots__ = ("by_expiry", "caller", "now", "settings")

    def __init__(self, now: float, settings: Settings, caller: str = "", by_expiry: bool = False) -> None:
        self.now = now
        self.settings = settings
        self.caller = caller
        self.by_expiry = by_expiry


class ItemChange:
    """The change of the item at `(partition, sort)` in `table`.

    `old` and `new` are its stored records before and after (None: absent), `old_size` and `new_size` their
    sizes in bytes, `old_item` and `new_item` the decoded records. `old_item` may be None for a table whose
    writes do not need it (`Table.needs_old_item`). `units` is the cost of the change, which `applying.apply`
    sets.
    """

    __slots__ = (
        "new",
        "new_item",
        "new_size",
        "old",
        "old_item",
        "old_size",
        "partition",
        "sort",
        "table",
        "units",
    )

    def __init__(
        self,
        table: Table,
        partition: bytes,
        sort: bytes,
        old: bytes | None,
        old_item: Item | None,
        new: bytes | None,
        new_item: Item | None,
    ) -> None:
        self.table = table
        self.partition = partition
        self.sort = sort
        self.old = old
        self.old_item = old_item
        self.old_size = records.size_of(old) if old is not None else 0
        self.new = new
        self.new_item = new_item
        self.new_size = records.size_of(new) if new is not None else 0
        self.units: WriteUnits = NOTHING_WRITTEN

    def forget_items(self) -> None:
        """Drop the decoded items, when nobody needs them any more."""
        self.old_item = None
        self.new_item = None
