"""Bulk operations: put the items in the objects of a bucket into an existing table.

    bulk_records  the records of bulk operations
    bulk_runner   the background work
    reports       the objects that list the rows that were not written
"""
