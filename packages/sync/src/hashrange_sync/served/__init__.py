"""What the server of the edge tells about the pairs whose states are in its tables.

    reading  statuses and conflicts, and how an image is brought back
    admin    the same on the admin plane

A sync is a client in a process of its own, so a server knows what that process has stored.
"""
