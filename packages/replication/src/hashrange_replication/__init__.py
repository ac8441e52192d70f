"""A copy of a data directory in a bucket: what it takes to lose a machine and not its data.

    running      a server that ships: its lease, its shipper, its bases, its threads
    shipper      the follower of commits, and segments of what it was told
    spool        segments that wait on disk for the bucket
    bases        checkpoints, of which only new files are shipped
    lease        who ships: one object of the bucket, and its epochs
    guard        refuses strongly consistent reads without the lease
    retention    deletes what no kept base needs
    state        what a data directory knows of its copy
    restore      a data directory, from a copy
    verify       whether all of a copy is there and sound
    drill        restores, checks, and takes digests
    status       what a copy says of itself
    costs        what a copy costs
    chain        which objects follow each other
    format       what objects hold
    place        where a copy is
    failures     the errors
    standby      follows a copy, and becomes the primary
    commands     `hashrange replica`
    progress     what commands say of a restore
    serving      the options of `hashrange serve`, health and metrics
    ring         what the package adds to Hashrange

The path of a commit:

      engine: batch is durable ─> Shipper.committed ─> queue ─> segment ─> spool ─> bucket
                  │                      │ with --copy-ack: waits for the bucket
                  └─ visible, outcomes <─┘ or refused, because the lease has run out

What is in the bucket:

      base  epoch 1 ─> segment 1/1 ─> 1/2 ─> 1/3 ─────────> 3/4 ─> 3/5     epoch 3 continues epoch 1
                                        base  epoch 1 ──^      ╲
                                                               1/4 does not count: its owner was overtaken
      base  epoch 4 ─> segment 4/6 ─> …                                    epoch 4 has begun again

A restore takes the newest base before the wanted moment, and follows the chain from there (`chain`).

Refuses to know: what records mean.
"""
