"""Saved queries: kept by the server, for all browsers, as long as its store."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import postgres
from consoles import Browser, fill, opened, parsed
from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.server import running
from hashrange.tables.inspection.check import check
from hashrange_console import stored

ADDRESS = "/console/ask?table=orders&attr=pk&op=%3D&type=S&value=a&value2="


def _save(browser: Browser, name: str, address: str = ADDRESS, before: str = "") -> tuple[int, Any]:
    return browser.post("/console/saved", {"name": name, "address": address, "before": before})


def test_a_query_is_saved_for_all_browsers_renamed_and_deleted(orders: Database) -> None:
    admin = bind_admin(0)
    with running(orders, admin=admin):
        browser, other = opened(admin), opened(admin)
        looked_at = ADDRESS + "&attr=&op=%3D&type=S&value=&value2=&run=1&start=x"
        assert _save(browser, " orders  of <ann> ", looked_at) == (200, {"name": "orders of <ann>"})
        _, text = other.ask("/console/ask")
        assert "orders of &lt;ann&gt;" in text
        assert f'href="{ADDRESS.replace("&", "&amp;")}"' in text
        assert "pk = a" in parsed(text).text
        assert other.ask(ADDRESS + "&run=1")[0] == 200
        assert _save(other, "renamed", before="orders of <ann>")[0] == 200
        assert _save(browser, "again", before="orders of <ann>")[0] == 400
        _, text = browser.ask("/console/ask?tab=partiql")
        assert ("renamed" in text, "&lt;ann&gt;" in text) == (True, False)
        assert _save(browser, "renamed", "/console/ask?tab=partiql&statement=SELECT")[0] == 400
        for _ in range(2):
            assert browser.post("/console/saved/delete", {"name": "renamed"}) == (200, {})
        assert "There are no saved queries yet" in browser.ask("/console/ask")[1]


@pytest.mark.parametrize(
    ("name", "address", "says"),
    [
        ("", ADDRESS, "Give it a name"),
        ("n" * 101, ADDRESS, "at most 100"),
        ("x", "https://example.org/", "Only a page"),
        ("x", "//example.org/console/ask?x=1", ""),
        ("x", "/console", "Only a page"),
        ("x", "/console/ask", "Only a page"),
        ("x", "javascript:alert(1)", "Only a page"),
        ("x", ADDRESS + "v" * 20_000, "too long"),
    ],
)
def test_what_cannot_be_saved(orders: Database, browser: Browser, name: str, address: str, says: str) -> None:
    status, answer = _save(browser, name, address)
    if says:
        assert (status, says in answer["error"]) == (400, True)
    else:
        assert "example.org" not in browser.ask("/console/ask")[1]


def test_there_is_room_for_so_many(
    orders: Database, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "QUERIES_MAX", 2)
    assert [_save(browser, name)[0] for name in ("a", "b", "c")] == [200, 200, 400]
    assert _save(browser, "d", before="a")[0] == 200


def test_saved_queries_survive_a_restart_and_the_store_is_sound(tmp_path: Path) -> None:
    for number in range(2):
        with Database.open(tmp_path / "data") as database:
            admin = bind_admin(0)
            with running(database, admin=admin):
                browser = opened(admin)
                if not number:
                    fill(database)
                    assert _save(browser, "é/kept")[0] == 200
                assert "é/kept" in browser.ask("/console/ask")[1]
            assert list(check(database.engine)) == []


def test_saved_queries_on_postgres_are_those_of_all_servers(postgres_url: str) -> None:
    from hashrange_postgres import PostgresEngine

    schema = postgres.new_schema()
    browsers: list[Browser] = []
    with ExitStack() as stack:
        for _ in range(2):
            engine = PostgresEngine(postgres_url, schema=schema)
            database = stack.enter_context(Database(engine))
            admin = bind_admin(0)
            stack.enter_context(running(database, admin=admin))
            browsers.append(opened(admin))
        assert _save(browsers[0], "mine")[0] == 200
        assert _save(browsers[1], "mine")[0] == 400
        assert "mine" in browsers[1].ask("/console/ask")[1]
        assert browsers[1].post("/console/saved/delete", {"name": "mine"})[0] == 200
        assert "There are no saved queries yet" in browsers[0].ask("/console/ask")[1]
