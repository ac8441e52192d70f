"""The query bar: what a pasted text means, and where it leads."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consoles import CREATE, EVERY_TYPE, KEY, Browser, opened, parsed, put
from hashrange.cli.admin import bind_admin
from hashrange.database import Database, Settings
from hashrange.interchange.plain_json import item_of
from hashrange.server import running
from hashrange_console.ask.pasted import Arn, Attributes, Statement, Unreadable, Words, meaning_of
from hashrange_console.values import plain_json, typed_json

DIGITS = "12345678901234567890123456789012345678"


def _leads(browser: Browser, text: str) -> str:
    status, _ = browser.ask(f"/console/find?text={quote(text)}")
    assert status == 303, text
    return browser.last.getheader("Location") or ""


@pytest.mark.parametrize(
    "text",
    [
        f'{{"pk": "a", "sk": {DIGITS}}}',
        f"{{'pk': 'a', 'sk': Decimal('{DIGITS}')}},",
        f"{{'pk': 'a', 'sk': {DIGITS}, }}",
        typed_json(KEY),
        typed_json(EVERY_TYPE),
        plain_json(EVERY_TYPE),
        orjson.dumps([EVERY_TYPE]).decode(),
        orjson.dumps({"TableName": "orders", "Key": KEY, "ConsistentRead": True}).decode(),
        orjson.dumps({"Item": EVERY_TYPE, "ResponseMetadata": {"RetryAttempts": 0}}).decode(),
        orjson.dumps({"PutRequest": {"Item": EVERY_TYPE}}).decode(),
        orjson.dumps({"eventName": "INSERT", "dynamodb": {"Keys": KEY, "NewImage": EVERY_TYPE}}).decode(),
        f"{{'pk': 'a', 'sk': Decimal('{DIGITS}'), 'b': Binary(b'\\x00'), 's': {{'x', 'y'}}, 'n': None}}",
    ],
)
def test_an_item_or_a_key_leads_to_the_item(orders: Database, browser: Browser, text: str) -> None:
    href = _leads(browser, text)
    assert urlsplit(href).path == "/console/t/orders/item"
    assert orjson.loads(parse_qs(urlsplit(href).query)["key"][0]) == KEY
    assert browser.ask(href)[0] == 200
    status, answer = browser.post("/console/find", {"text": text})
    assert (status, answer["href"]) == (200, href)


def test_a_part_of_a_key_leads_to_a_query(orders: Database, browser: Browser) -> None:
    assert _leads(browser, '{"pk": "a"}') == "/console/t/orders?pk=a"
    assert _leads(browser, "{'kind': 'x', 'other': 1}") == "/console/t/orders?index=by-kind&pk=x"
    for text, expected in {
        '{"pk": "a", "kind": "x"}': ["/console/t/orders?pk=a", "/console/t/orders?index=by-kind&amp;pk=x"],
        '{"pk": "nobody", "sk": 1, "kind": "x"}': ["there is no such item now", "index=by-kind&amp;pk=x"],
    }.items():
        status, page = browser.ask(f"/console/find?text={quote(text)}")
        assert status == 200
        assert all(words in page for words in expected), page


def test_names_arns_and_statements(orders: Database, browser: Browser) -> None:
    assert _leads(browser, "orders") == "/console/t/orders"
    assert _leads(browser, "ord") == "/console/t/orders"
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/orders"
    assert _leads(browser, arn) == "/console/t/orders"
    assert _leads(browser, f"{arn}/index/by-kind") == "/console/t/orders?index=by-kind"
    assert _leads(browser, f"{arn}/stream/2026-01-01T00:00:00.000") == "/console/t/orders"
    assert _leads(browser, "select * from orders") == "/console/ask?statement=select+%2A+from+orders"
    assert _leads(browser, "") == "/console/ask"


def test_a_word_leads_to_the_partition_that_has_it(orders: Database, browser: Browser) -> None:
    put(orders, {"pk": {"S": "USER#1"}, "sk": {"N": "1"}, "kind": {"S": "user"}})
    assert _leads(browser, "USER#1") == "/console/t/orders?pk=USER%231"
    assert _leads(browser, "user") == "/console/t/orders?index=by-kind&pk=user"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nothing-like-it", "no item has it as its partition key"),
        ('{"id": "a"}', "No table has a key among these attributes. Keys of tables here: orders: pk (S)"),
        ('{"pk": 1}', "Attributes of an item: pk (N)"),
        ("{'pk': open('x')}", "cannot be read"),
        ("{'pk': Decimal('x')}", "Decimal"),
        ('{"pk": "a"', "neither JSON"),
        ("[1, 2]", "paste one item"),
        ('{"pk": {"B": "%"}}', "base64"),
        ("{'pk': '\\ud800'}", "surrogates"),
        ("{'pk': " + "[" * 90 + "]" * 90 + "}", "No table has a key"),
        ("{'s': {1, 'x'}}", "is not a set"),
        ("{'s': {(1, 2)}}", "members of a set"),
        ("arn:aws:dynamodb:us-east-1:000000000000:table/other", "none of this name"),
    ],
)
def test_where_nothing_fits_the_page_says_what_was_understood(
    orders: Database, browser: Browser, text: str, says: str
) -> None:
    status, page = browser.ask(f"/console/find?text={quote(text)}")
    assert (status, says in parsed(page).text) == (200, True), parsed(page).text
    status, answer = browser.post("/console/find", {"text": text})
    assert (status, says in answer["error"]) == (400, True), answer


def test_a_server_without_tables(browser: Browser) -> None:
    for text in ("x", '{"pk": "a"}'):
        assert "There are no tables here" in browser.ask(f"/console/find?text={quote(text)}")[1]


def test_hostile_texts_are_no_items() -> None:
    for text in ("{" * 100_000, "[" * 100_000, "{'a': " + "-" * 10_000 + "1}", "{'a': " + "9" * 9_000 + "}"):
        assert isinstance(meaning_of(text), Unreadable)
    for text in ("{'a': 1 + 1}", "{**{}}", "{'a': (yield)}", "{'a': __import__('os')}", "{'\0': 1}"):
        assert isinstance(meaning_of(text), Unreadable), text


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
plain = st.recursive(
    st.one_of(
        texts,
        st.booleans(),
        st.none(),
        st.integers(-(10**37), 10**37),
        st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9),
        st.binary(max_size=6),
        st.sets(st.integers(0, 99), min_size=1, max_size=3),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


@given(item=st.dictionaries(texts, plain, min_size=1, max_size=4))
def test_what_python_prints_is_read_exactly(item: dict[str, Any]) -> None:
    meaning = meaning_of(repr(item))
    assert isinstance(meaning, Attributes)
    assert meaning.item == item_of(item)


@given(text=st.one_of(texts, st.text("{}[]()'\",:Decimal1b\\ ", max_size=20)))
def test_any_text_has_a_meaning(text: str) -> None:
    assert isinstance(meaning_of(text), Arn | Attributes | Statement | Unreadable | Words)


def test_numbers_keep_their_digits() -> None:
    for text in (f"{{'n': {DIGITS}.5, 'm': -1.10}}", f'{{"n": {DIGITS}.5, "m": -1.10}}'):
        meaning = meaning_of(text)
        assert isinstance(meaning, Attributes)
        assert meaning.item == {"n": {"N": f"{DIGITS}.5"}, "m": {"N": "-1.10"}}


def test_tables_of_every_account_and_region_are_looked_into() -> None:
    with Database.in_memory(settings=Settings(separate_accounts=True, separate_regions=True)) as database:
        admin = bind_admin(0)
        with running(database, admin=admin):
            browser = opened(admin)
            scopes = [f"111111111111/{region}" for region in ("eu-west-1", "us-west-2")]
            for scope in scopes:
                assert browser.post(f"/v1/data/CreateTable?scope={quote(scope)}", CREATE)[0] == 200
                put_one = {"TableName": "orders", "Item": EVERY_TYPE}
                assert browser.post(f"/v1/data/PutItem?scope={quote(scope)}", put_one)[0] == 200
            _, page = browser.ask(f"/console/find?text={quote(typed_json(KEY))}")
            assert page.count(">Item of orders<") == 2
            arn = "arn:aws:dynamodb:us-west-2:111111111111:table/orders"
            place = f"scope={quote(scopes[1], safe='')}"
            assert _leads(browser, arn) == f"/console/t/orders?{place}"
            assert browser.ask(f"/console/find?text=a&{place}")[0] == 303
            assert place in (browser.last.getheader("Location") or "")
            asked = f"/console/ask?table=orders&{place}&attr=pk&op=%3D&type=S&value=a&value2="
            for path in (f"{asked}&run=1", f"/console/ask?statement=SELECT%20*%20FROM%20orders&{place}"):
                status, page = browser.ask(path)
                assert (status, "us-west-2" in page, "Did cost" in page) == (200, True, True)
            assert "not found" in browser.ask("/console/ask?table=orders")[1]
            kept = {"table": "orders", "rules": [{"name": "Mine", "partition": "*"}]}
            assert browser.post(f"/console/entities?{place}", kept)[0] == 200
            for number, scope in enumerate(scopes):
                _, page = browser.ask(f"/console/t/orders/entities?scope={quote(scope)}")
                assert ("Mine" in page) == bool(number)
