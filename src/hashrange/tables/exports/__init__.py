"""Exports: what a table was at a moment, or what changed between two, as objects of a bucket.

    exporter  the exports of a database, as the database holds them
    jobs      what is stored of an export: its request, how far it is, the objects that were written
    work      the background work: writes the objects, one after the other

An export holds its table's history (`tables.history.recording`), so the past stays readable while it is read
in bites: also if the table is deleted meanwhile. What was true at a stamp never changes, so an object that
was begun when the process ended is simply written again.
"""
