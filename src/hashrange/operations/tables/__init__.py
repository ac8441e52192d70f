"""Operations that create, describe, change and delete tables; tags, time to live.

    definition            the rules of a table's and an index's definition
    description           the TableDescription of answers
    throughput            provisioned units, on-demand maximums, warm throughput
    index_changes         GlobalSecondaryIndexUpdates of an UpdateTable
    stream_changes        StreamSpecification of CreateTable and UpdateTable
    update_combinations   which changes of an UpdateTable may share a request
"""
