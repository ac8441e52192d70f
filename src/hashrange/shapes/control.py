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
    DIMENSIONS,
    GLOBAL_SECONDARY_INDEX_LIST,
    INDEX_KEY_SCHEMA,
    KEY_SCHEMA,
    LOCAL_SECONDARY_INDEX_LIST,
    ON_DEMAND_THROUGHPUT,
    PROJECTION,
    PROVISIONED_THROUGHPUT,
    SEARCH_SCHEMA,
    SSE_SPECIFICATION,
    VECTOR_ATTRIBUTE_DEFINITION,
    VECTOR_DISTANCE_FUNCTION,
    VECTOR_INDEX_LIST,
    WARM_THROUGHPUT,
)
from hashrange.shapes.vocabulary import BOOLEAN, TEXT, List, String, Structure, enum, integer, required

STREAM_VIEW_TYPE: Final = enum("NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY")
STREAM_SPECIFICATION: Final = Structure(
    "StreamSpecification",
    {
        "StreamEnabled": required(BOOLEAN),
        "StreamViewType": STREAM_VIEW_TYPE,
    },
)

TAG_LIST: Final = List(TAG)
GLOBAL_TABLE_SETTINGS_REPLICATION_MODE: Final = enum("ENABLED", "DISABLED", "ENABLED_WITH_OVERRIDES")
CREATE_TABLE: Final = Structure(
    "CreateTableInput",
    {
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
        "Tags": TAG_LIST,
        "TableClass": CHOSEN_TABLE_CLASS,
        "DeletionProtectionEnabled": BOOLEAN,
        "WarmThroughput": WARM_THROUGHPUT,
        "ResourcePolicy": TEXT,
        "OnDemandThroughput": ON_DEMAND_THROUGHPUT,
        "GlobalTableSourceArn": TABLE_ARN,
        "GlobalTableSettingsReplicationMode": GLOBAL_TABLE_SETTINGS_REPLICATION_MODE,
        "VectorIndexes": VECTOR_INDEX_LIST,
    },
)

DESCRIBE_TABLE: Final = Structure("DescribeTableInput", {"TableName": required(OWN_TABLE_ARN)})
LIST_TABLES: Final = Structure(
    "ListTablesInput",
    {
        "ExclusiveStartTableName": TABLE_NAME,
        "Limit": integer(1, limits.LIST_TABLES_MAX),
    },
)

DELETE_TABLE: Final = Structure("DeleteTableInput", {"TableName": required(OWN_TABLE_ARN)})
UPDATE_GLOBAL_SECONDARY_INDEX_ACTION: Final = Structure(
    "UpdateGlobalSecondaryIndexAction",
    {
        "IndexName": required(INDEX_NAME),
        "ProvisionedThroughput": PROVISIONED_THROUGHPUT,
        "OnDemandThroughput": ON_DEMAND_THROUGHPUT,
        "WarmThroughput": WARM_THROUGHPUT,
    },
)

CREATE_GLOBAL_SECONDARY_INDEX_ACTION: Final = Structure(
    "CreateGlobalSecondaryIndexAction",
    {
        "IndexName": required(INDEX_NAME),
        "KeySchema": required(INDEX_KEY_SCHEMA),
        "Projection": required(PROJECTION),
        "ProvisionedThroughput": PROVISIONED_THROUGHPUT,
        "OnDemandThroughput": ON_DEMAND_THROUGHPUT,
        "WarmThroughput": WARM_THROUGHPUT,
    },
)

DELETE_GLOBAL_SECONDARY_INDEX_ACTION: Final = Structure(
    "DeleteGlobalSecondaryIndexAction",
    {
        "IndexName": required(INDEX_NAME),
    },
)

GLOBAL_SECONDARY_INDEX_UPDATE: Final = Structure(
    "GlobalSecondaryIndexUpdate",
    {
        "Update": UPDATE_GLOBAL_SECONDARY_INDEX_ACTION,
        "Create": CREATE_GLOBAL_SECONDARY_INDEX_ACTION,
        "Delete": DELETE_GLOBAL_SECONDARY_INDEX_ACTION,
    },
)

