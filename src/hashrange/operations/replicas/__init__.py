"""The members of a global table: how UpdateTable and DeleteTable make, change and remove them.

    replica_requests   what an UpdateTable asks of them: ReplicaUpdates, and what goes with it
    replica_changes    how that is done
"""
