"""Requests of the control plane: tables, time to live, limits, tags."""

from typing import Final

from hashrange import limits
from hashrange.shapes.members import (
    INDEX_NAME,
    KEY_ATTRIBUTE_NAME,
    OWN_TABLE_ARN,
    RESOURCE_ARN,
    TABLE_ARN,
    TABLE_NAME,
    TAG,
    TAG_KEY,
)
from hashrange.shapes.replicas import GLOBAL_TABLE_WITNESS_GROUP_UPDATE, REPLICATION_GROUP_UPDATE
from hashrange.shapes.table_parts import (
    ATTRIBUTE_DEFINITIONS,
    BILLING_MODE,
    CHOSEN_TABLE_CLASS,
    GLOBAL_SECONDARY_INDEX,
    GLOBAL_SECONDARY_INDEX_LIST,
    INDEX_THROUGHPUT,
    KEY_SCHEMA,
    LOCAL_SECONDARY_INDEX_LIST,
    ON_DEMAND_THROUGHPUT,
    PROVISIONED_THROUGHPUT,
    SSE_SPECIFICATION,
    VECTOR_INDEX,
    VECTOR_INDEX_LIST,
    WARM_THROUGHPUT,
)
from hashrange.shapes.vocabulary import (
    BOOLEAN,
    TEXT,
    List,
    Members,
    String,
    Structure,
    enum,
    integer,
    requests,
    required,
)

STREAM_SPECIFICATION: Final = Structure(
    "StreamSpecification",
    {
        "StreamEnabled": required(BOOLEAN),
        "StreamViewType": enum("NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY"),
    },
)
GLOBAL_TABLE_SETTINGS_REPLICATION_MODE: Final = enum("ENABLED", "DISABLED", "ENABLED_WITH_OVERRIDES")
_INDEX: Final[Members] = {"IndexName": required(INDEX_NAME)}
GLOBAL_SECONDARY_INDEX_UPDATE: Final = Structure(
    "GlobalSecondaryIndexUpdate",
    {
        "Update": Structure("UpdateGlobalSecondaryIndexAction", _INDEX | INDEX_THROUGHPUT),
        "Create": Structure("CreateGlobalSecondaryIndexAction", GLOBAL_SECONDARY_INDEX),
        "Delete": Structure("DeleteGlobalSecondaryIndexAction", _INDEX),
    },
)
VECTOR_INDEX_UPDATE: Final = Structure(
    "VectorIndexUpdate",
    {
        "Create": Structure("CreateVectorIndexAction", VECTOR_INDEX),
        "Delete": Structure("DeleteVectorIndexAction", _INDEX),
    },
)
TIME_TO_LIVE_SPECIFICATION: Final = Structure(
    "TimeToLiveSpecification",
    {
        # [report] ack-api-quirks DDB-TABLE-457 for the order
        "AttributeName": required(KEY_ATTRIBUTE_NAME),
        "Enabled": required(BOOLEAN),
    },
)
_REVISION: Final = String(minimum=1, maximum=255)

OPERATIONS: Final = requests(
    {
        "CreateTable": {
            # In the model these two are optional for a replica in another account, which cannot exist here.
            "AttributeDefinitions": required(ATTRIBUTE_DEFINITIONS),
            "TableName": required(OWN_TABLE_ARN),
            "KeySchema": required(KEY_SCHEMA),
            "LocalSecondaryIndexes": LOCAL_SECONDARY_INDEX_LIST,
            "GlobalSecondaryIndexes": GLOBAL_SECONDARY_INDEX_LIST,
            "BillingMode": BILLING_MODE,
            "TableThroughputMode": BILLING_MODE,
            "ProvisionedThroughput": PROVISIONED_THROUGHPUT,
            "StreamSpecification": STREAM_SPECIFICATION,
            "SSESpecification": SSE_SPECIFICATION,
            "Tags": List(TAG),
            "TableClass": CHOSEN_TABLE_CLASS,
            "DeletionProtectionEnabled": BOOLEAN,
            "WarmThroughput": WARM_THROUGHPUT,
            "ResourcePolicy": TEXT,
            "OnDemandThroughput": ON_DEMAND_THROUGHPUT,
            "GlobalTableSourceArn": TABLE_ARN,
            "GlobalTableSettingsReplicationMode": GLOBAL_TABLE_SETTINGS_REPLICATION_MODE,
            "VectorIndexes": VECTOR_INDEX_LIST,
        },
        "DescribeTable": {"TableName": required(OWN_TABLE_ARN)},
        "ListTables": {
            "ExclusiveStartTableName": TABLE_NAME,
            "Limit": integer(1, limits.LIST_TABLES_MAX),
        },
        "DeleteTable": {"TableName": required(OWN_TABLE_ARN)},
        "UpdateTable": {
            "AttributeDefinitions": ATTRIBUTE_DEFINITIONS,
            "TableName": required(OWN_TABLE_ARN),
            "BillingMode": BILLING_MODE,
            "TableThroughputMode": BILLING_MODE,
            "ProvisionedThroughput": PROVISIONED_THROUGHPUT,
            "GlobalSecondaryIndexUpdates": List(GLOBAL_SECONDARY_INDEX_UPDATE),
            "StreamSpecification": STREAM_SPECIFICATION,
            "SSESpecification": SSE_SPECIFICATION,
            "ReplicaUpdates": List(REPLICATION_GROUP_UPDATE, 1),
            "TableClass": CHOSEN_TABLE_CLASS,
            "DeletionProtectionEnabled": BOOLEAN,
            "MultiRegionConsistency": enum("EVENTUAL", "STRONG"),
            "GlobalTableWitnessUpdates": List(GLOBAL_TABLE_WITNESS_GROUP_UPDATE, 1, 1),
            "OnDemandThroughput": ON_DEMAND_THROUGHPUT,
            "WarmThroughput": WARM_THROUGHPUT,
            "GlobalTableSettingsReplicationMode": GLOBAL_TABLE_SETTINGS_REPLICATION_MODE,
            "DisassociationProtectionEnabled": BOOLEAN,
            "VectorIndexUpdates": List(VECTOR_INDEX_UPDATE),
        },
        "UpdateTimeToLive": {
            "TableName": required(OWN_TABLE_ARN),
            "TimeToLiveSpecification": required(TIME_TO_LIVE_SPECIFICATION),
        },
        "DescribeTimeToLive": {"TableName": required(OWN_TABLE_ARN)},
        "DescribeLimits": {},
        "TagResource": {
            "ResourceArn": required(RESOURCE_ARN),
            "Tags": required(List(TAG)),
        },
        "UntagResource": {
            "ResourceArn": required(RESOURCE_ARN),
            "TagKeys": required(List(TAG_KEY)),
        },
        "ListTagsOfResource": {
            "ResourceArn": required(RESOURCE_ARN),
            "NextToken": TEXT,
        },
        "PutResourcePolicy": {
            "ResourceArn": required(RESOURCE_ARN),
            "Policy": required(TEXT),
            "ExpectedRevisionId": _REVISION,
            "ConfirmRemoveSelfResourceAccess": BOOLEAN,
        },
        "GetResourcePolicy": {"ResourceArn": required(RESOURCE_ARN)},
        "DeleteResourcePolicy": {"ResourceArn": required(RESOURCE_ARN), "ExpectedRevisionId": _REVISION},
    }
) | {"DescribeEndpoints": Structure("DescribeEndpointsRequest", {})}
