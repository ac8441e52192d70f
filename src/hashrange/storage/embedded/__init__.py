"""The durable engine: RocksDB in a directory, with group commit.

    engine       `EmbeddedEngine`: runs bodies, reads and writes
    commits      collects batches and commits one after another; what follows a commit that fails
    store        one batch made durable in RocksDB; RocksDB opened again after a failure
    gathering    when a deferred commit begins
    outcomes     a batch, and the callers that wait for it
    bodies       the readers and transactions that bodies get: of one moment, or with layered writes
    view         the committed records of one moment; apart from `bodies` because it cannot be compiled
    keys         the layout of keys on disk
    batches      the write batches that RocksDB gets
    upkeep       gives back the disk space of deleted records
    room         checks that the disk has room for a batch
    reopening    opens the store again when RocksDB refuses writes
    disk         RocksDB's settings

    directory    a data directory: its format, its lock, its files
    mark         the file STORE, which names the last acknowledged write
    manifest     reads from RocksDB's MANIFEST which files make up a store
    logs         reads and writes RocksDB's log format
    presence     checks that the files of an open store still exist
    damage       finds out whether files of a store are missing or damaged
    reading      reads all records of a damaged directory that can be read
    repair       makes a sound store of the records that can be read
    moving       a directory as the source and the target of a copy
    migration    converts a store of an older format to the current format
"""

from hashrange.storage.embedded.engine import EmbeddedEngine

__all__ = ["EmbeddedEngine"]
