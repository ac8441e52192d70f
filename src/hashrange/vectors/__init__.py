"""Searches vectors: with numpy, in matrices that follow the writes.

    graph    proposes rows of a large matrix, if a setting asks for it
    matrix   the vectors of one HASH value of an index, as a matrix in memory
    nearest  the nearest rows of a matrix
    cache    the matrices that a database keeps between searches, and how they follow the log of changes

An index entry holds a vector as floats, written in the transaction of its item (`tables.items.vectors`). The
first search of a HASH value reads its entries into a matrix; later searches read only what has changed since.
Importing a module of this package imports numpy, so only a search does it. Refuses to know requests.
"""
