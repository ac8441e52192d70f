"""The durable engine: RocksDB in a directory, with group commit.

    engine       `EmbeddedEngine`: the life of a write, from body to commit
    gathering    when a deferred commit begins
    outcomes     a batch, and who waits for it
    bodies       what bodies are given: a reader of one moment, or a transaction of layered writes
    view         the committed records of one moment; apart from `bodies` because it cannot be compiled
    keys         the layout of keys on disk
    batches      what RocksDB is handed in one call
    upkeep       what deletions leave behind, and how it goes away
    room         whether the disk has room for a batch
    reopening    the store opened again when RocksDB takes no more writes
    disk         RocksDB's settings

    directory    a data directory: what it is, and whether all of it is there
    mark         STORE, which says how far acknowledged writes came
    manifest     which files make up a store, and `logs`, RocksDB's log format
    damage       whether the files are all there and whole
    reading      a damaged directory read as far as that goes
    repair       a sound store made of what can be read
"""

from hashrange.storage.embedded.engine import EmbeddedEngine

__all__ = ["EmbeddedEngine"]
