"""The files of a data directory, beside RocksDB: which there are, and whether they are sound.

    directory    a data directory: its format, its lock, its files
    mark         the file STORE, which names the last acknowledged write
    manifest     reads from RocksDB's MANIFEST which files make up a store
    logs         reads and writes RocksDB's log format
    presence     checks that the files of an open store still exist
    damage       finds out whether files of a store are missing or damaged
"""
