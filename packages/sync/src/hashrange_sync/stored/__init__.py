"""What a pair keeps, in tables of the edge.

    table      the state of each item, how far the streams were read, and the transactions that write both
    journal    the writes that are under way outside of such a transaction
    conflicts  what lost
    status     what is known of a pair

Refuses to know why something is stored.
"""
