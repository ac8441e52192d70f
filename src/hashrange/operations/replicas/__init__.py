"""The members of a global table: how UpdateTable and DeleteTable make, change and remove them.

    replica_requests      reads ReplicaUpdates and the related members of an UpdateTable
    replica_changes       makes these changes
    replica_auto_scaling  the operations that describe and change the auto scaling of a global table
    legacy_global_tables  the operations for version 2017.11.29, which the service does not support any more
"""
