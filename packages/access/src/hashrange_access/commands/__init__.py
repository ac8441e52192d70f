"""The parts of the command line that concern access.

    serving   the gate of a server, from its options
    watching  watches over the users file, and over the keys of a shared store
    key       `hashrange key`: the access keys in the store of a server
    policy    `hashrange policy`: examine policies without a server
    audit     `hashrange audit`: check the log of who did what
"""
