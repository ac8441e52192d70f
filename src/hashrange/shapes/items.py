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
    Members,
    Structure,
    enum,
    integer,
    requests,
    required,
)

COMPARISON_OPERATOR: Final = enum(
    *("EQ", "NE", "IN", "LE", "LT", "GE", "GT", "BETWEEN"),
    *("NOT_NULL", "NULL", "CONTAINS", "NOT_CONTAINS", "BEGINS_WITH"),
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
    {"AttributeValueList": ATTRIBUTE_VALUES, "ComparisonOperator": required(COMPARISON_OPERATOR)},
)
CONDITIONS: Final = Map(TEXT, CONDITION)
ATTRIBUTE_UPDATE: Final = Structure(
    "AttributeValueUpdate", {"Value": ATTRIBUTE_VALUE, "Action": enum("ADD", "PUT", "DELETE")}
)

_PLACEHOLDERS: Final[Members] = {
    "ExpressionAttributeNames": EXPRESSION_NAMES,
    "ExpressionAttributeValues": EXPRESSION_VALUES,
}
_CONDITION: Final[Members] = {
    "ConditionExpression": TEXT,
    **_PLACEHOLDERS,
    "ReturnValuesOnConditionCheckFailure": RETURN_VALUES_ON_FAILURE,
}
_ADDRESS: Final[Members] = {"Key": required(KEY), "TableName": required(TABLE_ARN)}

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
WRITE_REQUEST: Final = Structure(
    "WriteRequest",
    {
        "PutRequest": Structure("PutRequest", {"Item": required(ITEM)}),
        "DeleteRequest": Structure("DeleteRequest", {"Key": required(KEY)}),
    },
)
_WRITE_REQUESTS: Final = Map(
    TABLE_ARN,
    List(WRITE_REQUEST, 1, limits.BATCH_WRITE_ITEMS_MAX),
    1,
    limits.BATCH_WRITE_ITEMS_MAX,
    whole=True,
)
TRANSACT_GET: Final = Structure(
    "Get", {**_ADDRESS, "ProjectionExpression": TEXT, "ExpressionAttributeNames": EXPRESSION_NAMES}
)
TRANSACT_ACTIONS: Final = {
    "ConditionCheck": Structure(
        "ConditionCheck",
        {**_ADDRESS, **_CONDITION, "ConditionExpression": required(TEXT)},
    ),
    "Put": Structure("Put", {"Item": required(ITEM), "TableName": required(TABLE_ARN), **_CONDITION}),
    "Delete": Structure("Delete", {**_ADDRESS, **_CONDITION}),
    "Update": Structure(
        "Update",
        {
            "Key": required(KEY),
            "UpdateExpression": required(TEXT),
            "TableName": required(TABLE_ARN),
            **_CONDITION,
        },
    ),
}
_TRANSACT_GET_ITEM: Final = Structure("TransactGetItem", {"Get": required(TRANSACT_GET)})
_TRANSACT_WRITE_ITEM: Final = Structure("TransactWriteItem", TRANSACT_ACTIONS)

OPERATIONS: Final = requests(
    {
        "PutItem": {
            "TableName": required(TABLE_ARN),
            "Item": required(ITEM),
            "Expected": EXPECTED,
            "ReturnValues": RETURN_VALUES,
            "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
            "ReturnItemCollectionMetrics": RETURN_ITEM_COLLECTION_METRICS,
            "ConditionalOperator": CONDITIONAL_OPERATOR,
            **_CONDITION,
        },
        "GetItem": {
            "TableName": required(TABLE_ARN),
            "Key": required(KEY),
            "AttributesToGet": ATTRIBUTE_NAMES,
            "ConsistentRead": BOOLEAN,
            "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
            "ProjectionExpression": TEXT,
            "ExpressionAttributeNames": EXPRESSION_NAMES,
        },
        "UpdateItem": {
            "TableName": required(TABLE_ARN),
            "Key": required(KEY),
            "AttributeUpdates": Map(TEXT, ATTRIBUTE_UPDATE),
            "Expected": EXPECTED,
            "ConditionalOperator": CONDITIONAL_OPERATOR,
            "ReturnValues": RETURN_VALUES,
            "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
            "ReturnItemCollectionMetrics": RETURN_ITEM_COLLECTION_METRICS,
            "UpdateExpression": TEXT,
            **_CONDITION,
        },
        "DeleteItem": {
            "TableName": required(TABLE_ARN),
            "Key": required(KEY),
            "Expected": EXPECTED,
            "ConditionalOperator": CONDITIONAL_OPERATOR,
            "ReturnValues": RETURN_VALUES,
            "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
            "ReturnItemCollectionMetrics": RETURN_ITEM_COLLECTION_METRICS,
            **_CONDITION,
        },
        "Query": {
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
            **_PLACEHOLDERS,
        },
        "SearchVectors": {
            "TableName": required(TABLE_ARN),
            "IndexName": required(msgspec.structs.replace(INDEX_NAME, brief=True)),
            "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
            **_PLACEHOLDERS,
            "ProjectionExpression": TEXT,
            "SearchVector": required(List(ATTRIBUTE_VALUE, 1, limits.VECTOR_DIMENSIONS_MAX, brief=True)),
            "SearchConditionExpression": TEXT,
            "TopK": required(POSITIVE_INTEGER),
        },
        "Scan": {
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
            **_PLACEHOLDERS,
            "ConsistentRead": BOOLEAN,
        },
        "BatchGetItem": {
            "RequestItems": required(Map(TABLE_ARN, KEYS_AND_ATTRIBUTES, 1, limits.BATCH_GET_KEYS_MAX)),
            "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
        },
        "BatchWriteItem": {
            "RequestItems": required(_WRITE_REQUESTS),
            "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
            "ReturnItemCollectionMetrics": RETURN_ITEM_COLLECTION_METRICS,
        },
        "TransactGetItems": {
            "TransactItems": required(List(_TRANSACT_GET_ITEM, 1, limits.TRANSACT_ITEMS_MAX)),
            "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
        },
        "TransactWriteItems": {
            "TransactItems": required(List(_TRANSACT_WRITE_ITEM, 1, limits.TRANSACT_ITEMS_MAX)),
            "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
            "ReturnItemCollectionMetrics": RETURN_ITEM_COLLECTION_METRICS,
            "ClientRequestToken": CLIENT_REQUEST_TOKEN,
        },
    }
)
