"""Operations on the past of tables.

    continuous_backups        switch point-in-time recovery on and off, and describe it
    restore_to_point_in_time  a new table with the items that a table had at a moment
    recovery                  the moments that a table can be restored to
    overrides                 what a restored table has of its source, and what the request changes
"""
