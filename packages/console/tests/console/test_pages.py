"""The pages of the console and the data endpoint below them: grids, queries, statements, code, escaping."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consoles import (
    CREATE,
    EVERY_TYPE,
    KEY,
    PAGES,
    Browser,
    opened,
    parsed,
    put,
    stored,
)  # fmt: skip
from hashrange.cli.admin import bind_admin
from hashrange.database import Database, Settings
from hashrange.server import running
from hashrange_console import code, looks
from hashrange_console import values as shown
from hashrange_console.reach import Refused, key_of


def test_the_data_endpoint_answers_as_dynamodb_does(orders: Database, browser: Browser) -> None:
    sent = {"TableName": "orders", "ReturnConsumedCapacity": "TOTAL"}
    status, answer = browser.post("/v1/data/Scan", sent)
    assert (status, answer["Items"], answer["Count"]) == (200, [EVERY_TYPE], 1)
    assert answer["ConsumedCapacity"]["CapacityUnits"] > 0
    status, answer = browser.post("/v1/data/Scan", {"TableName": "nothing"})
    assert status == 400
    assert answer["__type"].endswith("#ResourceNotFoundException")
    assert browser.post("/v1/data/Unknown", {})[1]["__type"].endswith("#UnknownOperationException")
    assert browser.post("/v1/data/Scan", [])[1]["__type"].endswith("#SerializationException")
    assert browser.post("/v1/data/PutItem", {"TableName": "orders", "Item": EVERY_TYPE}) == (200, {})


def test_an_unknown_address_is_a_page_that_leads_on(orders: Database, browser: Browser) -> None:
    for path in ("/console/nothing", "/console/t/orders/nothing", "/console/static/nothing"):
        status, page = browser.ask(path)
        assert (status, f"no page {path}" in page) == (404, True)
        assert 'type="search" value=""' in page
        assert '<a class="button" href="/console">All tables</a>' in page


def test_an_empty_table_offers_what_fills_it(orders: Database, browser: Browser) -> None:
    assert "There are no items here" not in browser.ask("/console/t/orders")[1]
    orders.execute("DeleteItem", {"TableName": "orders", "Key": dict(KEY)})
    page = browser.ask("/console/t/orders")[1]
    assert "There are no items here" in page
    assert [page.count(f'href="/console/t/orders/{way}"') for way in ("import", "new")] == [1, 1]


def test_the_data_endpoint_reads_the_tables_of_a_scope() -> None:
    with Database.in_memory(settings=Settings(separate_accounts=True, separate_regions=True)) as database:
        admin = bind_admin(0)
        with running(database, admin=admin):
            browser = opened(admin)
            scope = "111111111111/eu-west-1"
            assert browser.post(f"/v1/data/CreateTable?scope={quote(scope)}", CREATE)[0] == 200
            assert browser.post("/v1/data/DescribeTable", {"TableName": "orders"})[0] == 400
            _, text = browser.ask("/console")
            hrefs = re.findall(r'href="(/console/t/[^"]+)"', text)
            assert len(hrefs) == 2
            assert [browser.ask(href)[0] for href in hrefs] == [200, 200]
            assert browser.ask("/console/t/orders")[0] == 404


def test_pages_of_a_grid_lead_forwards_and_back(orders: Database, browser: Browser) -> None:
    for number in range(120):
        put(orders, {"pk": {"S": "b"}, "sk": {"N": str(number)}, "kind": {"S": "x"}})
    seen: list[list[str]] = []
    path = "/console/t/orders?pk=b"
    while path:
        _, text = browser.ask(path)
        seen.append(re.findall(r'class="v-N"[^>]*>(\d+)<', text))
        [path] = [*re.findall(r'rel="next" href="([^"]+)"', text), ""][:1]
        path = path.replace("&amp;", "&")
    assert [number for page in seen for number in page] == [str(number) for number in range(120)]
    for page in reversed(seen[:-1]):
        [back] = re.findall(r'rel="prev" href="([^"]+)"', text)
        _, text = browser.ask(back.replace("&amp;", "&"))
        assert re.findall(r'class="v-N"[^>]*>(\d+)<', text) == page
    assert 'rel="prev"' not in text


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("pk=b&op=begins_with&sk=1", "begins_with"),
        ("sk=1", "needs the partition key"),
        ("pk=b&op=drop&sk=1", "not a condition"),
        ("filter=%23x+%3D", "FilterExpression"),
        ("filter=a&values=%7B", "not JSON"),
        ("start=x", "not a key"),
        ("at=soon", "not a time"),
        ("at=1970-01-01", "past of table orders"),
        ("index=by-kind&at=now", "no past"),
    ],
)
def test_a_wrong_query_says_why(orders: Database, browser: Browser, query: str, says: str) -> None:
    status, text = browser.ask(f"/console/t/orders?{query}")
    assert (status, says in parsed(text).text) == (400, True), parsed(text).text


def test_conditions_on_the_sort_key(orders: Database, browser: Browser) -> None:
    for number in range(10):
        put(orders, {"pk": {"S": "b"}, "sk": {"N": str(number)}})
    for query, expected in {
        "sk=3&op=&sk2=&order=&at=&filter=&names=&values=": "3",
        "op=%3D&sk=3": "3",
        "op=%3C&sk=2": "01",
        "op=%3E%3D&sk=8": "89",
        "op=between&sk=4&sk2=6": "456",
        "op=%3E&sk=7&order=down": "98",
    }.items():
        _, text = browser.ask(f"/console/t/orders?pk=b&{query}")
        assert "".join(re.findall(r'class="v-N"[^>]*>(\d)<', text)) == expected


def test_a_statement_that_writes_is_run_by_its_button_only(orders: Database, browser: Browser) -> None:
    statement = "INSERT INTO orders VALUE {'pk': 'new', 'sk': 1}"
    status, text = browser.ask(f"/console/ask?statement={quote(statement)}")
    assert (status, "was not run yet" in text) == (200, True)
    assert stored(orders, {"pk": {"S": "new"}, "sk": {"N": "1"}}) is None
    assert browser.post("/console/run", {"statement": statement}) == (200, {"units": 1.0})
    assert stored(orders, {"pk": {"S": "new"}, "sk": {"N": "1"}}) is not None
    assert browser.post("/console/run", {"statement": statement})[1]["code"] == "DuplicateItemException"
    status, text = browser.ask("/console/ask?statement=SELECT")
    assert (status, 'role="alert"' in text) == (400, True)


def test_an_empty_server_shows_how_to_create_a_table(browser: Browser) -> None:
    _, text = browser.ask("/console")
    said = parsed(text).text
    assert "There are no tables yet" in said
    example = said[said.index("import boto3") : said.index("AWS CLI")]
    endpoint = re.search(r'endpoint_url="([^"]+)"', example)
    assert endpoint is not None
    compile(example, "example", "exec")


def test_code_keeps_binary_values_exact() -> None:
    request = {"Key": {"B": {"S": "name"}, "k": {"B": "AAECAw=="}}, "Set": {"BS": ["AA=="]}, "No": None}
    text = code.boto3("GetItem", request, "http://127.0.0.1:1")
    assert r"""{"B": b'\x00\x01\x02\x03'}""" in text
    compile(text, "example", "exec")
    assert 'Buffer.from("AAECAw==", "base64")' in code.javascript("GetItem", request, "http://x")
    assert "get-item" in code.aws_cli("GetItem", request, "http://x")


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@settings(max_examples=40)
@given(name=texts.filter(bool), value=texts)
def test_any_name_and_value_is_escaped(name: str, value: str) -> None:
    hostile = name + "\"><script>alert(1)</script>'" + name
    item = {**KEY, hostile: {"S": value + "</textarea><img src=x onerror=y>"}}
    environment = looks.environment()
    macros: Any = environment.get_template("parts.html").module
    cells = [shown.cell(one) for one in item.values()]
    page = str(macros.grid([{"href": "/x", "cells": cells}], list(item), {}, set(), hostile))
    page += "".join(str(macros.node(node)) for node in shown.tree(item, ["pk", "sk"]))
    page += str(macros.as_code(code.snippets("PutItem", {"Item": item}, hostile)))
    form = environment.from_string("<textarea name='e'>{{ t }}</textarea>")
    page += form.render(t=shown.typed_json(item))
    fields = parsed(page)
    assert not re.search(r"<(?:script|img|/textarea><img)", page)
    assert fields.inline == []
    assert orjson.loads(fields.fields["e"]) == item


def test_cells_say_their_types_and_are_short() -> None:
    for value, text in [
        ({"S": "42"}, '"42"'),
        ({"S": "x"}, "x"),
        ({"N": "1" * 38}, "1" * 38),
        ({"BOOL": True}, "true"),
        ({"NULL": True}, "null"),
        ({"SS": ["1", "b"]}, '{"1", b}'),
        ({"L": [{"N": "1"}, {"M": {"a": {"S": ""}}}]}, '[1, {a: ""}]'),
        ({"B": "AAECAw=="}, "AAECAw== · 4 B"),
    ]:
        cell = shown.cell(value)  # type: ignore[arg-type]
        assert cell is not None
        assert (cell.text, cell.title) == (text, "")
    large = shown.cell({"S": "x" * 400_000})
    assert large is not None
    assert len(large.text) == shown.CELL_CHARACTERS_MAX
    assert len(large.title) == shown.TITLE_CHARACTERS_MAX
    [node] = shown.tree({"big": {"S": "x" * 400_000}}, [])
    assert node.text + node.rest == "x" * 400_000


def test_plain_json_has_all_digits() -> None:
    item: shown.Item = {"n": {"N": "1" * 38}, "s": {"NS": ["2", "0.10"]}, "m": {"M": {"x": {"NULL": True}}}}
    text = shown.plain_json(item)
    assert f'"n": {"1" * 38}' in text
    assert "[2, 0.10]" in text
    assert '{"x": null}' in text


def test_a_key_in_an_address_must_be_one() -> None:
    for text in ("", "[]", "{}", "x"):
        with pytest.raises(Refused, match="not a key"):
            key_of(text)


def test_every_page_counts_one_thing_as_one_and_lets_code_be_copied(
    orders: Database, browser: Browser
) -> None:
    nouns = "items|attributes|entities|requests|units|changes|versions|members|rows|indexes|records"
    several = re.compile(rf"(?<![\d.,])\b1 (?:(?:capacity|read|write|rarer|more) )?(?:{nouns})\b")
    for path in PAGES:
        page = browser.ask(path)[1]
        assert several.findall(" ".join(parsed(page).text.split())) == [], path
        assert page.count("<pre") <= page.count("data-copy"), path
