"""Operations on tables as a whole: made, described, changed, deleted; tags, time to live.

    definition            the rules of a table's and an index's definition
    description           what answers show of a table
    throughput            provisioned units, ceilings, warm throughput
    index_changes         GlobalSecondaryIndexUpdates of an UpdateTable
    stream_changes        StreamSpecification of CreateTable and UpdateTable
    update_combinations   which changes of an UpdateTable may share a request
"""
