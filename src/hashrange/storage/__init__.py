"""Ordered, transactional stores of byte records.

    api           the contract of an engine
    failures      the errors of storage
    features      what a store needs of the programs that open it
    capabilities  what only some engines can do
    loops         the event loop of an engine: outcomes, queued bodies, when commits start
    memory        the engine that keeps everything in the process
    embedded      the durable engine: RocksDB in a directory
    drafts        runs a long write body on a view first, and commits its writes if no record it read changed
    store_copy    copies a store from one engine to another
    merging       lets a scan show writes that are not in the store yet
    layered       the records of a space over records that never change: for snapshots

The tests that every engine passes are `hashrange_engine_tests`, in packages/engine-tests.
"""
