"""Imports: tables that are made of the objects of a bucket.

    importer  the imports of a database, as the database holds them
    jobs      what is stored of an import: its request, how far it is, its errors
    source    reads the rows of an import's objects, in bites
    work      the background work: writes a bite of items with the import's progress

An import begins as a job without a table. The work makes the table, CREATING, when it has found the bucket; a
table is ACTIVE when its import has ended. Each bite is one transaction of items, counts, errors and the place
in the objects. So an import that was interrupted goes on as if it had not been.
"""
