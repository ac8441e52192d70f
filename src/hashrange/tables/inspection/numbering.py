"""The logs of a store: for engines that keep their numbers apart, and for the checker."""

from __future__ import annotations

from hashrange.storage.api import Reader
from hashrange.storage.failures import StoreDamaged
from hashrange.tables import streams
from hashrange.tables.definitions import catalog
from hashrange.tables.spaces import LAG_SPACE


def find_logs(reader: Reader) -> set[int]:
    """The spaces of streams, of changes for Kinesis and of vector indexes, and of the queue of lagging
    indexes.

    Whatever else is appended to has to be added here. Raises StoreDamaged if a stream cannot be decoded.
    """
    spaces = {LAG_SPACE}
    for name, stream in streams.every_stream(reader):
        if not isinstance(stream, streams.Stream):
            raise StoreDamaged(
                f"The definition of stream {name} cannot be decoded: {stream}. `hashrange check` tells all "
                "that is wrong with the store."
            )
        spaces.add(stream.space)
    for table in catalog.definitions(reader):
        spaces.update([index.vector.changes for index in table.indexes if index.vector is not None])
        if table.outbox is not None:
            spaces.add(table.outbox.space)
    return spaces
