"""The lab's pages of the console in a real browser: light and dark, wide and narrow, by keyboard."""

from __future__ import annotations

from functools import partial

import pytest

from console_browsing import (
    LONG_INDEX,
    LONG_TABLE,
    SCHEMES,
    Browsers,
    check_long,
    check_page,
    console,
    fill_with_long,
    phone,
    put,
)
from hashrange.database import Database
from hashrange.prices import published
from hashrange_lab.money import meter

PAGES = (
    "/console/heat", "/console/costs", "/console/costs?by=caller", "/console/costs?by=index",
    "/console/costs?region=eu-central-1", "/console/costs/advice", "/console/capacity",
    "/console/capacity?hours=24", "/console/costs/plans", "/console/costs/plans?place=spent/by-sk&minimum=5",
    "/console/costs/plans?minimum=5&maximum=4", "/console/costs/plans?region=eu-west-3",
    "/console/lab",
)  # fmt: skip


def _begin(database: Database) -> None:
    meter.begin(database, published())
    database.part("lab", "recordings").directory = "recordings"
    database.lab.throttling.set(True)


counting = partial(console, _begin)


def test_every_page_opens_in_firefox(browsers: Browsers) -> None:
    with counting() as (_, admin), browsers.page(admin, "firefox") as page:
        for path in PAGES:
            page.goto(admin.url + path)
            assert page.get_by_role("heading", level=1).count() == 1, path


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_page_is_accessible_and_fits_a_phone(browsers: Browsers, scheme: str) -> None:
    with counting() as (database, admin), browsers.page(admin, **phone(scheme)) as page:
        for path in PAGES:
            page.goto(admin.url + path)
            if path == "/console/heat":
                put(database, 1, one={"S": "x" * 200})
                page.get_by_role("row").nth(1).wait_for(timeout=5_000)
            check_page(page, path, scheme)
            if path.startswith("/console/costs"):
                scrolled = "one => one.scrollWidth > one.clientWidth"
                assert not page.evaluate(f"[...document.querySelectorAll('.grid')].some({scrolled})"), path


@pytest.mark.parametrize("width", [390, 1100])
def test_long_names_stay_inside_the_window(browsers: Browsers, width: int) -> None:
    viewport = {"width": width, "height": 800}
    with counting() as (database, admin), browsers.page(admin, viewport=viewport) as page:
        fill_with_long(database)
        for path in (*PAGES, f"/console/costs/plans?place={LONG_TABLE}/{LONG_INDEX}"):
            page.goto(admin.url + path)
            check_long(page, path)


def test_the_heat_appears_as_it_comes(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin) as page:
        page.goto(admin.url + "/console/heat")
        put(database, 1)
        page.get_by_role("link", name="live", exact=True).wait_for()


def test_plans_are_compared_by_keyboard(browsers: Browsers) -> None:
    with counting() as (_, admin), browsers.page(admin) as page:
        page.goto(f"{admin.url}/console/costs/plans?place=spent/by-sk")
        page.get_by_label("Minimum units").fill("7")
        page.keyboard.press("Enter")
        page.wait_for_url("**minimum=7**")
        assert "7 read and 7 write units" in page.get_by_role("region", name="Plans", exact=True).inner_text()
        page.get_by_label("Minimum units").fill("50000")
        page.keyboard.press("Enter")
        page.get_by_text("Minimum is a whole number from 1 to 40,000.").wait_for()
        assert page.get_by_label("Minimum units").input_value() == "50000"
