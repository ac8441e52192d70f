"""Background work: work that is due by time, or too much for a single request.

    sweeps     lists the work of tables that may be due, and does it
    restoring  fills a table that is restored
    units      runs background work in units; when one unit fails, the others go on
    sharing    shares the units among the servers of one store
    leaps      whether the clock can be trusted with what time destroys

Writes leave this work in queues and builds (`tables.writes`). The sweeps change items by `applying.apply`, as
requests do.
"""
