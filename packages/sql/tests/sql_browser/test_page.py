"""The console's page for SQL in a real browser: light and dark, wide and narrow, by keyboard."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from console_browsing import SCHEMES, Browsers, check_long, check_page, console, fill_with_long, phone
from console_pictures import check
from sql_pictures import FOLDER, PAGES

PATH = "/console/sql?statement="
PATHS = (
    "/console/sql",
    PATH + quote("from orders"),
    PATH + quote("select pk, count(*) as n, sum(sk) from orders group by pk order by pk") + "&plan=1",
    PATH + quote("select pk, count(*) as n, sum(sk) from orders group by pk order by pk"),
    PATH + quote("select nothing from orders"),
    PATH + quote("select 1 where false"),
)


def test_the_docs_show_every_picture_and_no_others() -> None:
    check(FOLDER, PAGES, FOLDER.parent / "sql.md")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("is_phone", [True, False], ids=["phone", "wide"])
def test_every_page_is_accessible_and_fits(browsers: Browsers, scheme: str, is_phone: bool) -> None:
    wide = {"color_scheme": scheme, "viewport": {"width": 1440, "height": 900}}
    with console() as (_, admin), browsers.page(admin, **(phone(scheme) if is_phone else wide)) as page:
        for path in PATHS:
            page.goto(admin.url + path)
            check_page(page, path, scheme)


def test_every_page_opens_in_firefox(browsers: Browsers) -> None:
    with console() as (_, admin), browsers.page(admin, "firefox") as page:
        for path in PATHS:
            page.goto(admin.url + path)
            assert page.get_by_role("heading", level=1).count() == 1, path


@pytest.mark.parametrize("width", [390, 1100])
def test_long_names_stay_inside_the_window(browsers: Browsers, width: int) -> None:
    with (
        console() as (database, admin),
        browsers.page(admin, viewport={"width": width, "height": 800}) as page,
    ):
        fill_with_long(database)
        path = PATH + quote(f'from "t{"able" * 60}"')
        page.goto(admin.url + path)
        assert page.get_by_role("region", name="Rows").count() == 1
        check_long(page, path)


def test_a_statement_is_written_planned_run_and_downloaded(browsers: Browsers) -> None:
    with console() as (_, admin), browsers.page(admin) as page:
        page.goto(admin.url + "/console/ask")
        page.get_by_role("link", name="SQL", exact=True).click()
        field = page.get_by_role("textbox", name="Statement")
        field.fill("select pk, count(*) as n from orders group by pk order by pk")
        page.get_by_role("button", name="Plan").click()
        page.get_by_text("Will cost").wait_for()
        assert page.get_by_role("region", name="Rows").count() == 0
        field.focus()
        page.keyboard.press("Control+Enter")
        rows = page.get_by_role("region", name="Rows").locator("tbody tr")
        rows.first.wait_for()
        assert [row.inner_text().split() for row in rows.all()] == [["a", "1"], ["b", "60"]]
        sorter = page.get_by_role("region", name="Rows").locator("thead button").nth(1)
        sorter.click()
        sorter.click()
        assert rows.first.inner_text().split() == ["b", "60"]
        with page.expect_download() as started:
            page.get_by_role("button", name="CSV").click()
        assert started.value.path().read_text(encoding="utf-8") == "pk,n\na,1\nb,60\n"
