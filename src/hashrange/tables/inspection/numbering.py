"""The logs of a store: for engines that keep their numbers and stamps apart, and for the checker."""

from __future__ import annotations

from hashrange.storage.api import STAMP_BYTES, Reader
from hashrange.storage.failures import StoreDamaged
from hashrange.storage.moving import Logs
from hashrange.tables.spaces import LAG_SPACE
from hashrange.tables.streams import logs


def find_logs(reader: Reader) -> Logs:
    """The logs of streams, and the space of the queue of lagging indexes, whose log has no stamps.

    Whatever else is appended to has to be added here. Raises StoreDamaged if a stream cannot be decoded.
    """
    numbers = Logs({LAG_SPACE})
    for name, stream in logs.every_stream(reader):
        if not isinstance(stream, logs.Stream):
            raise StoreDamaged(
                f"The definition of stream {name} cannot be decoded: {stream}. `hashrange check` tells all "
                "that is wrong with the store."
            )
        numbers.spaces.add(stream.space)
        for shard in stream.shards:
            log = logs.shard_log(shard.id)
            for _, stored in reader.scan(stream.space, log, reverse=True, likely=1):
                numbers.stamps[stream.space, log] = stored[logs.TIME_AT : logs.TIME_AT + STAMP_BYTES]
                break
    return numbers
