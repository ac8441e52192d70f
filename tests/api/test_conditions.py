"""What an application sees of conditions and transactions that fail, as botocore's exceptions."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient


@pytest.fixture
def accounts(client: DynamoDBClient, create: Callable[..., str]) -> str:
    """A table of two accounts with 100 each."""
    name = create("accounts", id="S", hash_only=True)
    for account in ("ann", "bob"):
        client.put_item(TableName=name, Item={"id": {"S": account}, "balance": {"N": "100"}})
    return name


def balance(client: DynamoDBClient, accounts: str, account: str) -> str:
    answer = client.get_item(TableName=accounts, Key={"id": {"S": account}}, ConsistentRead=True)
    return answer["Item"]["balance"]["N"]


def movement(accounts: str, account: str, amount: int) -> dict[str, Any]:
    return {
        "Update": {
            "TableName": accounts,
            "Key": {"id": {"S": account}},
            "UpdateExpression": "SET balance = balance + :amount",
            "ConditionExpression": "balance >= :least",
            "ExpressionAttributeValues": {
                ":amount": {"N": str(amount)},
                ":least": {"N": str(max(0, -amount))},
            },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }


def test_a_transfer_happens_whole(client: DynamoDBClient, accounts: str) -> None:
    client.transact_write_items(
        TransactItems=[movement(accounts, "ann", -30), movement(accounts, "bob", 30)]  # type: ignore[list-item]
    )
    assert (balance(client, accounts, "ann"), balance(client, accounts, "bob")) == ("70", "130")
    both = client.transact_get_items(
        TransactItems=[{"Get": {"TableName": accounts, "Key": {"id": {"S": one}}}} for one in ("bob", "ann")]
    )
    assert [answer["Item"]["balance"]["N"] for answer in both["Responses"]] == ["130", "70"]


def test_a_transfer_that_fails_says_why_and_does_nothing(client: DynamoDBClient, accounts: str) -> None:
    with pytest.raises(client.exceptions.TransactionCanceledException) as failed:
        client.transact_write_items(
            TransactItems=[movement(accounts, "ann", 500), movement(accounts, "bob", -500)]  # type: ignore[list-item]
        )
    # [docs] API reference, TransactWriteItems
    assert failed.value.response["Error"]["Message"] == (
        "Transaction cancelled, please refer cancellation reasons for specific reasons "
        "[None, ConditionalCheckFailed]"
    )
    reasons = failed.value.response["CancellationReasons"]
    assert reasons[0] == {"Code": "None"}
    assert reasons[1]["Code"] == "ConditionalCheckFailed"
    assert reasons[1]["Item"] == {"id": {"S": "bob"}, "balance": {"N": "100"}}
    assert balance(client, accounts, "ann") == "100"


def test_a_token_makes_a_transaction_happen_once(client: DynamoDBClient, accounts: str) -> None:
    # A token is known for ten minutes, longer than a test's table lives.
    token = str(uuid.uuid4())
    for _ in range(2):
        client.transact_write_items(
            ClientRequestToken=token,
            TransactItems=[movement(accounts, "ann", -1), movement(accounts, "bob", 1)],  # type: ignore[list-item]
        )
    assert balance(client, accounts, "ann") == "99"
    with pytest.raises(client.exceptions.IdempotentParameterMismatchException):
        client.transact_write_items(
            ClientRequestToken=token,
            TransactItems=[movement(accounts, "ann", -2)],  # type: ignore[list-item]
        )


def test_put_if_absent(client: DynamoDBClient, accounts: str) -> None:
    with pytest.raises(client.exceptions.ConditionalCheckFailedException) as failed:
        client.put_item(
            TableName=accounts,
            Item={"id": {"S": "ann"}},
            ConditionExpression="attribute_not_exists(id)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    # [docs] Developer Guide, "Error handling with DynamoDB"
    assert failed.value.response["Error"]["Message"] == "The conditional request failed"
    assert dict(failed.value.response)["Item"] == {"id": {"S": "ann"}, "balance": {"N": "100"}}


def test_optimistic_locking_lets_one_of_two_through(client: DynamoDBClient, accounts: str) -> None:
    def save(seen: str, new: str) -> None:
        client.update_item(
            TableName=accounts,
            Key={"id": {"S": "ann"}},
            UpdateExpression="SET balance = :new",
            ConditionExpression="balance = :seen",
            ExpressionAttributeValues={":seen": {"N": seen}, ":new": {"N": new}},
        )

    save("100", "110")
    with pytest.raises(client.exceptions.ConditionalCheckFailedException):
        save("100.0", "120")
    assert balance(client, accounts, "ann") == "110"


def test_an_error_carries_code_status_and_request_id(client: DynamoDBClient, accounts: str) -> None:
    with pytest.raises(ClientError) as failed:
        client.get_item(TableName=accounts, Key={"wrong": {"S": "ann"}})
    response = failed.value.response
    assert response["Error"]["Code"] == "ValidationException"
    # [report] baopham/laravel-dynamodb issue 200
    assert response["Error"]["Message"] == "The provided key element does not match the schema"
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert len(response["ResponseMetadata"]["RequestId"]) == 52


def test_a_missing_table(client: DynamoDBClient, name_table: Callable[..., str]) -> None:
    name = name_table("absent")
    with pytest.raises(client.exceptions.ResourceNotFoundException, match="Requested resource not found"):
        client.get_item(TableName=name, Key={"id": {"S": "x"}})
    with pytest.raises(client.exceptions.ResourceNotFoundException, match=f"Table: {name} not found"):
        client.describe_table(TableName=name)
