"""What a table is, and the two funnels that everything goes through.

    definitions  a table's definition, the catalog of all of them, their states, their replicas
    data         keys, records, index entries: `items.apply` changes items, `ranges.read_page` reads pages
    background   queues by time, builds, and the sweeps that do what is due
    streams      a table's changes, and the logs that keep them
    spaces       the spaces that every store has
    inspection   the integrity checker, and what operators see

Knows nothing of expressions, request shapes or sockets: conditions and updates arrive as functions.
"""
