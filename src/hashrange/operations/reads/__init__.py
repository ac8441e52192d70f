"""Operations that read items: by their keys, and by pages of a table or an index.

A Query goes straight down from `query`, and a Scan from `scan`:

    read_parameters  checks and compiles the parameters
    key_ranges       computes the range of records that a Query's key condition selects
    pages            makes the answer from a page

Between the last two they read the page, with `sources` and `ranges` of `tables.reads`.
"""
