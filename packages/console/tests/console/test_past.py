"""The past of a table in the console: the slider, differences, items as of a moment, bringing back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from consoles import EVERY_TYPE, ITEM, KEY, Browser, fill, opened, parsed, put, stored
from hashrange.cli.admin import bind_admin
from hashrange.clock import VirtualClock
from hashrange.database import Database
from hashrange.server import running
from hashrange.storage.memory import MemoryEngine
from hashrange_console.past.table import PAGE_ITEMS

PAGE = "/console/t/orders/past"
BEFORE = "2026-01-01T00:05:00Z"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1_767_225_600, frozen=True)


@pytest.fixture
def old(clock: VirtualClock) -> Iterator[tuple[Database, Browser]]:
    """A table with a past of ten minutes: at `BEFORE` it has an item, and then others."""
    with Database(MemoryEngine(), clock=clock) as database:
        fill(database)
        put(database, item(1, x={"M": {"y": {"S": "old"}}}))
        clock.advance(600)
        put(database, item(1, x={"M": {"y": {"S": "new"}}}))
        put(database, item(2))
        database.execute("DeleteItem", {"TableName": "orders", "Key": dict(KEY)})
        clock.advance(60)
        admin = bind_admin(0)
        with running(database, admin=admin):
            yield database, opened(admin)


def item(number: int, **more: Any) -> dict[str, Any]:
    return {"pk": {"S": "b"}, "sk": {"N": str(number)}, **more}


def said(page: str) -> str:
    return " ".join(parsed(page).text.split())


def test_the_differences_between_two_moments(old: tuple[Database, Browser]) -> None:
    _, browser = old
    status, page = browser.ask(f"{PAGE}?at={BEFORE}")
    assert status == 200
    text = said(page)
    assert 'b · 1 changed x.y "old" → became "new" 2026-01-01 00:10:00' in text
    assert "b · 2 added" in text
    assert f"a · {KEY['sk']['N']} removed" in text
    assert 'min="1767225600" max="1767226260.0" step="1" value="1767225900.0"' in page
    assert "No item differs" in browser.ask(f"{PAGE}?at={BEFORE}&until=2026-01-01T00:09")[1]
    assert "No item differs" in browser.ask(f"{PAGE}?at=now")[1]
    # (an hour ago there was no table yet)
    assert "2026-01-01 00:00:00 UTC" in said(browser.ask(PAGE)[1])


def test_the_items_as_of_a_moment(old: tuple[Database, Browser]) -> None:
    _, browser = old
    _, page = browser.ask(f"{PAGE}?at={BEFORE}&show=items")
    assert "{y: old}" in said(page)
    assert KEY["sk"]["N"] in page
    [href, *_] = re.findall(r'href="(/console/t/orders/item[^"]+)"', page)
    assert "as of 2026-01-01T00:05:00.000Z" in said(browser.ask(href.replace("&amp;", "&"))[1])


@pytest.mark.parametrize("query", ["at=soon", "at=1970-01-01", "at=now&until=1970-01-01", "at=now&next=x",
                                   "at=now&show=items&next=x", "at=2027-01-01"])  # fmt: skip
def test_a_wrong_moment_says_why(old: tuple[Database, Browser], query: str) -> None:
    status, page = old[1].ask(f"{PAGE}?{query}")
    assert status == 400
    assert re.search(r'role="alert" id="problem">[^<]+</p>', page)
    assert 'type="range"' in page
    typed = query.partition("&")[0].removeprefix("at=")
    assert typed == "now" or f'name="at" value="{typed}"' in page
    grid = old[1].ask(f"/console/t/orders?at={typed}")[1]
    assert typed == "now" or f'name="at" value="{typed}"' in grid
    assert "This is the table as of" not in grid or typed == "now"


def test_a_table_without_recovery_offers_it(database: Database, browser: Browser) -> None:
    fill(database)
    off = {"PointInTimeRecoveryEnabled": False}
    database.execute(
        "UpdateContinuousBackups", {"TableName": "orders", "PointInTimeRecoverySpecification": off}
    )
    status, page = browser.ask(PAGE)
    assert (status, 'data-post="/console/recovery"' in page) == (200, True)
    assert browser.post("/console/recovery", {"table": "orders", "on": True, "days": ""})[0] == 200
    assert 'type="range"' in browser.ask(PAGE)[1]
    assert browser.ask("/console/t/nothing/past")[0] == 404


def test_items_are_brought_back_after_a_try_that_writes_nothing(old: tuple[Database, Browser]) -> None:
    database, browser = old
    unchanged = {"pk": {"S": "c"}, "sk": {"N": "1"}}
    body = {"table": "orders", "keys": [dict(KEY), item(1), item(2), unchanged], "to": BEFORE}
    counts = {"restored": 2, "deleted": 1, "unchanged": 1}
    status, answer = browser.post("/console/past/try", body)
    assert (status, answer["counts"]) == (200, counts)
    assert stored(database, item(2)) == item(2)
    status, answer = browser.post("/console/past/back", body)
    assert (status, answer["counts"]) == (200, counts)
    assert stored(database) == EVERY_TYPE
    assert stored(database, item(1)) == item(1, x={"M": {"y": {"S": "old"}}})
    assert stored(database, item(2)) is None
    assert "No item differs" in browser.ask(answer["href"])[1]
    for wrong in ([], [dict(KEY)] * (PAGE_ITEMS + 1)):
        assert browser.post("/console/past/try", {**body, "keys": wrong})[0] == 400
        assert browser.post("/console/past/back", {**body, "keys": wrong})[0] == 400
    for wrong_key in ({}, {"pk": {"S": "a"}}, {"pk": 1, "sk": []}):
        for path in ("/console/past/try", "/console/past/back"):
            assert browser.post(path, {**body, "keys": [wrong_key]})[0] == 400


def test_many_differences_come_in_pages(old: tuple[Database, Browser]) -> None:
    database, browser = old
    for number in range(100, 160):
        put(database, item(number))
    for query, count in (("", 63), ("&until=now&show=items", 62)):
        path, seen = f"{PAGE}?at={BEFORE if not query else 'now'}{query}", 0
        while path:
            _, page = browser.ask(path)
            seen += page.count('<th scope="row">')
            [path] = [*re.findall(r'rel="next" href="([^"]+)"', page), ""][:1]
            path = path.replace("&amp;", "&")
        assert seen == count


def test_a_slider_goes_over_the_versions_of_an_item(old: tuple[Database, Browser]) -> None:
    _, browser = old
    key = "%7B%22pk%22:%7B%22S%22:%22b%22%7D,%22sk%22:%7B%22N%22:%221%22%7D%7D"
    _, page = browser.ask(f"/console/t/orders/item?key={key}&view=history")
    assert 'min="1767225600.000" max="1767226200.000"' in page
    assert page.count('"></option>') == 3
    assert "as of" in said(browser.ask(f"/console/t/orders/item?key={key}&at=1767225700.250")[1])
    assert 'type="range"' in browser.ask(ITEM + "&view=history")[1]
