"""The parts of a table's definition, which several operations on tables share."""

from typing import Final

from hashrange.shapes.members import ATTRIBUTE_NAME, INDEX_NAME, KEY_ATTRIBUTE_NAME, POSITIVE_LONG
from hashrange.shapes.vocabulary import BOOLEAN, LONG, TEXT, List, Members, Number, Structure, enum, required

ATTRIBUTE_DEFINITION: Final = Structure(
    "AttributeDefinition",
    {
        # [report] ack-api-quirks DDB-TABLE-457 for the order
        "AttributeType": required(enum("S", "N", "B")),
        "AttributeName": required(KEY_ATTRIBUTE_NAME),
    },
)

ATTRIBUTE_DEFINITIONS: Final = List(ATTRIBUTE_DEFINITION)
KEY_SCHEMA_ELEMENT: Final = Structure(
    "KeySchemaElement",
    {"AttributeName": required(KEY_ATTRIBUTE_NAME), "KeyType": required(enum("HASH", "RANGE"))},
)

# For a table and its local indexes. The API model has no maximum, because a global index may have up to 4 + 4
# elements, which are counted later. [report] ack-api-quirks DDB-TABLE-123
KEY_SCHEMA: Final = List(KEY_SCHEMA_ELEMENT, 1, 2)
INDEX_KEY_SCHEMA: Final = List(KEY_SCHEMA_ELEMENT, 1)
PROJECTION: Final = Structure(
    "Projection",
    {
        "ProjectionType": enum("ALL", "KEYS_ONLY", "INCLUDE"),
        "NonKeyAttributes": List(KEY_ATTRIBUTE_NAME, 1, 20),
    },
)

LOCAL_SECONDARY_INDEX: Final = Structure(
    "LocalSecondaryIndex",
    {
        "IndexName": required(INDEX_NAME),
        "KeySchema": required(KEY_SCHEMA),
        "Projection": required(PROJECTION),
    },
)

LOCAL_SECONDARY_INDEX_LIST: Final = List(LOCAL_SECONDARY_INDEX)
PROVISIONED_THROUGHPUT: Final = Structure(
    "ProvisionedThroughput",
    {
        # Violations of writes are reported before those of reads. [report] ack-api-quirks DDB-TABLE-038
        "WriteCapacityUnits": required(POSITIVE_LONG),
        "ReadCapacityUnits": required(POSITIVE_LONG),
    },
)

ON_DEMAND_THROUGHPUT: Final = Structure(
    "OnDemandThroughput", {"MaxReadRequestUnits": LONG, "MaxWriteRequestUnits": LONG}
)
WARM_THROUGHPUT: Final = Structure(
    "WarmThroughput", {"ReadUnitsPerSecond": LONG, "WriteUnitsPerSecond": LONG}
)
INDEX_THROUGHPUT: Final[Members] = {
    "ProvisionedThroughput": PROVISIONED_THROUGHPUT,
    "OnDemandThroughput": ON_DEMAND_THROUGHPUT,
    "WarmThroughput": WARM_THROUGHPUT,
}
GLOBAL_SECONDARY_INDEX: Final[Members] = {
    "IndexName": required(INDEX_NAME),
    "KeySchema": required(INDEX_KEY_SCHEMA),
    "Projection": required(PROJECTION),
    **INDEX_THROUGHPUT,
}
GLOBAL_SECONDARY_INDEX_LIST: Final = List(Structure("GlobalSecondaryIndex", GLOBAL_SECONDARY_INDEX))
BILLING_MODE: Final = enum("PROVISIONED", "PAY_PER_REQUEST")
SSE_SPECIFICATION: Final = Structure(
    "SSESpecification",
    {"Enabled": BOOLEAN, "SSEType": enum("AES256", "KMS"), "KMSMasterKeyId": TEXT},
)
TABLE_CLASS: Final = enum("STANDARD", "STANDARD_INFREQUENT_ACCESS")
# The class of a table itself is checked later. [report] ack-api-quirks DDB-TABLE-442
CHOSEN_TABLE_CLASS: Final = TEXT
VECTOR_ATTRIBUTE_DEFINITION: Final = Structure(
    "VectorAttributeDefinition", {"AttributeName": required(KEY_ATTRIBUTE_NAME)}
)
SEARCH_SCHEMA_ELEMENT: Final = Structure(
    "SearchSchemaElement",
    {
        "AttributeName": required(ATTRIBUTE_NAME),
        "SearchSchemaElementType": required(enum("HASH", "INLINE_FILTER")),
    },
)
# An empty list is the same as none. [report] extenddb, against the API reference
SEARCH_SCHEMA: Final = List(SEARCH_SCHEMA_ELEMENT)
# 3.5 dimensions are 3. [report] dynoxide's captures of August 2026
DIMENSIONS: Final = Number("Long", 1, cuts=True)
VECTOR_INDEX: Final[Members] = {
    "IndexName": required(INDEX_NAME),
    "VectorAttribute": required(VECTOR_ATTRIBUTE_DEFINITION),
    "SearchSchema": SEARCH_SCHEMA,
    "Projection": required(PROJECTION),
    "Dimensions": required(DIMENSIONS),
    "DistanceFunction": required(enum("COSINE", "DOT_PRODUCT", "EUCLIDEAN")),
}
VECTOR_INDEX_LIST: Final = List(Structure("VectorIndex", VECTOR_INDEX))
