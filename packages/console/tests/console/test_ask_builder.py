"""The builder and the plans of statements: what a request reads, what it will cost, what it did cost."""

from __future__ import annotations

import re
from urllib.parse import quote, urlencode

import orjson
import pytest

from consoles import Browser, parsed, put
from hashrange.database import Database


def _path(*conditions: tuple[str, ...], **parameters: str) -> str:
    pairs = [("table", "orders"), *parameters.items()]
    for condition in conditions:
        pairs += zip(("attr", "op", "type", "value", "value2"), [*condition, "", ""][:5], strict=True)
    return f"/console/ask?{urlencode(pairs)}"


def _said(browser: Browser, path: str) -> str:
    status, text = browser.ask(path)
    assert status == 200, text
    return " ".join(parsed(text).text.split())


@pytest.fixture
def many(orders: Database) -> Database:
    for number in range(120):
        item = {"pk": {"S": "b"}, "sk": {"N": str(number)}, "kind": {"S": "x" if number % 2 else "y"}}
        put(orders, item | {"text": {"S": "t" * 1_000}})
    return orders


def test_a_plan_says_what_it_reads_and_what_it_will_cost(many: Database, browser: Browser) -> None:
    said = _said(browser, _path(("pk", "=", "S", "b"), ("sk", "<", "N", "10")))
    assert "Query reads the table orders by pk = b, sk < 10." in said
    assert re.search(r"Will cost about 1\.5 capacity units for 10 items \(counted, for 1\.5 cap", said)
    assert "Did cost" not in said
    said = _said(browser, _path(("pk", "=", "S", "b")))
    assert "there are more than 100 items" in said
    said = _said(browser, _path(("kind", "=", "S", "x"), ("text", "contains", "S", "t")))
    assert "Query reads the index by-kind of orders by kind = x. Then it filters by text contains t" in said
    said = _said(browser, _path(("text", "=", "S", "x"), ("kind", "=", "S", "y"), match="any"))
    assert "Scan reads all of the table orders." in said
    assert "filters by text = x or kind = y" in said
    assert re.search(r"about 6\.5 capacity units a page, 1[56](\.5)? capacity units for all 121 items", said)
    assert "The table: a Query cannot read for one condition or another" in said
    said = _said(browser, _path(("pk", "=", "S", "b"), ("sk", "=", "N", "1")))
    assert "for at most 1 item" in said
    assert "This is the whole key" in said


def test_a_run_shows_the_items_and_what_they_did_cost(many: Database, browser: Browser) -> None:
    status, text = browser.ask(_path(("pk", "=", "S", "b"), run="1"))
    said = " ".join(parsed(text).text.split())
    assert status == 200
    assert "Will cost up to 6.5 capacity units a page of 50 items" in said
    assert "Did cost 6.5 capacity units for 50 items read" in said
    seen = re.findall(r'class="v-N"[^>]*>(\d+)<', text)
    while more := re.findall(r'rel="next" href="([^"]+)"', text):
        _, text = browser.ask(more[0].replace("&amp;", "&"))
        seen += re.findall(r'class="v-N"[^>]*>(\d+)<', text)
    assert seen == [str(number) for number in range(120)]
    status, text = browser.ask(_path(("pk", "=", "S", "b"), run="1", order="down"))
    assert re.findall(r'class="v-N"[^>]*>(\d+)<', text)[:2] == ["119", "118"]
    [href, *_] = re.findall(r'<th scope="row"[^>]*><a href="([^"]+)"', text)
    assert browser.ask(href.replace("&amp;", "&"))[0] == 200
    said = _said(browser, _path(("pk", "=", "S", "b"), ("text", "=", "S", "?"), run="1"))
    assert "No match on this page" in said
    assert "No items have this key" in _said(browser, _path(("pk", "=", "S", "none"), run="1"))


def test_the_same_request_has_the_same_estimate_on_every_page(many: Database, browser: Browser) -> None:
    pattern = r"about [\d.]+ capacity units? a page, ([\d.]+) capacity units for all"
    statement = "/console/ask?statement=SELECT%20*%20FROM%20orders"
    found = [re.findall(pattern, _said(browser, path)) for path in ("/console/t/orders", _path(), statement)]
    whole = {"TableName": "orders", "ReturnConsumedCapacity": "TOTAL"}
    paid = many.execute("Scan", whole)["ConsumedCapacity"]["CapacityUnits"]
    assert found == [[f"{paid:g}"]] * 3
    # A Query has its cost before it runs, on both pages.
    planned = "/console/t/orders?pk=b&op=%3C&sk=10&plan=1"
    for path in (planned, _path(("pk", "=", "S", "b"), ("sk", "<", "N", "10"))):
        assert "about 1.5 capacity units for 10 items (counted" in _said(browser, path)
    assert "Give a value for each" in _said(browser, "/console/t/orders?pk=a&pk=b&plan=1")


