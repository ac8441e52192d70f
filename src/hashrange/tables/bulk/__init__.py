"""Bulk operations: the items of the objects of a bucket are put into a table that exists.

    bulker   the bulk operations of one database, as the database holds them
    jobs     what is stored of a bulk operation
    work     the background work
    reports  the objects that tell which rows were not written
"""
