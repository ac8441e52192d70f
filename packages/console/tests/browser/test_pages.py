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