def test_the_rows_of_a_statement_lead_to_their_items(orders: Database, browser: Browser) -> None:
    page = browser.ask("/console/ask?statement=SELECT%20*%20FROM%20orders")[1]
    [href] = re.findall(r'<th scope="row"><a href="(/console/t/orders/item[^"]+)"', page)
    assert browser.ask(href)[0] == 200
    assert "/item?key=" not in browser.ask("/console/ask?statement=SELECT%20pk%20FROM%20orders")[1]


def test_the_form_keeps_what_was_given(orders: Database, browser: Browser) -> None:
    long = "v" * 3_000
    path = _path(("pk", "between", "S", "a", "<b>"), ("x.y[0]", "in", "N", "1, 2"), ("z", "=", "S", long))
    status, text = browser.ask(path)
    assert status == 200
    for shown in ('value="&lt;b&gt;"', 'value="x.y[0]"', 'value="1, 2"', long):
        assert shown in text
    assert text.count("<fieldset") == 4
    assert '<option value="strings">' in text  # (the names of attributes, for completion)
    assert '<option value="orders">' in text


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/console/ask?table=nothing", "not found"),
        (_path(("a", "=", "N", "")), "Give a number"),
        (_path(("a", "=", "N", "x"), run="1"), "cannot be converted to a numeric value"),
        (_path(("a", "between", "S", "b", "a"), run="1"), "upper bound"),
        (_path(("a..b", "=", "S", "")), "is not an attribute"),
        (_path(("pk", "=", "S", "a"), source="other"), "There is no index other"),
        (_path(("pk", "=", "S", "a"), run="1", start="x"), "not a key"),
    ],
)
def test_what_cannot_be_asked_says_why(orders: Database, browser: Browser, path: str, says: str) -> None:
    status, text = browser.ask(path)
    assert (status, says in parsed(text).text) == (400, True), parsed(text).text


def test_a_statement_says_how_it_reads(many: Database, browser: Browser) -> None:
    no_key = "Scan reads all of the table orders, because nothing says which pk is meant."
    for where, says in {
        "orders WHERE pk = 'b' AND sk = 1": "GetItem reads one item of the table orders by its whole key.",
        "orders WHERE sk = 1 AND pk = 'a'": "Will cost about 0.5 capacity units for at most 1 item",
        "orders WHERE pk = 'b' AND sk < 9": "Query reads the table orders by pk, and only a range of its",
        "orders WHERE pk = 'b'": "Will cost up to 6.5 capacity units a page",
        "orders WHERE pk IN ['a', 'b']": "in 2 Queries one after the other",
        "orders.\"by-kind\" WHERE kind = 'x'": "Query reads the index by-kind of orders by kind.",
        "orders WHERE text = 'y'": f"{no_key} Then it filters by text, which makes it no cheaper.",
    }.items():
        statement = f"SELECT * FROM {where}"
        for how in ("&plan=1", ""):
            said = _said(browser, f"/console/ask?statement={quote(statement)}{how}")
            assert says in said
            assert ("Did cost" in said) == (not how)
    for statement in ("SELECT * FROM nothing", "SELECT * FROM orders.other", "SELECT", "SELECT * FROM"):
        status, text = browser.ask(f"/console/ask?plan=1&statement={quote(statement)}")
        assert (status, 'role="alert" id="problem">' in text) == (400, True)
    said = _said(browser, f"/console/ask?plan=1&statement={quote('DELETE FROM orders WHERE pk = 1')}")
    assert "was not run yet" in said


def test_the_plan_of_a_statement_is_what_runs(many: Database, browser: Browser) -> None:
    for statement in (
        "SELECT * FROM orders WHERE pk = 'b' AND sk = 1",
        "SELECT * FROM orders WHERE pk = 'b'",
        "SELECT * FROM orders WHERE sk = 1",
        "SELECT * FROM orders WHERE pk = 'b' OR pk = 'a'",
    ):
        said = _said(browser, f"/console/ask?statement={quote(statement)}")
        sent = {"Statement": statement, "Limit": 50, "ReturnConsumedCapacity": "TOTAL"}
        answer = orjson.loads(orjson.dumps(many.execute("ExecuteStatement", sent)))
        units = f"{answer['ConsumedCapacity']['CapacityUnits']:g}"
        assert f"Did cost {units} capacity unit" in said
