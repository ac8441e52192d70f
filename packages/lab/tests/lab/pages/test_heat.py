"""The heat on its page of the console: the counts, and the page."""

from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace
from typing import Any

import pytest

from consoles import CREATE, KEY, Browser, opened, parsed, put, show
from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.server import running
from hashrange_console.pages import Page
from hashrange_lab.admin import heat as heat_plane
from hashrange_lab.heat import KEYS_MAX
from hashrange_lab.pages import PAGES


def test_the_busiest_keys_come_first_and_lead_to_their_items_and_requests(
    orders: Database, browser: Browser
) -> None:
    assert "No requests yet" in browser.ask("/console/heat")[1]
    for number in range(5):
        put(orders, {"pk": {"S": "hot <b>"}, "sk": {"N": str(number)}})
    orders.execute("GetItem", {"TableName": "orders", "Key": dict(KEY)})
    orders.execute(
        "Query",
        {
            "TableName": "orders",
            "KeyConditionExpression": "pk = :p",
            "ExpressionAttributeValues": {":p": {"S": "a"}},
        },
    )
    orders.execute("Scan", {"TableName": "orders"})
    _, page = browser.ask("/console/heat")
    said = " ".join(parsed(page).text.split())
    assert re.search(r"orders 2 5 .* 1 Requests", said)
    assert re.search(r"hot <b> orders \d+ 0 5 Requests.* a orders \d+ 2 0 Requests", said)
    [part] = re.findall(r"hot <b> orders (\d+) ", said)
    one = " ".join(parsed(browser.ask(f"/console/heat?table=orders&part={part}")[1]).text.split())
    assert f"Busiest keys of orders in part {part} " in one
    assert "hot <b>" in one
    assert "hot <b>" not in parsed(browser.ask("/console/heat?table=other")[1]).text
    [items, *_] = re.findall(r'href="(/console/t/orders\?pk=[^"]+)"', page)
    assert "5 of 5 items read" in parsed(browser.ask(items)[1]).text
    [requests, *_] = re.findall(r'href="(/console/requests\?[^"]+key=[^"]+)"', page)
    assert browser.ask(requests.replace("&amp;", "&"))[0] == 200
    orders.execute("DeleteTable", {"TableName": "orders"})
    orders.settle()
    _, page = browser.ask("/console/heat")
    assert ("does not exist" in page, 'href="/console/t/orders' in page) == (True, False)


def test_a_table_that_is_created_later_is_counted_by_key(database: Database, browser: Browser) -> None:
    browser.ask("/console/heat")
    database.execute("CreateTable", {**CREATE, "TableName": "later"})
    item = {"TableName": "later", "Item": {"pk": {"S": "a"}, "sk": {"N": "1"}}}
    database.execute("PutItem", {**item})
    browser.ask("/console/heat")
    database.execute("PutItem", {**item})
    said = " ".join(parsed(browser.ask("/console/heat")[1]).text.split())
    assert re.search(r"later 0 1 .* 1 Requests", said)


def test_the_counts_take_bounded_memory_and_requests_of_any_form(orders: Database) -> None:
    subject: Any = SimpleNamespace(database=orders, plane=SimpleNamespace(draining=False))
    looked = heat_plane.Looked(subject)
    asyncio.run(looked.learn(every=True))
    heat = looked.heat
    keys: list[Any] = [{"S": str(number)} for number in range(2 * KEYS_MAX)]
    for key in [*keys, None, [], {}, {"N": "x"}, {"M": {}}, {"S": "x" * 100_000}, {"S": 1}]:
        show(heat, {"TableName": "orders", "Key": {"pk": key}}, operation="GetItem")
    [(_, warmth)] = heat.places()
    assert sum(warmth.reads) == 2 * KEYS_MAX
    assert warmth.others == 7
    assert len(heat.keys(10_000)) == KEYS_MAX
    assert all(reads > 0 for reads in warmth.reads)
    wrong: list[dict[str, Any]] = [{"TableName": []}, {"Key": 1}, {"TableName": "orders", "Key": "x"}]
    for request in wrong:
        show(heat, request)


def test_nothing_is_counted_until_the_page_is_opened(
    orders: Database, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[heat_plane.Looked] = []
    begin = heat_plane.Looked.__init__

    def began(self: heat_plane.Looked, subject: Any) -> None:
        looked.append(self)
        begin(self, subject)

    monkeypatch.setattr(heat_plane.Looked, "__init__", began)
    for path, count in (("/console/costs", 0), ("/console/heat", 1)):
        browser.ask(path)
        assert len(orders.observers.all) == count
    looked[0].attention.check()
    assert not orders.observers.all


def test_strangers_see_no_page_and_a_read_only_console_changes_nothing(database: Database) -> None:
    admin = bind_admin(0, read_only=True)
    with running(database, admin=admin):
        browser, stranger = opened(admin), Browser(admin.url)
        for part in PAGES.parts:
            bodies = {"record": {"record": "begin"}, "throttling": {"state": "on"}, "eventual": {}}
            bodies["recording"] = {"name": "monday"}
            body = None if isinstance(part, Page) else bodies[part.path.rpartition("/")[2]]
            assert stranger.ask(part.path, body)[0] == 401
            if not part.path.endswith("/events"):
                assert browser.ask(part.path, body)[0] == (200 if body is None else 403)
