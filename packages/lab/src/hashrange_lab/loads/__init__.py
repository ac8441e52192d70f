"""Loads on a server, from the side of its clients: a recorded one again, or one of a named mix.

    sending    connections to an endpoint: asyncio, HTTP/1.1, Signature Version 4
    running    runs a load until it ends or somebody interrupts it
    latencies  how long requests took, in little memory
    replay     sends the requests of a recording, and compares the answers
    renaming   requests for tables of other names
    mixes      which requests a mix makes, for which keys
    items      the items of a load, and whether an answer can be true
    making     makes the load of a mix

The commands are `hashrange replay` and `hashrange load`. They know a server only by its endpoint.
"""
