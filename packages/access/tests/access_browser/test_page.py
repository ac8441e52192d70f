"""The page about access in a real browser: light and dark, wide and narrow; a key is made and deleted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from playwright.sync_api import expect

from access_pictures import FOLDER, PAGES, begin
from console_browsing import SCHEMES, Browsers, check_long, check_page, console, phone
from console_pictures import check
from hashrange.database import Database

guarded = partial(console, begin)
PATH = PAGES["access"]


def test_the_docs_show_every_picture_and_no_others() -> None:
    check(FOLDER, PAGES, FOLDER.parent / "access.md")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("begin_", [begin, lambda _: None], ids=["with keys", "without keys"])
def test_the_page_is_accessible_and_fits_a_phone(
    browsers: Browsers, scheme: str, begin_: Callable[[Database], object]
) -> None:
    with console(begin_) as (_, admin), browsers.page(admin, **phone(scheme)) as page:
        page.goto(admin.url + PATH)
        check_page(page, PATH, scheme)


def test_a_secret_is_shown_once_and_copied(browsers: Browsers) -> None:
    permissions = ["clipboard-read", "clipboard-write"]
    with guarded() as (_, admin), browsers.page(admin, permissions=permissions) as page:
        page.goto(admin.url + PATH)
        page.get_by_role("textbox", name="User").fill("alice")
        page.get_by_role("button", name="Make a key").click()
        made = page.get_by_role("region", name="The new key of alice")
        credentials = made.get_by_label("Credentials", exact=True).inner_text().strip()
        assert len(credentials.splitlines()) == 2
        check_page(page, PATH, "light")
        made.get_by_role("button", name="Copy").click()
        made.get_by_text("Copied", exact=True).wait_for()
        assert page.evaluate("navigator.clipboard.readText()").strip() == credentials
        made.get_by_role("link", name="I have copied it").click()
        rows = page.get_by_role("region", name="Access keys").locator("tbody tr")
        expect(rows).to_have_count(4)
        secret = credentials.rpartition("=")[2]
        assert secret not in page.content()
        check_long(page, PATH)


def test_a_key_is_rotated_and_deleted_after_a_question(browsers: Browsers) -> None:
    with guarded() as (_, admin), browsers.page(admin) as page:
        page.goto(admin.url + PATH)
        keys = page.get_by_role("region", name="Access keys").locator("tbody tr")
        name = keys.first.locator("th").inner_text()
        keys.first.get_by_role("button", name="Rotate").click()
        page.get_by_text(f"The key {name} counts for a day more.").wait_for()
        page.get_by_role("link", name="I have copied it").click()
        expect(keys).to_have_count(4)
        for answer, left in (("Cancel", 4), ("Delete the key", 3)):
            page.get_by_role("button", name=f"Delete {name}").click()
            page.get_by_role("dialog").get_by_role("button", name=answer).click()
            expect(keys).to_have_count(left)
        expect(page.get_by_text(name)).to_have_count(0)
