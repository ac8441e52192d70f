"""The members of an UpdateTable about replicas: ReplicaUpdates and GlobalTableWitnessUpdates."""

from typing import Final

from hashrange.shapes.members import INDEX_NAME, POSITIVE_LONG
from hashrange.shapes.table_parts import TABLE_CLASS
from hashrange.shapes.vocabulary import LONG, TEXT, List, Structure, enum, required

PROVISIONED_THROUGHPUT_OVERRIDE: Final = Structure(
    "ProvisionedThroughputOverride",
    {
        "ReadCapacityUnits": POSITIVE_LONG,
    },
)

ON_DEMAND_THROUGHPUT_OVERRIDE: Final = Structure("OnDemandThroughputOverride", {"MaxReadRequestUnits": LONG})
REPLICA_GLOBAL_SECONDARY_INDEX: Final = Structure(
    "ReplicaGlobalSecondaryIndex",
    {
        "IndexName": required(INDEX_NAME),
        "ProvisionedThroughputOverride": PROVISIONED_THROUGHPUT_OVERRIDE,
        "OnDemandThroughputOverride": ON_DEMAND_THROUGHPUT_OVERRIDE,
    },
)

REPLICA_GLOBAL_SECONDARY_INDEX_LIST: Final = List(REPLICA_GLOBAL_SECONDARY_INDEX, 1)
CREATE_REPLICATION_GROUP_MEMBER_ACTION: Final = Structure(
    "CreateReplicationGroupMemberAction",
    {
        "RegionName": required(TEXT),
        "KMSMasterKeyId": TEXT,
        "ProvisionedThroughputOverride": PROVISIONED_THROUGHPUT_OVERRIDE,
        "OnDemandThroughputOverride": ON_DEMAND_THROUGHPUT_OVERRIDE,
        "GlobalSecondaryIndexes": REPLICA_GLOBAL_SECONDARY_INDEX_LIST,
        "TableClassOverride": TABLE_CLASS,
    },
)

UPDATE_REPLICATION_GROUP_MEMBER_ACTION: Final = Structure(
    "UpdateReplicationGroupMemberAction",
    {
        "RegionName": required(TEXT),
        "KMSMasterKeyId": TEXT,
        "ProvisionedThroughputOverride": PROVISIONED_THROUGHPUT_OVERRIDE,
        "OnDemandThroughputOverride": ON_DEMAND_THROUGHPUT_OVERRIDE,
        "GlobalSecondaryIndexes": REPLICA_GLOBAL_SECONDARY_INDEX_LIST,
        "TableClassOverride": TABLE_CLASS,
    },
)

DELETE_REPLICATION_GROUP_MEMBER_ACTION: Final = Structure(
    "DeleteReplicationGroupMemberAction",
    {
        "RegionName": required(TEXT),
    },
)

DISASSOCIATE_REPLICATION_GROUP_MEMBER_ACTION: Final = Structure(
    "DisassociateReplicationGroupMemberAction",
    {
        "RegionName": required(TEXT),
        "DisassociationMode": required(enum("WAIT_FOR_REPLICATION")),
    },
)

REPLICATION_GROUP_UPDATE: Final = Structure(
    "ReplicationGroupUpdate",
    {
        "Create": CREATE_REPLICATION_GROUP_MEMBER_ACTION,
        "Update": UPDATE_REPLICATION_GROUP_MEMBER_ACTION,
        "Delete": DELETE_REPLICATION_GROUP_MEMBER_ACTION,
        "Disassociate": DISASSOCIATE_REPLICATION_GROUP_MEMBER_ACTION,
    },
)

CREATE_GLOBAL_TABLE_WITNESS_GROUP_MEMBER_ACTION: Final = Structure(
    "CreateGlobalTableWitnessGroupMemberAction",
    {
        "RegionName": required(TEXT),
    },
)

DELETE_GLOBAL_TABLE_WITNESS_GROUP_MEMBER_ACTION: Final = Structure(
    "DeleteGlobalTableWitnessGroupMemberAction",
    {
        "RegionName": required(TEXT),
    },
)

GLOBAL_TABLE_WITNESS_GROUP_UPDATE: Final = Structure(
    "GlobalTableWitnessGroupUpdate",
    {
        "Create": CREATE_GLOBAL_TABLE_WITNESS_GROUP_MEMBER_ACTION,
        "Delete": DELETE_GLOBAL_TABLE_WITNESS_GROUP_MEMBER_ACTION,
    },
)
