"""Backups: a table's items as of a moment, in files that any tool can read.

    backup_records  what is stored of a backup
    files           the folder of a backup: the manifest, the checksums, the files of items
    backup_writer   a backup that is being written
    backup_reader   a backup from which a table is restored
    backup_runner   the background work: writing, restoring, deleting, and finding folders from elsewhere

Backups live outside the store, in the directory that `Settings.backup_dir` names.
"""
