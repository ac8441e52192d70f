"""The pages of costs, advice and capacity."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest

from consoles import Browser, opened, parsed
from hashrange.cli.admin import bind_admin
from hashrange.clock import VirtualClock
from hashrange.database import Caller, Database
from hashrange.errors import ServiceError
from hashrange.prices import load, published
from hashrange.server import running
from hashrange_lab.money import meter
from hashrange_lab.pages.charts import HEIGHT, chart
from vector_tables import index_of, listed
from worlds import create

FRONT = Caller(agent="Boto3/1.40 app/shop-front")
ITEM: Any = {"pk": {"S": "a"}, "sk": {"N": "1"}, "kind": {"S": "k"}}


def text_of(page: str) -> str:
    return " ".join(parsed(page).text.split())


def put(database: Database, number: int, **changes: Any) -> None:
    for place in range(number):
        item = {**ITEM, "sk": {"N": str(place)}, **changes}
        database.execute("PutItem", {"TableName": "orders", "Item": item}, FRONT)


def search_vectors(database: Database) -> None:
    """A search of vectors, in a table of its own."""
    create(database, "words", "pk", VectorIndexes=[index_of()])
    search = {"TableName": "words", "IndexName": "near", "SearchVector": listed([1, 0])["L"], "TopK": 1}
    database.execute("SearchVectors", search, FRONT)


def test_nothing_is_counted_until_a_button_asks_for_it(orders: Database, browser: Browser) -> None:
    for path in ("/console/costs", "/console/costs/advice", "/console/costs/plans", "/console/capacity"):
        status, page = browser.ask(path)
        assert status == 200
        assert "Nothing is counted" in page
        assert "Start counting" in page
    assert orders.observers.active is None
    done = browser.post("/console/costs/record", {"record": "begin"})
    assert done == (200, {"href": "/console/costs"})
    assert "No request has consumed anything since" in browser.ask("/console/costs")[1]
    put(orders, 2)
    assert meter.running(orders) is not None
    assert "PutItem 2 0 4 $0.0000025" in text_of(browser.ask("/console/costs")[1])
    assert browser.post("/console/costs/record", {"record": "reset"})[0] == 200
    assert "No request has consumed anything since" in browser.ask("/console/costs")[1]
    assert browser.post("/console/costs/record", {"record": "end"})[0] == 200
    assert meter.running(orders) is None
    assert browser.post("/console/costs/record", {"record": "stop"})[0] == 400


def test_the_pages_of_the_console_are_not_counted(orders: Database, browser: Browser) -> None:
    counting = meter.begin(orders, published())
    for path in ("/console/t/orders", "/console/costs", "/console/t/orders/about"):
        assert browser.ask(path)[0] == 200
    assert counting.counted("us-east-1").rows == []


@pytest.mark.parametrize(
    ("by", "says"),
    [
        ("", "ordersPutItem 20 0 40 $0.000025"),
        ("table", "orders 20 0 40 $0.000025"),
        ("operation", "PutItem 20 0 40 $0.000025"),
        ("caller", "shop-front 20 0 40 $0.000025"),
        ("index", "ordersby-kind 0 0 20 $0.000012"),
    ],
)
def test_costs_are_told_apart(orders: Database, browser: Browser, by: str, says: str) -> None:
    meter.begin(orders, published())
    put(orders, 20)
    status, page = browser.ask(f"/console/costs?by={by}")
    assert status == 200
    assert says in text_of(page)


def test_costs_of_another_region(orders: Database, browser: Browser) -> None:
    meter.begin(orders, published())
    put(orders, 1)
    said = text_of(browser.ask("/console/costs?region=eu-central-1")[1])
    # 2 write units, at $0.7625 for a million
    assert "PutItem 1 0 2 $0.0000015" in said
    assert "by the prices of Europe (Frankfurt) of 2026-10-01" in said
    said = text_of(browser.ask("/console/costs?region=eu-west-3")[1])
    left_out = said.partition("Left out, because no source has a price in eu-west-3: ")[2]
    assert left_out.partition(". A file")[0].split("; ") == [
        "a GB of a table with point-in-time recovery for a month, local indexes included",
        "a GB stored for a month, indexes included",
        "a million write request units, on demand",
    ]
    search_vectors(orders)
    said = text_of(browser.ask("/console/costs?region=eu-west-1")[1])
    assert "a GB searched in vector indexes" in said
    assert "SearchVectors 1 0 0 no price" in said
    assert browser.ask("/console/costs?region=mars")[0] == 400
    assert browser.ask("/console/costs?by=colour")[0] == 400


def test_prices_of_a_file(orders: Database, browser: Browser, tmp_path: Any) -> None:
    path = tmp_path / "prices.toml"
    path.write_text("date = 2030-01-01\n[regions.us-east-1]\nread_requests = 1\nwrite_requests = 1000000\n")
    meter.begin(orders, load(path))
    put(orders, 1)
    said = text_of(browser.ask("/console/costs")[1])
    assert "PutItem 1 0 2 $2.00" in said
    assert f"of 2030-01-01 from {path}" in said


def test_a_month_and_what_each_month_costs_anyway() -> None:
    clock = VirtualClock(1_790_000_000.0, frozen=True)
    with Database.in_memory(clock=clock) as database:
        admin = bind_admin(0)
        with running(database, admin=admin):
            browser = opened(admin)
            table = {
                "TableName": "fixed",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "ProvisionedThroughput": {"ReadCapacityUnits": 10, "WriteCapacityUnits": 5},
            }
            database.execute("CreateTable", table)
            meter.begin(database, published())
            database.execute("PutItem", {"TableName": "fixed", "Item": {"pk": {"S": "a"}}})
            assert "after 10 minutes" in browser.ask("/console/costs")[1]
            clock.advance(3_600)
            said = text_of(browser.ask("/console/costs")[1])
            assert "A month at this rate$0.00046" in said
            # 730 hours of 10 * $0.00013 and 5 * $0.00065
            assert "fixedprovisioned: 10 read, 5 write units$3.32" in said
            said = text_of(browser.ask("/console/capacity?hours=6")[1])
            assert "Write units a second highest 0.017 of 5 provisioned" in said


def test_advice(orders: Database, browser: Browser) -> None:
    meter.begin(orders, published())
    assert "No advice" in browser.ask("/console/costs/advice")[1]
    put(orders, 20)
    for _ in range(10):
        orders.execute("Scan", {"TableName": "orders", "FilterExpression": "attribute_exists(nothing)"})
    said = text_of(browser.ask("/console/costs/advice")[1])
    assert "The index by-kind of orders was written and never read." in said
    assert "Scan on orders (filter attribute_exists(nothing)) reads" in said
    assert "10 requests read" in said


def test_capacity_shows_limits_and_what_was_throttled(orders: Database, browser: Browser) -> None:
    meter.begin(orders, published())
    put(orders, 3)
    orders.faults.add("GetItem times=2 throttle")
    for _ in range(2):
        with suppress(ServiceError):
            orders.execute("GetItem", {"TableName": "orders", "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}}})
    page = browser.ask("/console/capacity")[1]
    said = text_of(page)
    assert "Limits are not enforced" in said
    assert "orders on demand 2 throttled" in said
    assert "Write units a second highest 0.05 of 40,000 of the account" in said
    assert "by-kind" in said
    assert "2 requests throttled" in page
    orders.lab.throttling.set(True)
    put(orders, 1, more={"S": "x"})
    said = text_of(browser.ask("/console/capacity?table=orders&hours=24")[1])
    assert "Limits are not enforced" not in said
    assert "on demand · 4 partitions" in said
    assert "No table has consumed anything" in browser.ask("/console/capacity?table=none")[1]
    assert browser.ask("/console/capacity?hours=7")[0] == 400


def test_a_read_only_console_shows_and_does_not_change(orders: Database) -> None:
    admin = bind_admin(0, read_only=True)
    with running(orders, admin=admin):
        browser = opened(admin)
        page = browser.ask("/console/costs")[1]
        assert "This console is read-only, so it cannot start counting" in page
        assert "data-post" not in page
        assert browser.post("/console/costs/record", {"record": "begin"})[0] == 403
        assert meter.running(orders) is None
        meter.begin(orders, published())
        put(orders, 1)
        assert "data-post" not in browser.ask("/console/costs")[1]


def test_values_are_escaped(orders: Database, browser: Browser) -> None:
    meter.begin(orders, published())
    agent = "app/<script>alert(1)</script>"
    orders.execute("PutItem", {"TableName": "orders", "Item": dict(ITEM)}, Caller(agent=agent))
    assert "<script>alert" not in browser.ask("/console/costs?by=caller")[1]


def test_a_chart_draws_its_limit_where_it_is_near() -> None:
    near = chart([1.0, 0.0, 2.0], [0, 3, 0], ["a", "b", "c"], 4.0)
    assert [(bar.x, bar.value, bar.marked) for bar in near.bars] == [(0, 1.0, 0), (10, 0.0, 3), (20, 2.0, 0)]
    assert near.limit == pytest.approx(HEIGHT - HEIGHT / 1.1, abs=0.01)
    assert near.bars[2].height == pytest.approx(HEIGHT / 2.2, abs=0.01)
    far = chart([1.0, 2.0], [0, 0], ["a", "b"], 40_000.0)
    assert far.limit is None
    assert (far.highest, far.mean) == (2.0, 1.5)
    empty = chart([0.0], [0], ["a"], None)
    assert (empty.bars, empty.width, empty.limit) == ([], 10, None)


def test_amounts_are_exact(orders: Database) -> None:
    counting = meter.begin(orders, published())
    put(orders, 1)
    from hashrange_lab.money.statement import Statement

    statement = Statement(counting.counted("us-east-1"), published().region("us-east-1"))
    assert statement.total.total.amount == Decimal("0.00000125")
