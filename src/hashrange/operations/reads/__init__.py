"""Operations that read items: by their keys, and by pages of a table or an index.

    paging           what Query and Scan share
    key_conditions   the range of records that a Query's key condition selects
"""
