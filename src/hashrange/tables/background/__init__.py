"""The work that is due by time, or too much for one request.

    queues       what is due when: queues by time, with marks from which they are read
    expiry       time to live: the queue by time, and the deletion of what has expired
    lag          the queue of a global index that lags behind
    builds       what new indexes and queues make of the items that were there before
    backfill     the build of a new global index
    sweeps       all of the background work that may be due
    units        runs it: each unit fails alone
    bites        how much of it is done at a time

What changes an item (`tables.data.items`) leaves work here; the sweeps do it later, and change items by the
same way as requests do.
"""
