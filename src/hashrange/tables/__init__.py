"""Tables over the storage contract: every change of an item and every ordered read passes through here.

    inspection   reports on a whole store: the integrity checker, the tables' sizes and states
    jobs         work that somebody asked for and that takes long: exports, imports, bulk operations, backups;
                 deliveries to Kinesis
    background   work that is due by time: the sweep, and the units in which it does all work
    writes       what every write of an item does: `applying.apply` is the only way an item changes
    reads        `ranges.read_page` is the only ordered read
    history      what each item was before each change, while somebody needs a table's past
    items        an item in its stored form: key, record, index entries, vectors; a change of it; its cost
    definitions  what is defined: tables, their indexes, states and replicas; the catalog of all tables
    streams      the change log of a table: its streams, their shards, and the records in them
    bites        how much background work is done in a transaction
    spaces       the spaces that every store has

Each imports only what is below it (pyproject.toml). Knows nothing of expressions, request shapes or sockets:
conditions and updates arrive as functions.
"""
