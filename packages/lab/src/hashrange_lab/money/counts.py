"""What a meter has counted, as it goes over the admin plane: rows of spending, access patterns, minutes.

Units are those of ConsumedCapacity, in multiples of a half, which JSON keeps exactly. Money is computed from
them where it is shown (`money.statement`), so that every reader can take other prices. Refuses to know
prices.
"""

from __future__ import annotations

from typing import Final

import msgspec

OTHERS: Final = "others"
"""The caller, the operation or the table of what found no row of its own."""


class Usage(msgspec.Struct):
    """What one kind of request consumed on one table or index.

    `table` is a full name, `index` a global index, "" for the table with its local indexes. `caller` is the
    tag of the program (`money.agents`). A request counts once for each table: for the table if it writes,
    for the table or index that it reads otherwise, so the rows of indexes that writes changed have none.
    `retried` are the units, of reading and writing, of repeated attempts.
    """

    table: str
    index: str
    operation: str
    caller: str
    requests: int = 0
    read_units: float = 0.0
    write_units: float = 0.0
    stream_reads: int = 0
    vector_bytes_written: float = 0.0
    vector_bytes_searched: float = 0.0
    retried: float = 0.0


class Pattern(msgspec.Struct):
    """How an access pattern was used. `text` are its expressions (`observing.patterns`), "" for none.

    `read_items` and `returned_items` are counted only for the requests that tell both. `consistent` are the
    read units of strongly consistent reads outside of transactions, `consistent_requests` their number;
    `members` are those of transactions, added up.
    """

    table: str
    index: str
    operation: str
    text: str
    requests: int = 0
    read_items: int = 0
    returned_items: int = 0
    read_units: float = 0.0
    write_units: float = 0.0
    consistent: float = 0.0
    consistent_requests: int = 0
    members: int = 0


class Minute(msgspec.Struct, array_like=True):
    """The units that a table or an index consumed in the minute that began at `at` (epoch seconds), and how
    many of its requests were throttled."""

    at: int
    reads: float = 0.0
    writes: float = 0.0
    throttled: int = 0


class Series(msgspec.Struct):
    """The minutes of a table or a global index in which it was used, oldest first."""

    table: str
    index: str
    minutes: list[Minute]


class Stored(msgspec.Struct):
    """What a table stores, for prices of storage and for advice: `bytes_` with its indexes, `items` and
    `item_bytes` without, `recovery_bytes` those that point-in-time recovery is billed for. `capacity`: how it
    is billed, PROVISIONED or PAY_PER_REQUEST; `indexes` are the names of its global indexes.
    `provisioned` are the read and write units of the table (name "") and of each global index, `maximum`
    those that are allowed on demand, 0 for no maximum."""

    table: str
    bytes_: int
    items: int
    item_bytes: int
    capacity: str
    table_class: str = ""
    recovery_bytes: int = 0
    indexes: list[str] = []
    provisioned: dict[str, tuple[int, int]] = {}
    maximum: dict[str, tuple[int, int]] = {}


class Counted(msgspec.Struct):
    """All that a meter knows: since when, until when (epoch seconds of the database's clock), the server's
    region, and the counts. `folded`: how many requests found no room for their own pattern, and were added
    to one without expressions."""

    since: float
    until: float
    region: str
    rows: list[Usage]
    patterns: list[Pattern]
    series: list[Series]
    stored: list[Stored]
    folded: int = 0

    @property
    def seconds(self) -> float:
        """How long it was counted."""
        return max(self.until - self.since, 0.0)
