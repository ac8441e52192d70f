"""Operations that create, describe, change and delete tables; tags, time to live.

    definition            the rules of a table's and an index's definition
    table_description     DescribeTable, and the TableDescription of other answers
    throughput            provisioned units, on-demand maximums, warm throughput
    index_changes         GlobalSecondaryIndexUpdates of an UpdateTable
    vector_definitions    the rules of a vector index's definition
    vector_changes        VectorIndexUpdates of an UpdateTable
    stream_changes        StreamSpecification of CreateTable and UpdateTable
    replica_requests      reads ReplicaUpdates and the related members of an UpdateTable
    replica_changes       makes these changes; what DeleteTable removes of a global table
    tags, time_to_live    the operations on these
    account_limits        how many tables an account may have
    update_combinations   which changes of an UpdateTable may share a request
"""
