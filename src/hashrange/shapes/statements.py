"""Requests that carry PartiQL."""

from typing import Final

from hashrange.shapes.members import (
    CLIENT_REQUEST_TOKEN,
    POSITIVE_INTEGER,
    RETURN_CONSUMED_CAPACITY,
    RETURN_VALUES_ON_FAILURE,
)
from hashrange.shapes.vocabulary import ATTRIBUTE_VALUE, BOOLEAN, List, String, Structure, required

STATEMENT: Final = String(1, 8192)
PARAMETERS: Final = List(ATTRIBUTE_VALUE, 1)
EXECUTE_STATEMENT: Final = Structure(
    "ExecuteStatementInput",
    {
        "Statement": required(STATEMENT),
        "Parameters": PARAMETERS,
        "ConsistentRead": BOOLEAN,
        "NextToken": String(1, 32768),
        "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
        "Limit": POSITIVE_INTEGER,
        "ReturnValuesOnConditionCheckFailure": RETURN_VALUES_ON_FAILURE,
    },
)

BATCH_STATEMENT_REQUEST: Final = Structure(
    "BatchStatementRequest",
    {
        "Statement": required(STATEMENT),
        "Parameters": PARAMETERS,
        "ConsistentRead": BOOLEAN,
        "ReturnValuesOnConditionCheckFailure": RETURN_VALUES_ON_FAILURE,
    },
)

BATCH_EXECUTE_STATEMENT: Final = Structure(
    "BatchExecuteStatementInput",
    {
        "Statements": required(List(BATCH_STATEMENT_REQUEST, 1, 25)),
        "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
    },
)

PARAMETERIZED_STATEMENT: Final = Structure(
    "ParameterizedStatement",
    {
        "Statement": required(STATEMENT),
        "Parameters": PARAMETERS,
        "ReturnValuesOnConditionCheckFailure": RETURN_VALUES_ON_FAILURE,
    },
)

EXECUTE_TRANSACTION: Final = Structure(
    "ExecuteTransactionInput",
    {
        "TransactStatements": required(List(PARAMETERIZED_STATEMENT, 1, 100)),
        "ClientRequestToken": CLIENT_REQUEST_TOKEN,
        "ReturnConsumedCapacity": RETURN_CONSUMED_CAPACITY,
    },
)

OPERATIONS: Final = {
    "ExecuteStatement": EXECUTE_STATEMENT,
    "BatchExecuteStatement": BATCH_EXECUTE_STATEMENT,
    "ExecuteTransaction": EXECUTE_TRANSACTION,
}
