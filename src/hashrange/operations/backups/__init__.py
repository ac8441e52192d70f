"""Operations on the past of tables.

    continuous_backups        switch point-in-time recovery on and off, and describe it
    create_backup             begin a backup of a table
    list_backups              the backups by time, those of deleted tables included
    delete_backup             remove a backup
    restore_from_backup       a new table with the items of a backup
    restore_to_point_in_time  a new table with the items that a table had at a moment
    names                     the ARNs of backups, and what they name
    backup_description        a backup as answers show it, and a table as a backup stores it
    targets                   the name of the new table
    recovery                  the moments that a table can be restored to
    overrides                 which settings a restored table takes from its source or from the request
"""
