"""Every page of the console: light and dark, wide and narrow, with long values; judged by axe-core."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import orjson
import pytest

from console_browsing import (
    DIGITS,
    LONG,
    LONG_INDEX,
    LONG_NAME,
    LONG_TABLE,
    PAGES,
    PLACE,
    SCHEMES,
    Browsers,
    check_layout,
    check_long,
    check_page,
    console,
    create_table,
    enable_stream,
    fill_with_long,
    phone,
    put,
)
from hashrange.errors import ServiceError


def test_every_page_opens_in_firefox(browsers: Browsers) -> None:
    with console() as (_, admin), browsers.page(admin, "firefox") as page:
        for path in PAGES:
            page.goto(admin.url + path)
            assert page.get_by_role("heading", level=1).count() == 1, path
            assert not page.evaluate("window.broken"), path


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_page_is_accessible_and_fits_a_phone(browsers: Browsers, scheme: str) -> None:
    with console() as (_, admin), browsers.page(admin, **phone(scheme)) as page:
        for path in PAGES:
            page.goto(admin.url + path)
            check_page(page, path, scheme)


@pytest.mark.parametrize("options", [phone("light"), {"viewport": {"width": 1440, "height": 800}}])
def test_pages_are_as_large_as_what_they_show(browsers: Browsers, options: dict[str, Any]) -> None:
    with console() as (database, admin), browsers.page(admin, **options) as page:
        for number in range(60):
            create_table(database, f"{'one-more-' * (number % 9)}table-{number}")
        for path in PAGES:
            page.goto(admin.url + path)
            check_layout(page, path)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_live_rows_are_accessible_and_fit_a_phone(browsers: Browsers, scheme: str) -> None:
    with console() as (database, admin), browsers.page(admin, **phone(scheme)) as page:
        enable_stream(database)
        database.faults.add("Scan throttle")
        for path in ("/console/requests", "/console/t/orders/stream", "/console/faults",
                     "/console/t/orders/past"):  # fmt: skip
            page.goto(admin.url + path)
            put(database, 1, one={"S": "x" * 200})
            put(database, 1, one={"S": path}, two={"N": DIGITS})
            with pytest.raises(ServiceError):
                database.execute("Scan", {"TableName": "orders"})
            page.get_by_role("row").nth(1).wait_for(timeout=5_000)
            check_page(page, path, scheme)


PHONE = """() => {
  const found = [];
  const outside = (part) => part.getBoundingClientRect().right > innerWidth;
  if ([...document.querySelectorAll(".changes, .access bdi, .outcome")].some(outside)) found.push("outside");
  for (const tabs of document.querySelectorAll(".tabs")) {
    const tops = new Set([...tabs.children].map((tab) => tab.getBoundingClientRect().top));
    if (tops.size > 1) found.push("tabs in rows");
  }
  for (const word of document.querySelectorAll(".access a bdi")) {
    const text = word.firstChild;
    for (const { index, 0: { length } } of text.data.matchAll(/[A-Z]{4,}/g)) {
      const range = document.createRange();
      range.setStart(text, index);
      range.setEnd(text, index + length);
      const lines = new Set([...range.getClientRects()].map((box) => box.top));
      if (lines.size > 1) found.push(`broken: ${text.data}`);
    }
  }
  const rows = [...document.querySelectorAll(".live-rows tbody tr")];
  const text = (row) => [...row.querySelectorAll("td, th")].reduce((sum, cell) => sum + cell.clientHeight, 0);
  if (rows.some((row) => row.clientHeight > text(row) + 24)) found.push("blank rows");
  return found;
}"""
"""What makes a page bad to read on a phone: something outside the window, tabs in two rows, broken words,
blanks."""


def test_a_phone_shows_what_a_page_is_for(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin, **phone("light")) as page:
        enable_stream(database)
        for city in ("Bern", "Basel"):
            put(database, 1, city={"S": city}, words={"S": "a long text " * 8})
            put(database, 1, PRODUCTS={"S": "x"})
        for path in ("/console/t/orders/stream", "/console/t/orders/past?at=1m", "/console/requests",
                     "/console/t/many/entities?view=access", PLACE, "/console/faults"):  # fmt: skip
            page.goto(admin.url + path)
            assert page.evaluate(PHONE) == [], path


@pytest.mark.parametrize("width", [390, 1100])
def test_long_names_and_values_stay_inside_the_window(browsers: Browsers, width: int) -> None:
    viewport = {"width": width, "height": 800}
    with console() as (database, admin), browsers.page(admin, viewport=viewport) as page:
        fill_with_long(database)
        table = f"/console/t/{LONG_TABLE}"
        item = f"{table}/item?key={quote(orjson.dumps({LONG_NAME: {'S': LONG}}))}"
        builder = f"/console/ask?table={LONG_TABLE}&attr={LONG_NAME}&op=%3D&type=S"
        statement = f'SELECT * FROM "{LONG_TABLE}" WHERE "{LONG_NAME}" = \'{LONG}\''
        for path in (
            "/console", table, f"{table}?index={LONG_INDEX}&pk={LONG}", f"{table}?filter={LONG}", item,
            f"{item}&view=json", f"{item}&view=edit", f"{item}&view=history", f"{table}/about",
            f"{table}/new", f"{table}/entities", f"{table}/entities?view=access",
            f"{table}/stream?from=start",
            f"{table}/past?at=1m&show=items", f"{builder}&value={LONG}&value2=&run=1",
            f"/console/ask?table={LONG_TABLE}&source={LONG_INDEX}",
            f"/console/ask?table={'z' * 200}",
            f"/console/ask?statement={quote(statement)}", f"/console/find?text={LONG}", "/console/streams",
            "/console/faults", "/console/contributors", "/console/kinesis",
        ):  # fmt: skip
            page.goto(admin.url + path)
            check_long(page, path)
