"""`hashrange sync`.

    sync       the command
    following  `hashrange pull --follow`
    shown      statuses, conflicts and comparisons as people read them
    serving    the metrics of a running sync, over HTTP

All that these commands do, programs can do by `hashrange_sync.Sync`.
"""
