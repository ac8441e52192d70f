"""Tables over the storage contract: every change of an item and every ordered read passes through here.

    definitions  a table's definition, the catalog of all definitions, their states, their replicas
    data         keys, records, index entries: `items.apply` changes items, `ranges.read_page` reads pages
    background   queues by time, builds, and the sweeps that do the background work
    history      what each item was before each change, while somebody needs a table's past
    exports      what a table was, or what changed, as objects of a bucket
    backups      a table's items as of a moment, in files
    bulk         many items at once into an existing table, from the objects of a bucket
    deliveries   a table's changes, sent to a Kinesis data stream
    imports      tables that are made of the objects of a bucket
    streams      a table's changes, and the logs that keep them
    spaces       the spaces that every store has
    inspection   the integrity checker, and the tables' sizes and states for operators

Knows nothing of expressions, request shapes or sockets: conditions and updates arrive as functions.
"""
