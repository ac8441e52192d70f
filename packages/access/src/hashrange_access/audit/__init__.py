"""The audit log: who did what, as lines of JSON.

    entries  what the log says of a request: who, what, the decision, the result
    log      writes the lines on a thread, in batches, to a file that is rotated

The log never has a value of an item, nor a secret. Of a key it has the hash.
"""
