"""Backups: a table's items as of a moment, in files that any tool can read.

    backuper   the backups of one database, as the database holds them
    stored     what is stored of a backup
    source     the table that is being read, and the hold on its history
    files      the folder of a backup: the manifest, the checksums, the files of items
    writing    a backup that is being written
    reading    a backup that a table is restored from
    work       the background work: writing, restoring, deleting, and finding folders from elsewhere

Backups live outside the store, in the directory that `Settings.backup_dir` names.
"""
