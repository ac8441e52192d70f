"""A standby: a server over a copy of the primary's store, which it makes of what the primary ships.

    opening      a directory for a standby: a new restore, or its own from before
    following    applies segments to the open store, and makes it the primary
    refusing     refuses what only the primary may answer
    telling      one small object by which people see the standby from elsewhere
    admin        `POST /v1/promote`
    command      `hashrange standby`

Each second: look at the lease, list the segments behind the standby's position, apply them. The position is
stored with the batches, so a standby that was killed goes on where its store is.

Refuses to know: what records mean.
"""
