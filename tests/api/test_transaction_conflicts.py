"""Transactions that stay in flight (`--transaction-seconds`): other requests for their items are refused.

Sources: Developer Guide, "Transaction conflict handling in DynamoDB"; API reference, TransactWriteItems.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from hashrange.clock import ManualClock
from hashrange.database import Database, Settings
from hashrange.errors import (
    TransactionCanceledException,
    TransactionConflictException,
    TransactionInProgressException,
)
from hashrange.storage.memory import MemoryEngine
from worlds import table_of

HELD: dict[str, Any] = {"id": {"S": "held"}}
FREE: dict[str, Any] = {"id": {"S": "free"}}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def database(clock: ManualClock) -> Database:
    """A database with one table, where a transaction on the item HELD is in flight for a second."""
    database = Database(MemoryEngine(), settings=Settings(transaction_seconds=1.0), clock=clock)
    call(database, "CreateTable", **table_of("accounts", "id"))
    call(database, "TransactWriteItems", **transaction(HELD), ClientRequestToken="first")
    return database


def transaction(item: dict[str, Any]) -> dict[str, Any]:
    return {"TransactItems": [{"Put": {"TableName": "accounts", "Item": dict(item)}}]}


def call(database: Database, operation: str, **request: Any) -> Any:
    return orjson.loads(orjson.dumps(database.execute(operation, request)))


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("PutItem", {"Item": HELD}),
        ("DeleteItem", {"Key": HELD}),
        ("UpdateItem", {"Key": HELD}),
    ],
)
def test_a_single_write_conflicts(database: Database, operation: str, request_: dict[str, Any]) -> None:
    with pytest.raises(TransactionConflictException) as caught:
        call(database, operation, TableName="accounts", **request_)
    assert caught.value.message == "Transaction is ongoing for the item"  # [report]


def test_a_transaction_conflicts_with_a_reason_for_each_member(database: Database) -> None:
    items = [*transaction(FREE)["TransactItems"], *transaction(HELD)["TransactItems"]]
    with pytest.raises(TransactionCanceledException) as caught:
        call(database, "TransactWriteItems", TransactItems=items)
    assert [reason["Code"] for reason in caught.value.members["CancellationReasons"]] == [
        "None",
        "TransactionConflict",
    ]
    assert "Item" not in call(database, "GetItem", TableName="accounts", Key=FREE)


def test_a_transactional_read_conflicts(database: Database) -> None:
    gets = [{"Get": {"TableName": "accounts", "Key": HELD}}]
    with pytest.raises(TransactionCanceledException) as caught:
        call(database, "TransactGetItems", TransactItems=gets)
    assert caught.value.members["CancellationReasons"][0]["Code"] == "TransactionConflict"


def test_a_batch_leaves_the_held_item_unprocessed(database: Database) -> None:
    puts = [{"PutRequest": {"Item": HELD}}, {"PutRequest": {"Item": FREE}}]
    answer = call(database, "BatchWriteItem", RequestItems={"accounts": puts})
    assert answer["UnprocessedItems"] == {"accounts": [{"PutRequest": {"Item": HELD}}]}
    assert call(database, "GetItem", TableName="accounts", Key=FREE)["Item"] == FREE


def test_plain_reads_and_other_items_go_on(database: Database) -> None:
    assert call(database, "GetItem", TableName="accounts", Key=HELD)["Item"] == HELD
    call(database, "PutItem", TableName="accounts", Item=FREE)


def test_the_same_token_is_in_progress_and_then_repeats_without_effect(
    database: Database, clock: ManualClock
) -> None:
    with pytest.raises(TransactionInProgressException):
        call(database, "TransactWriteItems", **transaction(HELD), ClientRequestToken="first")
    clock.advance(2)
    assert call(database, "TransactWriteItems", **transaction(HELD), ClientRequestToken="first") == {}


def test_the_item_is_free_when_the_transaction_is_over(database: Database, clock: ManualClock) -> None:
    clock.advance(1)
    database.sweep()
    call(database, "PutItem", TableName="accounts", Item=HELD)
