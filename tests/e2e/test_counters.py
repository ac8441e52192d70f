"""64 clients at once: no addition is lost, and no amount appears or vanishes.

Each client is a thread; all act at the same time on one counter, on many, and on accounts between which
they move amounts in transactions. The totals are exact.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from worlds import table_of

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

CLIENTS = 64
ROUNDS = 12
ACCOUNTS = 8
OPENING_BALANCE = 100


@pytest.fixture
def table(http_client: DynamoDBClient, name_table: Callable[..., str]) -> str:
    name = name_table("counters", http_client)
    http_client.create_table(**table_of(name, "id"))
    http_client.get_waiter("table_exists").wait(TableName=name)
    return name


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """What `work(client number)` returned, for 64 clients at once."""
    with ThreadPoolExecutor(CLIENTS) as threads:
        return list(threads.map(work, range(CLIENTS)))


def add(client: DynamoDBClient, table: str, counter: str, amount: int) -> int:
    answer = client.update_item(
        TableName=table,
        Key={"id": {"S": counter}},
        UpdateExpression="ADD amount :amount",
        ExpressionAttributeValues={":amount": {"N": str(amount)}},
        ReturnValues="UPDATED_NEW",
    )
    return int(answer["Attributes"]["amount"]["N"])


def amounts(client: DynamoDBClient, table: str) -> dict[str, int]:
    """All amounts, from one moment's scan: call it when nobody writes."""
    items = client.scan(TableName=table, ConsistentRead=True)["Items"]
    return {item["id"]["S"]: int(item["amount"]["N"]) for item in items}


def test_one_counter(http_client: DynamoDBClient, table: str) -> None:
    def work(_: int) -> list[int]:
        return [add(http_client, table, "hot", 1) for _ in range(ROUNDS)]

    returned = [value for values in at_once(work) for value in values]
    # Each addition saw the sum of those before it: every value up to the total, once.
    assert sorted(returned) == list(range(1, CLIENTS * ROUNDS + 1))
    assert amounts(http_client, table) == {"hot": CLIENTS * ROUNDS}


def test_many_counters(http_client: DynamoDBClient, table: str) -> None:
    def work(number: int) -> Counter[str]:
        chance = random.Random(number)
        added: Counter[str] = Counter()
        for _ in range(ROUNDS):
            counter, amount = f"counter{chance.randrange(40)}", chance.randrange(1, 1000)
            add(http_client, table, counter, amount)
            added[counter] += amount
        return added

    added: Counter[str] = Counter()
    for amounts_of_one_client in at_once(work):
        added += amounts_of_one_client
    assert amounts(http_client, table) == added


def test_amounts_move_between_accounts(http_client: DynamoDBClient, table: str) -> None:
    for account in range(ACCOUNTS):
        add(http_client, table, f"account{account}", OPENING_BALANCE)

    def move(chance: random.Random) -> bool:
        """Whether the amount was moved; an account never goes below zero."""
        source, target = chance.sample(range(ACCOUNTS), k=2)
        values = {":amount": {"N": str(chance.randrange(1, 60))}}
        try:
            http_client.transact_write_items(
                TransactItems=[
                    {
                        "Update": {
                            "TableName": table,
                            "Key": {"id": {"S": f"account{source}"}},
                            "UpdateExpression": "SET amount = amount - :amount",
                            "ConditionExpression": "amount >= :amount",
                            "ExpressionAttributeValues": values,
                        }
                    },
                    {
                        "Update": {
                            "TableName": table,
                            "Key": {"id": {"S": f"account{target}"}},
                            "UpdateExpression": "ADD amount :amount",
                            "ExpressionAttributeValues": values,
                        }
                    },
                ]
            )
        except http_client.exceptions.TransactionCanceledException as error:
            codes = [reason["Code"] for reason in error.response["CancellationReasons"]]
            assert set(codes) <= {"None", "ConditionalCheckFailed", "TransactionConflict"}
            return False
        return True

    def watch() -> int:
        """The total of all accounts as one transaction sees it."""
        try:
            answer = http_client.transact_get_items(
                TransactItems=[
                    {"Get": {"TableName": table, "Key": {"id": {"S": f"account{account}"}}}}
                    for account in range(ACCOUNTS)
                ]
            )
        except http_client.exceptions.TransactionCanceledException:
            return ACCOUNTS * OPENING_BALANCE  # refused because of a conflict: nothing was seen
        return sum(int(response["Item"]["amount"]["N"]) for response in answer["Responses"])

    def work(number: int) -> tuple[int, set[int]]:
        chance = random.Random(number)
        moved, totals = 0, set()
        for _ in range(ROUNDS):
            moved += move(chance)
            totals.add(watch())
        return moved, totals

    outcomes = at_once(work)
    balances = amounts(http_client, table)
    assert sum(balances.values()) == ACCOUNTS * OPENING_BALANCE
    assert min(balances.values()) >= 0
    assert set().union(*(totals for _, totals in outcomes)) == {ACCOUNTS * OPENING_BALANCE}
    assert sum(moved for moved, _ in outcomes) > 0
