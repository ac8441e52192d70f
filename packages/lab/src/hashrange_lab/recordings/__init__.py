"""Recordings of a load: the requests that a server answered, with their times, outcomes and costs, in a file.

    lines      the form of a recording, and what is known of a request
    reader     reads a recording; needs only `lines` and `blocks`
    blocks     compressed blocks of bytes
    writer     writes a recording, on a thread of its own
    recording  observes the requests of a database
    hashing    requests without the values of their items
    digests    compares answers
"""

from typing import Final

BYTES_MAX: Final = 1024**3
"""The size at which a recording ends, if nobody says another."""
