"""Transfers: transactions move money between accounts; the sum stays. Others read all accounts at once.

Each transfer adds to a receipt of its own in its transaction. So the receipts show at the end which transfers
took place, and how often: a transfer of unknown outcome is sometimes repeated with its ClientRequestToken,
which must not carry it out twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Final

from consistency.client import Client
from consistency.history import Anomaly, Operation, OutcomeUnknown, Refused
from consistency.tables import KEY, names_in_order, number_in, place

NAME: Final = "transfers"
ACCOUNTS: Final = 5
BEGINNING: Final = 100
REPEATS: Final = 20
READS_MAX: Final = 100


class Transfers:
    """The workload on a table for the accounts and one for the receipts."""

    name = NAME

    def __init__(self, table: str, receipts: str) -> None:
        self._table = table
        self._receipts = receipts
        self._numbers = count(1)

    def prepare(self, client: Client) -> None:
        for number in range(ACCOUNTS):
            item = {KEY: {"S": _account(number)}, "amount": {"N": str(BEGINNING)}}
            client.call_until_answered("PutItem", TableName=self._table, Item=item)

    def step(self, client: Client) -> None:
        if client.random.random() < 0.3:
            self._read(client)
        else:
            self._transfer(client)

    def _read(self, client: Client) -> Operation:
        members = [{"Get": place(self._table, _account(number))} for number in range(ACCOUNTS)]
        with client.recorded(NAME, "read") as operation:
            answer = client.call("TransactGetItems", TransactItems=members)
            operation.result = [number_in(response.get("Item"), "amount") for response in answer["Responses"]]
        return operation

    def _transfer(self, client: Client) -> None:
        giver, taker = client.random.sample(range(ACCOUNTS), 2)
        amount, receipt = client.random.randint(1, 30), f"receipt {next(self._numbers)}"
        taking = self._add(_account(giver), "amount", -amount)
        taking["Update"]["ConditionExpression"] = "#a >= :least"
        taking["Update"]["ExpressionAttributeValues"][":least"] = {"N": str(amount)}
        giving = self._add(_account(taker), "amount", amount)
        noting = self._add(receipt, "times", 1, self._receipts)
        request = {"TransactItems": [taking, giving, noting], "ClientRequestToken": receipt}
        repeats = client.random.choice((0, REPEATS))
        with client.recorded(
            NAME, "transfer", receipt=receipt, giver=giver, taker=taker, amount=amount, repeats=repeats
        ):
            try:
                client.call("TransactWriteItems", **request)
            except OutcomeUnknown as lost:
                for _ in range(repeats):
                    # The reason of a refused repetition says nothing about the first request.
                    with suppress(OutcomeUnknown, Refused):
                        client.call("TransactWriteItems", **request)
                        return
                raise OutcomeUnknown(f"{lost}; repeated {repeats} times") from lost

    def _add(self, key: str, attribute: str, amount: int, table: str | None = None) -> dict[str, Any]:
        return {
            "Update": {
                **place(table or self._table, key),
                "UpdateExpression": "ADD #a :amount",
                "ExpressionAttributeNames": {"#a": attribute},
                "ExpressionAttributeValues": {":amount": {"N": str(amount)}},
            }
        }

    def finish(self, client: Client) -> None:
        """Read accounts and receipts, until no transfer of unknown outcome takes place in between."""
        before = self._read(client).result
        for _ in range(READS_MAX):
            with client.recorded(NAME, "receipts") as operation:
                operation.result = self._all_receipts(client)
            amounts = self._read(client).result
            if amounts == before:
                return
            before = amounts
        raise AssertionError("the accounts keep changing, although nobody transfers")

    def _all_receipts(self, client: Client) -> dict[str, int]:
        receipts: dict[str, int] = {}
        start: dict[str, Any] = {}
        while True:
            page = client.call("Scan", TableName=self._receipts, ConsistentRead=True, **start)
            receipts |= {item[KEY]["S"]: int(item["times"]["N"]) for item in page["Items"]}
            if "LastEvaluatedKey" not in page:
                return receipts
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def reads(self, items: dict[str, Any]) -> list[tuple[str, dict[str, Any], Any]]:
        amounts = [number_in(items.get(_account(number)), "amount") for number in range(ACCOUNTS)]
        return [("read", {}, amounts)]

    def judge(self, operations: Sequence[Operation]) -> list[Anomaly]:
        return judge(operations)


def _account(number: int) -> str:
    return f"account {number}"


def judge(operations: Sequence[Operation]) -> list[Anomaly]:
    """The anomalies of a history of transfers. The last successful reads of amounts and of receipts must have
    been made after the last transfer."""
    anomalies = []
    for read in operations:
        if read.action != "read" or read.status != "ok":
            continue
        details = names_in_order([read])
        if None in read.result or sum(read.result) != ACCOUNTS * BEGINNING:
            anomalies.append(Anomaly("torn read", f"the sum is not {ACCOUNTS * BEGINNING}:{details}"))
        elif min(read.result) < 0:
            anomalies.append(Anomaly("overdraft", f"an amount is negative:{details}"))
    reads = [operation for operation in operations if operation.action == "read" and operation.status == "ok"]
    receipts = [
        operation for operation in operations if operation.action == "receipts" and operation.status == "ok"
    ]
    if not anomalies and reads and receipts:
        anomalies = _judge_end(operations, receipts[-1].result, reads[-1].result)
    return anomalies


def _judge_end(operations: Sequence[Operation], receipts: dict[str, int], final: list[int]) -> list[Anomaly]:
    anomalies = []
    amounts = [BEGINNING] * ACCOUNTS
    left = dict(receipts)
    for transfer in operations:
        if transfer.action != "transfer":
            continue
        details = names_in_order([transfer])
        times = left.pop(transfer.arguments["receipt"], 0)
        if times > 1:
            anomalies.append(Anomaly("carried out twice", f"{times} times:{details}"))
        if transfer.status == "ok" and not times:
            anomalies.append(Anomaly("lost", f"an acknowledged transfer has no receipt:{details}"))
        if transfer.status == "failed" and times:
            anomalies.append(Anomaly("aborted write", f"a transfer that failed has a receipt:{details}"))
        amounts[transfer.arguments["giver"]] -= times * transfer.arguments["amount"]
        amounts[transfer.arguments["taker"]] += times * transfer.arguments["amount"]
    if left:
        anomalies.append(Anomaly("phantom", f"nobody made these receipts: {sorted(left)}"))
    if amounts != final:
        anomalies.append(Anomaly("torn write", f"the accounts hold {final}, by the receipts {amounts}"))
    return anomalies
