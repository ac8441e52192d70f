"""Operations on global tables. UpdateTable changes the members of a global table (`tables.replica_changes`).

    replica_auto_scaling  the operations that describe and change the auto scaling of a global table
    legacy_global_tables  the operations for version 2017.11.29, which the service does not support any more
"""
