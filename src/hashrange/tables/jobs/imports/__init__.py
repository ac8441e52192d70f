"""Imports: new tables from the objects of a bucket.

    import_records  the records of imports: request, progress, errors
    import_runner   the background work: writes a bite of items with the import's progress

An import begins as a job without a table. The work makes the table, CREATING, when it has opened the bucket;
the table is ACTIVE when its import has ended. Each bite is one transaction of items, counts, errors and the
place in the objects. So an interrupted import continues as if nothing had happened.
"""
