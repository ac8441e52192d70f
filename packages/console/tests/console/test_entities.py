"""The single-table view: entities from patterns of keys, corrected by users, as a graph and as requests."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consoles import Browser, opened, parsed
from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.server import running
from hashrange_console.entities.graph import WIDTH, graph_of
from hashrange_console.entities.patterns import fits, like, proposed
from hashrange_console.entities.sampling import conditions_of, entities_of
from hashrange_console.items.sources import TableOrIndex
from hashrange_console.stored import EntityRule
from worlds import table_of

APP: dict[str, Any] = table_of("app", "PK, SK", indexes={"GSI1": "GSI1PK, GSI1SK"})
TABLE = TableOrIndex("app", "", (("PK", "S"),), (("SK", "S"),), 0, 0)
INDEX = TableOrIndex("app", "GSI1", (("GSI1PK", "S"),), (("GSI1SK", "S"),), 0, 0, is_global=True)


def _item(**attributes: str) -> dict[str, Any]:
    return {name: {"S": value} for name, value in attributes.items()}


def _items() -> list[dict[str, Any]]:
    items = []
    for user in range(6):
        items.append(_item(PK=f"USER#{user}", SK="PROFILE", name="Ann", email="a@b"))
        for order in range(3):
            day = f"2026-0{order + 1}-01"
            status = {"GSI1PK": f"STATUS#{'open' if order else 'sent'}", "GSI1SK": day}
            items.append(_item(PK=f"USER#{user}", SK=f"ORDER#{day}", **status) | {"total": {"N": "12.50"}})
    return [*items, _item(PK="CONFIG", SK="CONFIG", colour="<b>")]


@pytest.fixture
def app(database: Database) -> Database:
    database.execute("CreateTable", orjson.loads(orjson.dumps(APP)))
    for item in _items():
        database.execute("PutItem", {"TableName": "app", "Item": orjson.loads(orjson.dumps(item))})
    return database


def _said(browser: Browser, path: str) -> str:
    status, text = browser.ask(path)
    assert status == 200, text
    return " ".join(parsed(text).text.split())


def _rules(keys: list[tuple[str, str]]) -> set[tuple[str, str, str]]:
    found = proposed(TABLE, [_item(PK=partition, SK=sort) for partition, sort in keys])
    return {(rule.name, rule.partition, rule.sort) for rule in found}


def test_patterns_of_keys() -> None:
    for keys, expected in [
        ([("USER#1", "PROFILE"), ("USER#ann", "ORDER#2026-01-01")],
         {("User profile", "USER#*", "PROFILE"), ("User order", "USER#*", "ORDER#*")}),
        ([("user:1", "profile"), ("user:2", "profile"), ("user:2", "order:1")],
         {("User profile", "user:*", "profile"), ("User order", "user:*", "order:*")}),
        ([("TENANT#a#USER#b", "TENANT#a#USER#b")],
         {("Tenant user", "TENANT#*#USER#*", "TENANT#*#USER#*")}),
        ([("ann", "2026-01-01"), ("ann", "2026-01-02"), ("bob", "2026-01-03")], {("Item", "*", "*")}),
        ([("SETTINGS", "a"), ("SETTINGS", "b")], {("Settings", "SETTINGS", "*")}),
        ([(f"{chr(65 + number)}X#1", "META") for number in range(13)], {("Meta", "*#*", "META")}),
        ([("#", "")], {("Item", "#", "*")}),
    ]:  # fmt: skip
        assert _rules(keys) == expected


def test_items_without_patterns_are_told_apart_by_type_or_attributes() -> None:
    typed = [_item(PK=str(number), SK="x1", type="cat" if number % 2 else "dog") for number in range(9)]
    assert [(rule.name, rule.attribute, rule.value) for rule in proposed(TABLE, typed)] == [
        ("dog", "type", "dog"),
        ("cat", "type", "cat"),
    ]
    kinds = {"name": "x", "age": "1"}, {"name": "x", "age": "2"}, {"title": "y"}
    plain = [_item(PK=f"p{number}", SK="x1", **kinds[number % 3]) for number in range(9)]
    assert {(rule.name, rule.has) for rule in proposed(TABLE, plain)} == {
        ("Item with age", ("age", "name")),
        ("Item with title", ("title",)),
    }


parts = st.sampled_from(["USER", "a", "1", "#", ":", "ORDER", "*", "\n", ""])
texts = st.lists(parts, max_size=6).map("".join)


@settings(max_examples=150)
@given(
    keys=st.lists(st.tuples(texts, texts), max_size=12),
    extra=st.lists(st.dictionaries(st.sampled_from(["type", "x", "GSI1PK", "GSI1SK"]), texts), max_size=12),
)
def test_every_item_of_a_sample_is_of_one_entity(
    keys: list[tuple[str, str]], extra: list[dict[str, str]]
) -> None:
    items = [
        _item(PK=f"k{partition}", SK=f"s{sort}", **more)
        for (partition, sort), more in zip(keys, extra, strict=False)
    ]
    sample = entities_of([TABLE, INDEX], items, (), 0.0)
    assert sample.others == []
    assert sum(len(entity.items) for entity in sample.entities) == len(items)
    assert len({entity.rule.name for entity in sample.entities}) == len(sample.entities)
    for entity in sample.entities:
        assert all(fits(entity.rule, TABLE, item) for item in entity.items)
        for use in entity.uses:
            assert all(condition.values for condition in conditions_of(use))
    graph = graph_of(sample)
    for box in graph.entities + graph.partitions:
        assert 0 <= box.x <= WIDTH - graph.box_width
        assert 0 <= box.y <= graph.height - graph.box_height
    assert len({(box.x, box.y) for box in graph.partitions}) == len(graph.partitions)


def test_entities_are_listed_with_their_counts_and_attributes(app: Database, browser: Browser) -> None:
    status, text = browser.ask("/console/t/app/entities")
    said = " ".join(parsed(text).text.split())
    assert status == 200
    assert "in a sample of 25 items" in said
    for shown in ("User order Name PK like SK like 18 items, 72 %", "6 items, 24 %", "total number"):
        assert shown in said
    assert 'value="USER#*"' in text
    [example] = re.findall(r'href="([^"]+)" aria-label="An example of Config"', text)
    assert browser.ask(example.replace("&amp;", "&"))[0] == 200


def test_the_graph_shows_who_shares_partitions(app: Database, browser: Browser) -> None:
    _, text = browser.ask("/console/t/app/entities?view=graph")
    titles = re.findall(r"<title>([^<]+)</title>", text.partition("<svg")[2])
    assert set(titles) == {
        *("User order", "User profile", "Config", "the table: USER#*", "the table: CONFIG", "GSI1: STATUS#*"),
    }
    assert len(titles) == 6
    assert text.count('<path class="line') == 4


def test_access_patterns_lead_to_the_builder_which_serves_them(app: Database, browser: Browser) -> None:
    _, text = browser.ask("/console/t/app/entities?view=access")
    said = parsed(text).text
    for words in ("one User order", "each User order of one USER#*, in the order of SK", "one User profile"):
        assert words in said
    assert "each User order of one STATUS#*, in the order of GSI1SK" in said
    hrefs = [href.replace("&amp;", "&") for href in re.findall(r'<th scope="row"><a href="([^"]+)"', text)]
    assert len(hrefs) == 5
    for href in hrefs:
        planned = _said(browser, href + "&run=1")
        assert "Query reads the" in planned
        assert "No items have this key" not in planned


def test_items_are_shown_with_their_entities(app: Database, browser: Browser) -> None:
    _, text = browser.ask("/console/t/app/entities?view=items")
    assert len(re.findall(r'<td class="side"><span class="tag', text)) == 25
    assert "&lt;b&gt;" in text
    _, text = browser.ask("/console/t/app/entities?view=items&entity=Config")
    assert len(re.findall(r'<td class="side"><span class="tag', text)) == 1
    assert "no items of" in _said(browser, "/console/t/app/entities?view=items&entity=Other")
    assert browser.ask("/console/t/app/entities?view=other")[0] == 400
    assert browser.ask("/console/t/nothing/entities")[0] == 404


def _keep(browser: Browser, *rules: dict[str, Any]) -> tuple[int, Any]:
    return browser.post("/console/entities", {"table": "app", "rules": [*rules]})


def test_corrections_are_kept_for_all_browsers(app: Database) -> None:
    admin = bind_admin(0)
    with running(app, admin=admin):
        browser, other = opened(admin), opened(admin)
        early = {"name": "Early <order>", "partition": "USER#*", "sort": "ORDER#2026-01-*"}
        assert _keep(browser, early) == (200, {"href": "/console/t/app/entities"})
        said = _said(other, "/console/t/app/entities")
        assert "Somebody corrected them" in said
        assert re.search(r"Early <order> Name PK like SK like 6 items, 24 %", said)
        assert re.search(r"User order Name PK like SK like 12 items, 48 % .{0,25}proposed", said), said
        assert _keep(other)[0] == 200
        assert "Early" not in _said(browser, "/console/t/app/entities")


def test_an_entity_without_items_and_a_table_without_items(app: Database, browser: Browser) -> None:
    assert _keep(browser, {"name": "None", "partition": "NONE#*", "sort": ""})[0] == 200
    for view in ("list", "graph", "access", "items"):
        assert browser.ask(f"/console/t/app/entities?view={view}")[0] == 200
    assert "0 items, 0 %" in _said(browser, "/console/t/app/entities")
    app.execute("CreateTable", orjson.loads(orjson.dumps(APP | {"TableName": "empty"})))
    for view in ("list", "graph", "access", "items"):
        assert "no items here yet" in _said(browser, f"/console/t/empty/entities?view={view}")
    kept = {"table": "empty", "rules": [{"name": "x", "partition": "*"}]}
    assert browser.post("/console/entities", kept)[0] == 200
    for view in ("list", "graph", "access", "items"):
        assert browser.ask(f"/console/t/empty/entities?view={view}")[0] == 200


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ([{"name": " ", "partition": "*"}], "Give it a name"),
        ([{"name": "x", "partition": "*" * 201}], "at most 200 characters"),
        ([{"name": "x", "partition": "*"}] * 61, "at most 60 entities"),
        ([{"name": "x"}], "partition"),
    ],
)
def test_what_cannot_be_kept(app: Database, browser: Browser, rules: list[dict[str, Any]], says: str) -> None:
    status, answer = _keep(browser, *rules)
    assert (status, says in answer["error"]) == (400, True), answer


@given(text=texts, pattern=texts)
def test_a_star_stands_for_any_text(text: str, pattern: str) -> None:
    expression = ".*".join(map(re.escape, pattern.split("*")))
    assert like(text, pattern) == bool(re.fullmatch(expression, text, re.DOTALL))


def test_hostile_patterns_are_matched_in_time() -> None:
    item = _item(PK="a" * 2_000, SK="x")
    assert not fits(EntityRule(name="x", partition="*a" * 90 + "*b", sort="*"), TABLE, item)
