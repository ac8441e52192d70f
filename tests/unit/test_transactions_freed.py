"""A transaction frees each large item when its member has run: to free all at once makes all threads wait."""

from __future__ import annotations

import weakref
from typing import Any

import pytest

from hashrange.database import Database
from hashrange.tables.items import records
from hashrange.values import Item
from worlds import create

MEMBERS = 10
# Long enough for a memo (`expressions.memo.BRIEF_CHARS_MAX`).
_TESTS = " AND ".join(f"NOT contains(members, :v{number})" for number in range(6))
_VALUES = {f":v{number}": {"N": str(100 + number)} for number in range(6)}


class Decoded(dict[str, Any]):
    """A decoded item that can be referred to weakly."""


@pytest.fixture
def database() -> Any:
    with Database.in_memory() as database:
        create(database, "lists", "pk")
        members = {"L": [{"N": str(number)} for number in range(50)]}
        for number in range(MEMBERS):
            item = {"pk": {"S": str(number)}, "members": members}
            database.execute("PutItem", {"TableName": "lists", "Item": item})
        yield database


def _check(number: int) -> dict[str, Any]:
    condition = {"ConditionExpression": _TESTS, "ExpressionAttributeValues": _VALUES}
    return {"ConditionCheck": {"TableName": "lists", "Key": {"pk": {"S": str(number)}}, **condition}}


def _update(number: int) -> dict[str, Any]:
    sets = ", ".join(f"copy{copy} = list_append(members, members)" for copy in range(4))
    return {"Update": {"UpdateExpression": f"SET {sets}", **_check(number)["ConditionCheck"]}}


def _statement(number: int) -> dict[str, Any]:
    tests = " AND ".join(f"NOT contains(members, {100 + value})" for value in range(6))
    return {"Statement": f"UPDATE lists SET seen = 1 WHERE pk = '{number}' AND {tests}"}


@pytest.mark.parametrize(
    ("operation", "request_of"),
    [
        ("TransactWriteItems", lambda: {"TransactItems": [_check(number) for number in range(MEMBERS)]}),
        ("TransactWriteItems", lambda: {"TransactItems": [_update(number) for number in range(MEMBERS)]}),
        ("ExecuteTransaction", lambda: {"TransactStatements": [_statement(n) for n in range(MEMBERS)]}),
    ],
    ids=["checks", "updates", "statements"],
)
def test_items_are_freed_one_after_the_other(
    database: Database, monkeypatch: pytest.MonkeyPatch, operation: str, request_of: Any
) -> None:
    alive: list[int] = []
    decoded: list[weakref.ref[Decoded]] = []
    item_of = records.item_of

    def watched(record: bytes) -> Item:
        item = Decoded(item_of(record))
        decoded.append(weakref.ref(item))
        alive.append(sum(1 for reference in decoded if reference() is not None))
        return item

    monkeypatch.setattr(records, "item_of", watched)
    database.execute(operation, request_of())
    assert len(decoded) >= MEMBERS
    assert max(alive) <= 2
