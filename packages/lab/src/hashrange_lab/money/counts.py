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

    table: the full name of the table.
    index: the name of the global index; "" for the table with its local indexes.
    operation: the operation.
    caller: the tag of the program (`User-Agent`).
    requests: how many requests. One counts once for each table: for the table if it writes, for the table or
        index that it reads otherwise, so the rows of indexes that writes changed have none.
    read_units: read units.
    write_units: write units.
    stream_reads: requests of GetRecords.
    vector_bytes_written: bytes written to vector indexes.
    vector_bytes_searched: bytes searched in vector indexes.
    retried: the units, of reading and writing, of repeated attempts.
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
    """How an access pattern was used.

    table: the full name of the table.
    index: the name of the index; "" for the table.
    operation: the operation.
    text: its expressions; "" for none.
    requests: how many requests.
    read_items: how many items were read, by the requests that tell this and the next number.
    returned_items: how many items these returned.
    read_units: read units.
    write_units: write units.
    consistent: the read units of strongly consistent reads outside of transactions.
    consistent_requests: the number of these reads.
    members: how many members its transactions had, added up.
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
    """A minute, as a list: when it began (epoch seconds), the read units and the write units that a table or
    an index consumed in it, and how many of its requests were throttled."""

    at: int
    reads: float = 0.0
    writes: float = 0.0
    throttled: int = 0


class Series(msgspec.Struct):
    """When a table or a global index was used.

    table: the full name of the table.
    index: the name of the index; "" for the table.
    minutes: the minutes in which it was used, oldest first.
    """

    table: str
    index: str
    minutes: list[Minute]


class Stored(msgspec.Struct):
    """What a table stores, for prices of storage and for advice.

    table: the full name of the table.
    bytes: the size with the indexes, as it is billed.
    items: how many items it has.
    item_bytes: their size.
    capacity: how it is billed, PROVISIONED or PAY_PER_REQUEST.
    table_class: its class; "" for STANDARD.
    recovery_bytes: the size for which point-in-time recovery is billed.
    indexes: the names of its global indexes.
    provisioned: the read and the write units of the table (name "") and of each global index.
    maximum: the same of what is allowed on demand, 0 for no maximum.
    """

    table: str
    bytes_: int = msgspec.field(name="bytes")
    items: int
    item_bytes: int
    capacity: str
    table_class: str = ""
    recovery_bytes: int = 0
    indexes: list[str] = []
    provisioned: dict[str, tuple[int, int]] = {}
    maximum: dict[str, tuple[int, int]] = {}


class Counted(msgspec.Struct):
    """All that a meter knows.

    since: when counting began, in epoch seconds of the database's clock.
    until: now.
    region: the region of the server.
    rows: by table, index, operation and caller.
    patterns: by access pattern.
    series: by minute.
    stored: what the tables store.
    folded: how many requests found no room for their own pattern, and were added to one without expressions.
    """

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
