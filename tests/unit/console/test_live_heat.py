"""The heat of the live pages: the sketch behind it, the counts, and the page."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from consoles import CREATE, KEY, Browser, parsed, put
from hashrange.database import Caller, Database
from hashrange.insights.sketch import Sketch
from hashrange.observing.noting import Items
from hashrange.tables.items.capacity import NO_BILL
from hashrange.watching.sights import Sight
from hashrange_lab.heat import KEYS_MAX, Heat, Place


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans())), st.integers(1, 12))
def test_a_sketch_never_counts_too_little_and_knows_by_how_much_too_much(
    keys: list[tuple[int, bool]], room: int
) -> None:
    sketch: Sketch[int] = Sketch(room)
    for key, is_write in keys:
        sketch.add(key, is_write=is_write)
    exact = Counter(key for key, _ in keys)
    counts = {count.key: count for count in sketch.most_frequent(room)}
    assert len(counts) == len(sketch) <= room
    for key, count in counts.items():
        assert count.least <= exact[key] <= count.most
    for key, number in exact.items():
        assert key in counts or number <= len(keys) / room
    if len(exact) <= room:
        assert all(count.over == 0 for count in counts.values())
        assert {key: (count.reads, count.writes) for key, count in counts.items()} == {
            key: (keys.count((key, False)), keys.count((key, True))) for key in exact
        }


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


def test_a_table_that_is_created_later_is_counted_by_key(database: Database, browser: Browser) -> None:
    browser.ask("/console/heat")
    database.execute("CreateTable", {**CREATE, "TableName": "later"})
    item = {"TableName": "later", "Item": {"pk": {"S": "a"}, "sk": {"N": "1"}}}
    database.execute("PutItem", {**item})
    browser.ask("/console/heat")
    database.execute("PutItem", {**item})
    said = " ".join(parsed(browser.ask("/console/heat")[1]).text.split())
    assert re.search(r"later 0 1 .* 1 Requests", said)


def test_the_counts_take_bounded_memory_and_requests_of_any_form(database: Database) -> None:
    heat = Heat(database.interest, database.settings, lambda: False)
    heat.names[Place("", "t")] = "pk"
    keys: list[Any] = [{"S": str(number)} for number in range(2 * KEYS_MAX)]
    for key in [*keys, None, [], {}, {"N": "x"}, {"M": {}}, {"S": "x" * 100_000}, {"S": 1}]:
        request = {"TableName": "t", "Key": {"pk": key}}
        heat.see(Sight("GetItem", request, Caller(), 0.0, None, NO_BILL, Items(), 0, by_rule=False))
    [(_, warmth)] = heat.places()
    assert sum(warmth.reads) == 2 * KEYS_MAX
    assert warmth.others == 7
    assert len(heat.keys(10_000)) == KEYS_MAX
    assert all(reads > 0 for reads in warmth.reads)
    wrong: list[dict[str, Any]] = [{"TableName": []}, {"Key": 1}, {"TableName": "t", "Key": "x"}]
    for request in wrong:
        heat.see(Sight("PutItem", request, Caller(), 0.0, None, NO_BILL, Items(), 0, by_rule=False))
