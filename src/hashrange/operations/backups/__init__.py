"""Operations on the past of tables.

    continuous_backups        switch point-in-time recovery on and off, and describe it
    backup_requests           begin, describe, list and delete backups
    restores                  a new table with the items of a backup, or with those of a table at a moment
    names                     the ARNs of backups, and what they name
    backup_description        a backup as answers show it, and a table as a backup stores it
    recovery                  the moments that a table can be restored to
    overrides                 which settings a restored table takes from its source or from the request
"""
