"""Recordings of a load: the requests that a server answered, with their times, outcomes and costs, in a file.

    lines    the form of a recording, and what is known of a request
    reader   reads a recording; needs nothing but this package
    blocks   compressed blocks of bytes
"""
