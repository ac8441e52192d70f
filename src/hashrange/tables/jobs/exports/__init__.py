"""Exports: a table at a moment, or its changes between two moments, as objects of a bucket.

    export_records  the records of exports: request, progress, the objects that were written
    export_runner   the background work: writes the objects, one after the other

An export holds its table's history (`tables.history.recording`), so the past stays readable while it is read
in bites, even if the table is deleted meanwhile. The state at a stamp never changes, so an object that was
unfinished when the process ended is simply written again.
"""
