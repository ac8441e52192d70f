"""Ordered, transactional stores of byte records.

    api          the contract of an engine
    contract     the tests that every engine passes
    memory       the engine that keeps everything in the process
    embedded     the durable engine: RocksDB in a directory
    drafts       long write bodies, on any engine: run on a view first, committed if nothing changed
    reads        reading, for engines that never wait for anything
"""
