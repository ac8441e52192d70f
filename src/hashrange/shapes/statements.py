"""Requests that carry PartiQL."""

from typing import Final

from hashrange.shapes.members import (
    CLIENT_REQUEST_TOKEN,
    POSITIVE_INTEGER,
    RETURN_CONSUMED_CAPACITY,
    RETURN_VALUES_ON_FAILURE,
)
from hashrange.shapes.vocabulary import (
    ATTRIBUTE_VALUE,
    BOOLEAN,
    List,
    String,
    Structure,
    requests,
    required,
)

_STATEMENT: Final = String(1, 8192)
_PARAMETERS: Final = List(ATTRIBUTE_VALUE, 1)
_OF_BATCH: Final = Structure(
    "BatchStatementRequest",
    {
        "Statement": required(_STATEMENT),
        "Parameters": _PARAMETERS,
        "ConsistentRead": BOOLEAN,
        "ReturnValuesOnConditionCheckFailure": RETURN_VALUES_ON_FAILURE,
    },
)
_OF_TRANSACTION: Final = Structure(
    "ParameterizedStatement",
    {
        "Statement": required(_STATEMENT),
        "Parameters": _PARAMETERS,
        "ReturnValuesOnConditionCheckFailure": RETURN_VALUES_ON_FAILURE,
    },
)

OPERATIONS: Final = requests(
    {
        "ExecuteStatement": {
            "Statement": required(_STATEMENT),
            "Parameters": _PARAMETERS,
            "ConsistentRead": BOOLEAN,
            "NextToken": String(1, 32768),
            "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
            "Limit": POSITIVE_INTEGER,
            "ReturnValuesOnConditionCheckFailure": RETURN_VALUES_ON_FAILURE,
        },
        "BatchExecuteStatement": {
            "Statements": required(List(_OF_BATCH, 1, 25)),
            "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
        },
        "ExecuteTransaction": {
            "TransactStatements": required(List(_OF_TRANSACTION, 1, 100)),
            "ClientRequestToken": CLIENT_REQUEST_TOKEN,
            "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
        },
    }
)
