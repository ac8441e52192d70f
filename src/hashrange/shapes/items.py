"""Requests of the data plane: one item, ranges, batches and transactions."""

from typing import Final

import msgspec

from hashrange import limits
from hashrange.shapes.members import (
    ATTRIBUTE_NAMES,
    ATTRIBUTE_VALUES,
    CLIENT_REQUEST_TOKEN,
    EXPRESSION_NAMES,
    EXPRESSION_VALUES,
    INDEX_NAME,
    ITEM,
    KEY,
    POSITIVE_INTEGER,
    RETURN_CONSUMED_CAPACITY,
    RETURN_ITEM_COLLECTION_METRICS,
    RETURN_VALUES,
    RETURN_VALUES_ON_FAILURE,
    TABLE_ARN,
)
from hashrange.shapes.vocabulary import (
    ATTRIBUTE_VALUE,
    BOOLEAN,
    TEXT,
    List,
    Map,
    Structure,
    enum,
    integer,
    required,
)

COMPARISON_OPERATOR: Final = enum(
    "EQ",
    "NE",
    "IN",
    "LE",
    "LT",
    "GE",
    "GT",
    "BETWEEN",
    "NOT_NULL",
    "NULL",
    "CONTAINS",
    "NOT_CONTAINS",
    "BEGINS_WITH",
)
CONDITIONAL_OPERATOR: Final = enum("AND", "OR")
SELECT: Final = enum("ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "SPECIFIC_ATTRIBUTES", "COUNT")

EXPECTED_VALUE: Final = Structure(
    "ExpectedAttributeValue",
    {
        "Value": ATTRIBUTE_VALUE,
        "Exists": BOOLEAN,
        "ComparisonOperator": COMPARISON_OPERATOR,
        "AttributeValueList": ATTRIBUTE_VALUES,
    },
)
EXPECTED: Final = Map(TEXT, EXPECTED_VALUE)
CONDITION: Final = Structure(
    "Condition",
    {
        "AttributeValueList": ATTRIBUTE_VALUES,
        "ComparisonOperator": required(COMPARISON_OPERATOR),
    },
)
CONDITIONS: Final = Map(TEXT, CONDITION)
ATTRIBUTE_UPDATE: Final = Structure(
    "AttributeValueUpdate",
    {
        "Value": ATTRIBUTE_VALUE,
        "Action": enum("ADD", "PUT", "DELETE"),
    },
)

# ---------------------------------------------------------------------------------------- one item

PUT_ITEM: Final = Structure(
    "PutItemInput",
    {
        "TableName": required(TABLE_ARN),
        "Item": required(ITEM),
        "Expected": EXPECTED,
        "ReturnValues": RETURN_VALUES,
        "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
        "ReturnItemCollectionMetrics": RETURN_ITEM_COLLECTION_METRICS,
        "ConditionalOperator": CONDITIONAL_OPERATOR,
        "ConditionExpression": TEXT,
        "ExpressionAttributeNames": EXPRESSION_NAMES,
        "ExpressionAttributeValues": EXPRESSION_VALUES,
        "ReturnValuesOnConditionCheckFailure": RETURN_VALUES_ON_FAILURE,
    },
)
GET_ITEM: Final = Structure(
    "GetItemInput",
    {
        "TableName": required(TABLE_ARN),
        "Key": required(KEY),
        "AttributesToGet": ATTRIBUTE_NAMES,
        "ConsistentRead": BOOLEAN,
        "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
        "ProjectionExpression": TEXT,
        "ExpressionAttributeNames": EXPRESSION_NAMES,
    },
)
UPDATE_ITEM: Final = Structure(
    "UpdateItemInput",
    {
        "TableName": required(TABLE_ARN),
        "Key": required(KEY),
        "AttributeUpdates": Map(TEXT, ATTRIBUTE_UPDATE),
        "Expected": EXPECTED,
        "ConditionalOperator": CONDITIONAL_OPERATOR,
        "ReturnValues": RETURN_VALUES,
        "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
        "ReturnItemCollectionMetrics": RETURN_ITEM_COLLECTION_METRICS,
        "UpdateExpression": TEXT,
        "ConditionExpression": TEXT,
        "ExpressionAttributeNames": EXPRESSION_NAMES,
        "ExpressionAttributeValues": EXPRESSION_VALUES,
        "ReturnValuesOnConditionCheckFailure": RETURN_VALUES_ON_FAILURE,
    },
)
DELETE_ITEM: Final = Structure(
    "DeleteItemInput",
    {
        "TableName": required(TABLE_ARN),
        "Key": required(KEY),
        "Expected": EXPECTED,
        "ConditionalOperator": CONDITIONAL_OPERATOR,
        "ReturnValues": RETURN_VALUES,
        "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
        "ReturnItemCollectionMetrics": RETURN_ITEM_COLLECTION_METRICS,
        "ConditionExpression": TEXT,
        "ExpressionAttributeNames": EXPRESSION_NAMES,
        "ExpressionAttributeValues": EXPRESSION_VALUES,
        "ReturnValuesOnConditionCheckFailure": RETURN_VALUES_ON_FAILURE,
    },
)

# ------------------------------------------------------------------------------------------ ranges

QUERY: Final = Structure(
    "QueryInput",
    {
        "TableName": required(TABLE_ARN),
        "IndexName": INDEX_NAME,
        "Select": SELECT,
        "AttributesToGet": ATTRIBUTE_NAMES,
        "Limit": POSITIVE_INTEGER,
        "ConsistentRead": BOOLEAN,
        "KeyConditions": CONDITIONS,
        "QueryFilter": CONDITIONS,
        "ConditionalOperator": CONDITIONAL_OPERATOR,
        "ScanIndexForward": BOOLEAN,
        "ExclusiveStartKey": KEY,
        "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
        "ProjectionExpression": TEXT,
        "FilterExpression": TEXT,
        "KeyConditionExpression": TEXT,
        "ExpressionAttributeNames": EXPRESSION_NAMES,
        "ExpressionAttributeValues": EXPRESSION_VALUES,
    },
)
SCAN: Final = Structure(
    "ScanInput",
    {
        "TableName": required(TABLE_ARN),
        "IndexName": INDEX_NAME,
        "AttributesToGet": ATTRIBUTE_NAMES,
        "Limit": POSITIVE_INTEGER,
        "Select": SELECT,
        "ScanFilter": CONDITIONS,
        "ConditionalOperator": CONDITIONAL_OPERATOR,
        "ExclusiveStartKey": KEY,
        "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
        "TotalSegments": integer(1, limits.SCAN_SEGMENTS_MAX),
        "Segment": integer(0, limits.SCAN_SEGMENTS_MAX - 1),
        "ProjectionExpression": TEXT,
        "FilterExpression": TEXT,
        "ExpressionAttributeNames": EXPRESSION_NAMES,
        "ExpressionAttributeValues": EXPRESSION_VALUES,
        "ConsistentRead": BOOLEAN,
    },
)
SEARCH_VECTORS: Final = Structure(
    "SearchVectorsInput",
    {
        "TableName": required(TABLE_ARN),
        "IndexName": required(msgspec.structs.replace(INDEX_NAME, brief=True)),
        "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
        "ExpressionAttributeNames": EXPRESSION_NAMES,
        "ExpressionAttributeValues": EXPRESSION_VALUES,
        "ProjectionExpression": TEXT,
        "SearchVector": required(List(ATTRIBUTE_VALUE, 1, limits.VECTOR_DIMENSIONS_MAX, brief=True)),
        "SearchConditionExpression": TEXT,
        "TopK": required(POSITIVE_INTEGER),
    },
)

# ----------------------------------------------------------------------------------------- batches

KEYS_AND_ATTRIBUTES: Final = Structure(
    "KeysAndAttributes",
    {
        "Keys": required(List(KEY, 1, limits.BATCH_GET_KEYS_MAX)),
        "AttributesToGet": ATTRIBUTE_NAMES,
        "ConsistentRead": BOOLEAN,
        "ProjectionExpression": TEXT,
        "ExpressionAttributeNames": EXPRESSION_NAMES,
    },
)
BATCH_GET_ITEM: Final = Structure(
    "BatchGetItemInput",
    {
        "RequestItems": required(Map(TABLE_ARN, KEYS_AND_ATTRIBUTES, 1, limits.BATCH_GET_KEYS_MAX)),
        "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
    },
)
WRITE_REQUEST: Final = Structure(
    "WriteRequest",
    {
        "PutRequest": Structure("PutRequest", {"Item": required(ITEM)}),
        "DeleteRequest": Structure("DeleteRequest", {"Key": required(KEY)}),
    },
)
BATCH_WRITE_ITEM: Final = Structure(
    "BatchWriteItemInput",
    {
        "RequestItems": required(
            Map(
                TABLE_ARN,
                List(WRITE_REQUEST, 1, limits.BATCH_WRITE_ITEMS_MAX),
                1,
                limits.BATCH_WRITE_ITEMS_MAX,
                whole=True,
            )
        ),
        "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
        "ReturnItemCollectionMetrics": RETURN_ITEM_COLLECTION_METRICS,
    },
)

# ------------------------------------------------------------------------------------ transactions

TRANSACT_GET: Final = Structure(
    "Get",
    {
        "Key": required(KEY),
        "TableName": required(TABLE_ARN),
        "ProjectionExpression": TEXT,
        "ExpressionAttributeNames": EXPRESSION_NAMES,
    },
)
TRANSACT_GET_ITEM: Final = Structure("TransactGetItem", {"Get": required(TRANSACT_GET)})
TRANSACT_GET_ITEMS: Final = Structure(
    "TransactGetItemsInput",
    {
        "TransactItems": required(List(TRANSACT_GET_ITEM, 1, limits.TRANSACT_ITEMS_MAX)),
        "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
    },
)
TRANSACT_ACTIONS: Final = {
    "ConditionCheck": Structure(
        "ConditionCheck",
        {
            "Key": required(KEY),
            "TableName": required(TABLE_ARN),
            "ConditionExpression": required(TEXT),
            "ExpressionAttributeNames": EXPRESSION_NAMES,
            "ExpressionAttributeValues": EXPRESSION_VALUES,
            "ReturnValuesOnConditionCheckFailure": RETURN_VALUES_ON_FAILURE,
        },
    ),
    "Put": Structure(
        "Put",
        {
            "Item": required(ITEM),
            "TableName": required(TABLE_ARN),
            "ConditionExpression": TEXT,
            "ExpressionAttributeNames": EXPRESSION_NAMES,
            "ExpressionAttributeValues": EXPRESSION_VALUES,
            "ReturnValuesOnConditionCheckFailure": RETURN_VALUES_ON_FAILURE,
        },
    ),
    "Delete": Structure(
        "Delete",
        {
            "Key": required(KEY),
            "TableName": required(TABLE_ARN),
            "ConditionExpression": TEXT,
            "ExpressionAttributeNames": EXPRESSION_NAMES,
            "ExpressionAttributeValues": EXPRESSION_VALUES,
            "ReturnValuesOnConditionCheckFailure": RETURN_VALUES_ON_FAILURE,
        },
    ),
    "Update": Structure(
        "Update",
        {
            "Key": required(KEY),
            "UpdateExpression": required(TEXT),
            "TableName": required(TABLE_ARN),
            "ConditionExpression": TEXT,
            "ExpressionAttributeNames": EXPRESSION_NAMES,
            "ExpressionAttributeValues": EXPRESSION_VALUES,
            "ReturnValuesOnConditionCheckFailure": RETURN_VALUES_ON_FAILURE,
        },
    ),
}
TRANSACT_WRITE_ITEM: Final = Structure("TransactWriteItem", TRANSACT_ACTIONS)
TRANSACT_WRITE_ITEMS: Final = Structure(
    "TransactWriteItemsInput",
    {
        "TransactItems": required(List(TRANSACT_WRITE_ITEM, 1, limits.TRANSACT_ITEMS_MAX)),
        "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
        "ReturnItemCollectionMetrics": RETURN_ITEM_COLLECTION_METRICS,
        "ClientRequestToken": CLIENT_REQUEST_TOKEN,
    },
)

OPERATIONS: Final = {
    "PutItem": PUT_ITEM,
    "GetItem": GET_ITEM,
    "UpdateItem": UPDATE_ITEM,
    "DeleteItem": DELETE_ITEM,
    "Query": QUERY,
    "SearchVectors": SEARCH_VECTORS,
    "Scan": SCAN,
    "BatchGetItem": BATCH_GET_ITEM,
    "BatchWriteItem": BATCH_WRITE_ITEM,
    "TransactGetItems": TRANSACT_GET_ITEMS,
    "TransactWriteItems": TRANSACT_WRITE_ITEMS,
}
