"""The members of an UpdateTable about replicas: ReplicaUpdates and GlobalTableWitnessUpdates."""

from typing import Final

from hashrange.shapes.members import INDEX_NAME, POSITIVE_LONG
from hashrange.shapes.table_parts import TABLE_CLASS
from hashrange.shapes.vocabulary import LONG, TEXT, List, Members, Structure, enum, required

_UNITS: Final = Structure("ProvisionedThroughputOverride", {"ReadCapacityUnits": POSITIVE_LONG})
_CEILINGS: Final = Structure("OnDemandThroughputOverride", {"MaxReadRequestUnits": LONG})
_INDEX: Final = Structure(
    "ReplicaGlobalSecondaryIndex",
    {
        "IndexName": required(INDEX_NAME),
        "ProvisionedThroughputOverride": _UNITS,
        "OnDemandThroughputOverride": _CEILINGS,
    },
)
_MEMBER: Final[Members] = {
    "RegionName": required(TEXT),
    "KMSMasterKeyId": TEXT,
    "ProvisionedThroughputOverride": _UNITS,
    "OnDemandThroughputOverride": _CEILINGS,
    "GlobalSecondaryIndexes": List(_INDEX, 1),
    "TableClassOverride": TABLE_CLASS,
}
_REGION: Final[Members] = {"RegionName": required(TEXT)}
_MODE: Final[Members] = {"DisassociationMode": required(enum("WAIT_FOR_REPLICATION"))}

REPLICATION_GROUP_UPDATE: Final = Structure(
    "ReplicationGroupUpdate",
    {
        "Create": Structure("CreateReplicationGroupMemberAction", _MEMBER),
        "Update": Structure("UpdateReplicationGroupMemberAction", _MEMBER),
        "Delete": Structure("DeleteReplicationGroupMemberAction", _REGION),
        "Disassociate": Structure("DisassociateReplicationGroupMemberAction", _REGION | _MODE),
    },
)
GLOBAL_TABLE_WITNESS_GROUP_UPDATE: Final = Structure(
    "GlobalTableWitnessGroupUpdate",
    {
        "Create": Structure("CreateGlobalTableWitnessGroupMemberAction", _REGION),
        "Delete": Structure("DeleteGlobalTableWitnessGroupMemberAction", _REGION),
    },
)
