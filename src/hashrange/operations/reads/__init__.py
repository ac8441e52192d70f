"""Operations that read items: by their keys, and by pages of a table or an index.

A Query goes straight down from `query`, and a Scan from `scan`:

    reading      what is asked for: the parameters, checked and compiled
    key_ranges   the range of records that a Query's key condition selects
    pages        the answer that shows a page

Between the last two they read the page, with `sources` and `ranges` of `tables.data`.
"""
