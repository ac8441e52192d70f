"""Recorded access patterns of a table, as the console records it from when somebody starts it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from consoles import Browser, parsed, put
from hashrange.database import Database
from hashrange.errors import ServiceError
from hashrange_console.entities import recorded

PAGE = "/console/t/orders/entities?view=access"


def rows(browser: Browser) -> list[str]:
    """The recorded uses, each as a line of text without its time."""
    page = browser.ask(PAGE)[1]
    part = page.partition('aria-label="Recorded access patterns"')[2].partition("</table>")[0]
    cells = [row.replace("</td>", " ").replace("</th>", " ") for row in part.split("<tr>")[2:]]
    lines = [" ".join(parsed(row).text.split()) for row in cells]
    return [re.sub(r" \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", "", line) for line in lines]


def record(browser: Browser, *, on: bool = True) -> None:
    assert browser.post("/console/uses", {"table": "orders", "on": on})[0] == 200


def query(database: Database, condition: str, index: str = "", **values: str) -> None:
    request: dict[str, Any] = {"TableName": "orders", "KeyConditionExpression": condition}
    request["ExpressionAttributeValues"] = {
        f":{name}": {"N" if value.isdigit() else "S": value} for name, value in values.items()
    }
    database.execute("Query", request | ({"IndexName": index} if index else {}))


def test_nothing_is_recorded_until_somebody_wants_it(orders: Database, browser: Browser) -> None:
    page = browser.ask(PAGE)[1]
    assert "Recording is off" in parsed(page).text
    watched = [orders.observers.active]
    for on in (True, False):
        record(browser, on=on)
        watched.append(orders.observers.active)
        assert ("No program has used this table since" in parsed(browser.ask(PAGE)[1]).text) == on
    assert [watch is None for watch in watched] == [True, False, True]


def test_uses_are_told_apart_by_operation_index_and_pattern(orders: Database, browser: Browser) -> None:
    record(browser)
    browser.ask(PAGE)
    for number in range(3):
        query(orders, "pk = :p AND sk BETWEEN :a AND :b", p=f"USER#{number}", a="1", b="2")
        put(orders, {"pk": {"S": f"USER#{number}"}, "sk": {"N": "1"}, "kind": {"S": "user"}})
    query(orders, "kind = :k", "by-kind", k="user")
    orders.execute("Scan", {"TableName": "orders"})
    key = {"pk": {"S": "PROFILE"}, "sk": {"N": "1"}}
    orders.execute("BatchGetItem", {"RequestItems": {"orders": {"Keys": [key, key | {"sk": {"N": "2"}}]}}})
    condition = {"ConditionExpression": "kind = pk"}
    with pytest.raises(ServiceError):
        orders.execute("DeleteItem", {"TableName": "orders", "Key": dict(key), **condition})
    # What the console asks is left out, and so are other tables.
    browser.ask("/console/t/orders?pk=USER%231")
    with pytest.raises(ServiceError):
        orders.execute("GetItem", {"TableName": "other", "Key": dict(key)})
    assert sorted(rows(browser)) == [
        "BatchGetItem pk = PROFILE AND sk = * 1 0",
        "DeleteItem pk = PROFILE AND sk = * 1 1",
        "PutItem pk = USER#* AND sk = * 3 0",
        "Query on by-kind kind = * 1 0",
        "Query pk = USER#* AND sk BETWEEN * AND * 3 0",
        "Scan no key 1 0",
    ]
    assert rows(browser)[0].startswith(("PutItem", "Query pk"))
    record(browser, on=False)
    orders.execute("Scan", {"TableName": "orders"})
    assert len(rows(browser)) == 6
    record(browser)
    assert rows(browser) == []


def test_wrong_requests_and_statements_are_recorded_as_far_as_they_are_known(
    orders: Database, browser: Browser
) -> None:
    record(browser)
    for operation, request in (
        ("Query", {"TableName": "orders", "KeyConditionExpression": "pk ="}),
        ("Query", {"TableName": "orders", "KeyConditions": {"pk": {"ComparisonOperator": "NE"}}}),
        ("GetItem", {"TableName": "orders", "Key": 5}),
        ("ExecuteStatement", {"Statement": "SELECT * FROM orders WHERE pk ="}),
    ):
        with pytest.raises(ServiceError):
            orders.execute(operation, request)
    orders.execute("ExecuteStatement", {"Statement": "SELECT * FROM orders"})
    assert {line.split()[0] for line in rows(browser)} >= {"Query", "ExecuteStatement"}


def test_what_is_kept_is_bounded(orders: Database, browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "USES_MAX", 15)
    record(browser)
    for number in range(40):
        query(orders, "pk = :p", p=f"KIND{'ABCDEFGHIJ'[number % 10]}{'KLMN'[number // 10]}")
    lines = rows(browser)
    assert len(lines) == recorded.PATTERNS_MAX + 1
    assert "Query pk = * 28 0" in lines
    for limit in range(5):
        orders.execute("Scan", {"TableName": "orders", "Limit": limit + 1})
        query(orders, "kind = :k", "by-kind", k="a")
        put(orders, {"pk": {"S": f"OTHER#{limit}"}, "sk": {"N": "1"}})
    assert len(rows(browser)) == 15
    assert "5 further requests of other kinds" in parsed(browser.ask(PAGE)[1]).text
    monkeypatch.setattr(recorded, "TABLES_MAX", 1)
    with pytest.raises(ServiceError):
        orders.execute("Scan", {"TableName": "another"})
    assert len(rows(browser)) == 15
