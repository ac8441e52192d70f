"""The durable engine: RocksDB in a directory, with group commit.

    engine        `EmbeddedEngine`: runs bodies, reads and writes
    group_commit  collects batches and commits one after another; what follows a commit that fails
    store         one batch made durable in RocksDB; RocksDB opened again after a failure
    outcomes      a batch, and the callers that wait for it
    bodies        the readers and transactions that bodies get: of one moment, or with layered writes
    view          the committed records of one moment; apart from `bodies` because it cannot be compiled
    keys          the layout of keys on disk
    batches       the write batches that RocksDB gets
    upkeep        gives back the disk space of deleted records
    room          checks that the disk has room for a batch
    reopening     opens the store again when RocksDB refuses writes
    disk          RocksDB's settings
    cache         how much memory RocksDB's cache may take

    files         the files of a data directory, beside RocksDB
    offline       work on a whole directory: salvage, repair, copies
"""

from hashrange.storage.embedded.engine import EmbeddedEngine

__all__ = ["EmbeddedEngine"]
