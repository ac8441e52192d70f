"""What people come to the console for: how many clicks and keys each task takes, on a desk and on a phone,
and that nothing has to be scrolled to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Locator, Page

from console_browsing import PLACE, Browsers, console, create_table, enable_stream, phone, put
from hashrange.server.admin.port import Admin

DESK = {"viewport": {"width": 1440, "height": 900}}


@dataclass
class Hand:
    """A user at a page, who clicks only what can be seen. Typing a word counts as one key."""

    page: Page
    clicks: int = 0
    keys: int = 0

    def click(self, role: Any, name: str, within: Locator | None = None) -> None:
        found = (within or self.page).get_by_role(role, name=name, exact=True).first
        found.wait_for()
        box = found.bounding_box()
        assert box is not None
        assert self.page.viewport_size is not None
        assert box["y"] >= 0, name
        assert box["y"] + box["height"] <= self.page.viewport_size["height"], f"{name} is below the fold"
        assert box["x"] + box["width"] <= self.page.viewport_size["width"], f"{name} is past the right edge"
        found.click()
        self.clicks += 1

    def open(self, name: str) -> None:
        """Click what opens below its button."""
        summary = self.page.locator("summary", has_text=name).first
        box = summary.bounding_box()
        assert box is not None
        assert self.page.viewport_size is not None
        assert box["y"] + box["height"] <= self.page.viewport_size["height"], f"{name} is below the fold"
        summary.click()
        self.clicks += 1

    def type(self, text: str, *keys: str) -> None:
        """Type into the field that has the focus: a new page gives it after the page has loaded."""
        self.page.locator("input:focus, textarea:focus").wait_for()
        self.page.keyboard.insert_text(text)
        for key in keys:
            self.page.keyboard.press(key)
        self.keys += 1 + len(keys)


def _finds_a_table(hand: Hand) -> None:
    hand.page.keyboard.press("/")
    hand.keys += 1
    hand.type("orders", "Enter")
    hand.page.wait_for_url("**/console/t/orders")


def _queries_a_key(hand: Hand) -> None:
    hand.page.get_by_placeholder("partition key").click()
    hand.clicks += 1
    hand.type("a", "Enter")
    hand.page.wait_for_url("**pk=a**")


def _deletes_chosen_items(hand: Hand) -> None:
    for name in ("Select b, 0", "Select b, 1"):
        hand.click("checkbox", name)
    hand.click("button", "Delete")
    hand.click("button", "Delete 2 items")
    hand.page.get_by_text("Done: 2 deleted.").wait_for()


def _downloads(hand: Hand) -> None:
    hand.open("Download")
    with hand.page.expect_download():
        hand.click("button", "CSV with types")


def _begins_an_import(hand: Hand) -> None:
    hand.click("link", "Import")
    hand.page.wait_for_url("**/import")


def _edits_an_item(hand: Hand) -> None:
    hand.click("link", "Edit")
    hand.page.wait_for_url("**view=edit**")
    hand.page.get_by_label("Value of empty").click()
    hand.clicks += 1
    hand.type("x")
    hand.page.locator(".changes ins").wait_for()
    hand.click("button", "Save")
    hand.page.wait_for_url("**saved=**")


def _sees_what_has_changed(hand: Hand) -> None:
    hand.click("link", "History")
    hand.page.get_by_role("region", name="Versions").wait_for()


def _sees_changes_as_they_come(hand: Hand) -> None:
    hand.click("link", "Stream")
    hand.page.locator(".changes").first.wait_for()


def _brings_an_item_back(hand: Hand) -> None:
    hand.click("link", "Past")
    hand.click("checkbox", "Choose live 1")
    hand.click("button", "Restore…")
    with hand.page.expect_navigation():
        hand.click("button", "Restore", hand.page.get_by_role("dialog"))


def _makes_a_table(hand: Hand) -> None:
    hand.click("link", "New table")
    hand.page.wait_for_url("**/new-table")
    hand.type("made", "Tab")
    hand.type("pk", "Enter")
    hand.page.wait_for_url("**/console/t/made/about")


TASKS: dict[str, tuple[str, Callable[[Hand], None], tuple[int, int]]] = {
    "find a table": ("/console/faults", _finds_a_table, (0, 3)),
    "query a key": ("/console/t/orders", _queries_a_key, (1, 2)),
    "delete chosen items": ("/console/t/orders?pk=b", _deletes_chosen_items, (4, 0)),
    "download": ("/console/t/orders", _downloads, (2, 0)),
    "import": ("/console/t/orders", _begins_an_import, (1, 0)),
    "edit an item": (PLACE, _edits_an_item, (3, 1)),
    "see what has changed in an item": (PLACE, _sees_what_has_changed, (1, 0)),
    "see changes as they come": ("/console/t/orders", _sees_changes_as_they_come, (1, 0)),
    "bring an item back": ("/console/t/orders", _brings_an_item_back, (4, 0)),
    "make a table": ("/console", _makes_a_table, (1, 4)),
}
"""The tasks: where each begins, what is done, and the clicks and keys that it takes."""


@pytest.mark.parametrize("options", [DESK, phone("light") | {"viewport": {"width": 390, "height": 844}}])
def test_no_task_takes_more_clicks_or_a_scroll(browsers: Browsers, options: dict[str, Any]) -> None:
    with console() as (database, admin), browsers.page(admin, **options) as page:
        enable_stream(database)
        create_table(database, "others")
        put(database, 1, city={"S": "Bern"})
        for name, (path, does, allowed) in TASKS.items():
            assert _counted(page, admin, path, does) == allowed, name


def _counted(page: Page, admin: Admin, path: str, does: Callable[[Hand], None]) -> tuple[int, int]:
    page.goto(admin.url + path)
    hand = Hand(page)
    does(hand)
    return hand.clicks, hand.keys
