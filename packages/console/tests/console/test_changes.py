"""Saving, deleting and bringing back items in the console: nothing is lost, nothing overwritten."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest

from consoles import (
    EVERY_TYPE,
    ITEM,
    KEY,
    Browser,
    fill,
    opened,
    parsed,
    put,
    stored,
)  # fmt: skip
from hashrange.cli.admin import bind_admin
from hashrange.clock import VirtualClock
from hashrange.database import Database
from hashrange.server import running
from hashrange.storage.memory import MemoryEngine
from hashrange_console import looks
from hashrange_console.items import changes


def test_an_edit_that_changes_nothing_is_byte_for_byte_what_was_stored(
    orders: Database, browser: Browser
) -> None:
    fields = parsed(browser.ask(ITEM + "&view=edit&as=dynamodb")[1]).fields
    assert orjson.loads(fields["edited"]) == EVERY_TYPE
    assert fields["edited"] == fields["shown"]
    saved = {"table": "orders", "edited": fields["edited"], "shown": fields["shown"]}
    status, answer = browser.post("/console/save", saved)
    assert (status, "no changes to save" in answer["error"]) == (400, True)
    # The same text makes the same item again, in another place.
    item = orjson.loads(fields["edited"]) | {"pk": {"S": "copy"}}
    status, answer = browser.post("/console/save", {"table": "orders", "edited": orjson.dumps(item).decode()})
    assert status == 200
    assert stored(orders, {"pk": {"S": "copy"}, "sk": KEY["sk"]}) == EVERY_TYPE | {"pk": {"S": "copy"}}


def _save(browser: Browser, edited: Any, before: Any = EVERY_TYPE) -> tuple[int, Any]:
    text = orjson.dumps(before).decode() if before is not None else ""
    return browser.post(
        "/console/save", {"table": "orders", "edited": orjson.dumps(edited).decode(), "shown": text}
    )


def test_a_save_writes_what_was_changed(orders: Database, browser: Browser) -> None:
    edited = {**EVERY_TYPE, "empty": {"S": "now"}, "added": {"NS": ["1"]}}
    del edited["null"]
    status, answer = _save(browser, edited)
    assert status == 200
    assert answer["href"].startswith(_item_href() + "&saved=")
    assert stored(orders) == edited
    assert browser.ask(answer["href"])[0] == 200


@pytest.mark.parametrize("change", ["an attribute that was edited", "another attribute", "deletion"])
def test_a_save_is_refused_if_somebody_changed_the_item(
    orders: Database, browser: Browser, change: str
) -> None:
    theirs: Any = {**EVERY_TYPE, "empty" if change.startswith("an ") else "yes": {"S": "theirs"}}
    if change == "deletion":
        orders.execute("DeleteItem", {"TableName": "orders", "Key": orjson.loads(orjson.dumps(KEY))})
        theirs = None
    else:
        put(orders, theirs)
    for path, sent in {
        "/console/save": {"edited": orjson.dumps(EVERY_TYPE | {"empty": {"S": "ours"}}).decode()},
        "/console/delete": {},
    }.items():
        body = {"table": "orders", "shown": orjson.dumps(EVERY_TYPE).decode(), **sent}
        status, answer = browser.post(path, body)
        assert (status, answer["code"]) == (400, changes.CONFLICT)
        assert "Somebody changed or deleted" in answer["error"]
    assert stored(orders) == theirs


def test_an_attribute_that_somebody_added_stays_and_is_not_overwritten(
    orders: Database, browser: Browser
) -> None:
    put(orders, EVERY_TYPE | {"theirs": {"S": "kept"}})
    assert _save(browser, EVERY_TYPE | {"theirs": {"S": "ours"}})[0] == 400
    assert _save(browser, EVERY_TYPE | {"empty": {"S": "ours"}})[0] == 200
    assert stored(orders) == EVERY_TYPE | {"theirs": {"S": "kept"}, "empty": {"S": "ours"}}


def test_a_new_item_overwrites_none(orders: Database, browser: Browser) -> None:
    status, answer = _save(browser, {**KEY, "mine": {"S": "x"}}, None)
    assert (status, "already" in answer["error"]) == (400, True)
    assert stored(orders) == EVERY_TYPE


def test_an_item_with_very_many_attributes_is_saved(orders: Database, browser: Browser) -> None:
    many = {**KEY, **{f"a{number}": {"N": str(number)} for number in range(1_000)}}
    put(orders, many)
    edited = many | {"a7": {"N": "-7"}, "new": {"S": "x"}}
    assert _save(browser, edited, many)[0] == 200
    assert stored(orders) == edited
    assert _save(browser, many | {"a7": {"N": "9"}}, many)[0] == 400


def _item_href() -> str:
    return looks.href("/console/t/orders/item", key=orjson.dumps(KEY).decode())


@pytest.mark.parametrize(
    ("edited", "says"),
    [
        ("{", "not JSON"),
        ("[]", "a JSON object"),
        ('{"sk": {"N": "1"}}', "needs its key: pk"),
        ('{"pk": {"S": "b"}, "sk": {"N": "1"}}', "key of an item cannot be changed"),
        ('{"pk": {"S": "a"}, "sk": {"N": 1234567890123456789}}', 'written as {"N": "12.5"}'),
        ('{"pk": {"S": "a"}, "sk": {"N": "1"}, "x": {"L": [{"M": {"y": "z"}}]}}', "x[0].y: a value is"),
        ('{"pk": {"S": "a"}, "sk": {"N": "1"}, "x": {"S": "y", "N": "1"}}', "x: a value is"),
        ('{"pk": {"S": "a"}, "sk": {"N": "1"}, "x": {"Q": "y"}}', "x: a value is"),
    ],
)
def test_a_wrong_edit_says_where_it_is_wrong(
    orders: Database, browser: Browser, edited: str, says: str
) -> None:
    body = {"table": "orders", "edited": edited, "shown": orjson.dumps(EVERY_TYPE).decode()}
    status, answer = browser.post("/console/save", body)
    assert (status, says in answer["error"]) == (400, True), answer
    assert stored(orders) == EVERY_TYPE


def test_the_history_of_an_item_and_a_version_brought_back() -> None:
    clock = VirtualClock(1_767_225_600, frozen=True)
    with Database(MemoryEngine(), clock=clock) as database:
        fill(database)
        for text in ("first", "second"):
            clock.advance(60)
            put(database, EVERY_TYPE | {"empty": {"S": text}})
        clock.advance(60)
        admin = bind_admin(0)
        with running(database, admin=admin):
            browser = opened(admin)
            said = parsed(browser.ask(ITEM + "&view=history")[1]).text
            assert re.search(r'empty\s*"first"\s*→\s*became\s*"second"', said)
            assert "attributes" not in said
            _, text = browser.ask(ITEM + "&view=history")
            moment = re.findall(r'data-to="([^"]+)"', text)[0]
            assert moment == "2026-01-01T00:01:00.000Z"
            assert "first" in browser.ask(ITEM + f"&at={moment}")[1]
            asked = {"table": "orders", "key": KEY, "to": moment}
            assert browser.post("/console/undo", asked)[1]["done"] == "restored"
            assert stored(database)["empty"] == {"S": "first"}
            _, text = browser.ask(ITEM + f"&view=history&before={moment}&after={moment}")
            assert "These two versions are equal" in text
            assert browser.ask(ITEM + "&at=1970-01-01")[0] == 400