CREATE_VECTOR_INDEX_ACTION: Final = Structure(
    "CreateVectorIndexAction",
    {
        "IndexName": required(INDEX_NAME),
        "VectorAttribute": required(VECTOR_ATTRIBUTE_DEFINITION),
        "SearchSchema": SEARCH_SCHEMA,
        "Projection": required(PROJECTION),
        "Dimensions": required(DIMENSIONS),
        "DistanceFunction": required(VECTOR_DISTANCE_FUNCTION),
    },
)

DELETE_VECTOR_INDEX_ACTION: Final = Structure("DeleteVectorIndexAction", {"IndexName": required(INDEX_NAME)})
VECTOR_INDEX_UPDATE: Final = Structure(
    "VectorIndexUpdate",
    {
        "Create": CREATE_VECTOR_INDEX_ACTION,
        "Delete": DELETE_VECTOR_INDEX_ACTION,
    },
)

UPDATE_TABLE: Final = Structure(
    "UpdateTableInput",
    {
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
)

TIME_TO_LIVE_SPECIFICATION: Final = Structure(
    "TimeToLiveSpecification",
    {
        # [report] ack-api-quirks DDB-TABLE-457 for the order
        "AttributeName": required(KEY_ATTRIBUTE_NAME),
        "Enabled": required(BOOLEAN),
    },
)

UPDATE_TIME_TO_LIVE: Final = Structure(
    "UpdateTimeToLiveInput",
    {
        "TableName": required(OWN_TABLE_ARN),
        "TimeToLiveSpecification": required(TIME_TO_LIVE_SPECIFICATION),
    },
)

DESCRIBE_TIME_TO_LIVE: Final = Structure("DescribeTimeToLiveInput", {"TableName": required(OWN_TABLE_ARN)})
DESCRIBE_ENDPOINTS: Final = Structure("DescribeEndpointsRequest", {})
DESCRIBE_LIMITS: Final = Structure("DescribeLimitsInput", {})
TAG_RESOURCE: Final = Structure(
    "TagResourceInput",
    {
        "ResourceArn": required(RESOURCE_ARN),
        "Tags": required(TAG_LIST),
    },
)

UNTAG_RESOURCE: Final = Structure(
    "UntagResourceInput",
    {
        "ResourceArn": required(RESOURCE_ARN),
        "TagKeys": required(List(TAG_KEY)),
    },
)

LIST_TAGS_OF_RESOURCE: Final = Structure(
    "ListTagsOfResourceInput",
    {
        "ResourceArn": required(RESOURCE_ARN),
        "NextToken": TEXT,
    },
)

_REVISION: Final = String(minimum=1, maximum=255)
PUT_RESOURCE_POLICY: Final = Structure(
    "PutResourcePolicyInput",
    {
        "ResourceArn": required(RESOURCE_ARN),
        "Policy": required(TEXT),
        "ExpectedRevisionId": _REVISION,
        "ConfirmRemoveSelfResourceAccess": BOOLEAN,
    },
)
GET_RESOURCE_POLICY: Final = Structure("GetResourcePolicyInput", {"ResourceArn": required(RESOURCE_ARN)})
DELETE_RESOURCE_POLICY: Final = Structure(
    "DeleteResourcePolicyInput",
    {"ResourceArn": required(RESOURCE_ARN), "ExpectedRevisionId": _REVISION},
)

OPERATIONS: Final = {
    "CreateTable": CREATE_TABLE,
    "DescribeTable": DESCRIBE_TABLE,
    "ListTables": LIST_TABLES,
    "DeleteTable": DELETE_TABLE,
    "UpdateTable": UPDATE_TABLE,
    "UpdateTimeToLive": UPDATE_TIME_TO_LIVE,
    "DescribeTimeToLive": DESCRIBE_TIME_TO_LIVE,
    "DescribeEndpoints": DESCRIBE_ENDPOINTS,
    "DescribeLimits": DESCRIBE_LIMITS,
    "TagResource": TAG_RESOURCE,
    "UntagResource": UNTAG_RESOURCE,
    "ListTagsOfResource": LIST_TAGS_OF_RESOURCE,
    "PutResourcePolicy": PUT_RESOURCE_POLICY,
    "GetResourcePolicy": GET_RESOURCE_POLICY,
    "DeleteResourcePolicy": DELETE_RESOURCE_POLICY,
}
