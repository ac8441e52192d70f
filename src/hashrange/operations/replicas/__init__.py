"""The members of a global table: how UpdateTable and DeleteTable make, change and remove them.

    replica_requests  reads ReplicaUpdates and the related members of an UpdateTable
    replica_changes   makes these changes
"""
