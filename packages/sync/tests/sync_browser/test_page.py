"""The page about sync in a real browser: light and dark, wide and narrow; an image is restored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from console_browsing import SCHEMES, Browsers, check_long, check_page, console, phone
from console_pictures import check
from hashrange import client
from hashrange.database import Database
from hashrange_sync.stored.status import KEY
from sync_pictures import FOLDER, PAGES, begin
from worlds import create

PATH = PAGES["sync"]
WIDE: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}


def create_orders(database: Database) -> None:
    """Make the table again, with the key that the items of the conflicts have."""
    database.execute("DeleteTable", {"TableName": "orders"})
    create(database, "orders", "pk")


def test_the_docs_show_every_picture_and_no_others() -> None:
    check(FOLDER, PAGES, FOLDER.parent / "sync.md")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("begin_", [begin, lambda _: None], ids=["with pairs", "without pairs"])
def test_the_page_is_accessible_and_fits_a_phone(
    browsers: Browsers, scheme: str, begin_: Callable[[Database], object]
) -> None:
    for options in (phone(scheme), {"color_scheme": scheme, **WIDE}):
        with console(begin_) as (_, admin), browsers.page(admin, **options) as page:
            page.goto(admin.url + PATH)
            check_page(page, PATH, scheme)
            check_long(page, PATH)


def test_an_item_is_restored_after_a_question(browsers: Browsers) -> None:
    with console(begin) as (database, admin), browsers.page(admin, **WIDE) as page:
        create_orders(database)
        page.goto(admin.url + PATH)
        conflict = page.get_by_role("row", name="order#1041")
        conflict.get_by_text("Both items").click()
        for answer, items in (("Cancel", 0), ("Restore the cloud’s item", 1)):
            conflict.get_by_role("button", name="Restore").first.click()
            page.get_by_role("dialog").get_by_role("button", name=answer).click()
            if items:
                page.get_by_role("status").get_by_text("The cloud’s item is in orders again.").wait_for()
            found = client.connect(database).scan(TableName="orders")["Items"]
            assert [item["state"]["S"] for item in found] == ["paid"] * items


def test_the_page_follows_the_pairs(browsers: Browsers) -> None:
    with console(begin) as (database, admin), browsers.page(admin, **WIDE) as page:
        page.goto(admin.url + PATH)
        stock = page.get_by_role("region", name="stock")
        stock.get_by_text("stopped", exact=True).wait_for()
        edge: Any = client.connect(database)
        item = edge.get_item(TableName="hashrange-sync.stock", Key=KEY)["Item"]
        item["text"] = {"S": item["text"]["S"].replace('"stopped"', '"in step"')}
        edge.put_item(TableName="hashrange-sync.stock", Item=item)
        stock.get_by_text("in step", exact=True).wait_for(timeout=20_000)
