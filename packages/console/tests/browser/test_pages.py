"""Every page of the console: light and dark, wide and narrow, with long values; judged by axe-core."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from playwright.sync_api import Page

from console_browsing import DIGITS, PAGES, Browsers, console, create_table, enable_stream, put
from hashrange.database import Database
from hashrange.errors import ServiceError


def violations(page: Page, scheme: str) -> list[tuple[str, list[str]]]:
    """What axe-core finds wrong on a page: by all rules on a light page, by those of colours on a dark
    one."""
    options: dict[str, Any] = {"resultTypes": ["violations"], "selectors": False}
    if scheme == "dark":
        options["runOnly"] = ["color-contrast", "link-in-text-block"]
    found = page.evaluate("(options) => axe.run(options)", options)["violations"]
    return [(rule["id"], [node["html"] for node in rule["nodes"]][:3]) for rule in found]


def test_every_page_opens_in_firefox(browsers: Browsers) -> None:
    with console() as (_, admin), browsers.page(admin, "firefox") as page:
        for path in PAGES:
            page.goto(admin.url + path)
            assert page.get_by_role("heading", level=1).count() == 1, path
            assert not page.evaluate("window.broken"), path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_and_fits_a_phone(browsers: Browsers, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    source = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": 390, "height": 800}}
    with console() as (_, admin), browsers.page(admin, **options) as page:
        for path in PAGES:
            page.goto(admin.url + path)
            page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
            assert not page.evaluate("window.broken"), path
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            page.evaluate(source)
            assert violations(page, scheme) == [], path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_live_rows_are_accessible_and_fit_a_phone(browsers: Browsers, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    source = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": 390, "height": 800}}
    with console() as (database, admin), browsers.page(admin, **options) as page:
        enable_stream(database)
        database.faults.add("Scan throttle")
        for path in ("/console/requests", "/console/t/orders/stream", "/console/heat", "/console/faults",
                     "/console/t/orders/past"):  # fmt: skip
            page.goto(admin.url + path)
            put(database, 1, one={"S": "x" * 200})
            put(database, 1, one={"S": path}, two={"N": DIGITS})
            with pytest.raises(ServiceError):
                database.execute("Scan", {"TableName": "orders"})
            page.get_by_role("row").nth(1).wait_for(timeout=5_000)
            page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            page.evaluate(source)
            assert violations(page, scheme) == [], path


LONG_TABLE = "t" + "able" * 60
LONG_INDEX = "index" * 50
LONG_NAME = "attribute" * 20
LONG = "x" * 1_400
OUTSIDE = """() => {
  const scrolls = (element) => {
    for (let around = element; around && around !== document.body; around = around.parentElement) {
      if (getComputedStyle(around).overflowX !== "visible") return true;
    }
    return false;
  };
  return [...document.querySelectorAll("main *")]
    .filter((element) => {
      const box = element.getBoundingClientRect();
      const isPlaced = box.width && getComputedStyle(element).position !== "absolute";
      return isPlaced && box.right > innerWidth + 1 && !scrolls(element);
    })
    .map((element) => element.outerHTML.slice(0, 80));
}"""
"""The elements of a page that stick out of the window and are in nothing that scrolls."""


@pytest.mark.parametrize("width", [390, 1100])
def test_long_names_and_values_stay_inside_the_window(browsers: Browsers, width: int) -> None:
    viewport = {"width": width, "height": 800}
    with console() as (database, admin), browsers.page(admin, viewport=viewport) as page:
        _fill_with_long(database)
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
            "/console/faults", "/console/costs?by=index", "/console/costs/advice", "/console/capacity",
            "/console/costs/plans", f"/console/costs/plans?place={LONG_TABLE}/{LONG_INDEX}",
            "/console/contributors", "/console/kinesis",
        ):  # fmt: skip
            page.goto(admin.url + path)
            page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
            assert page.evaluate(OUTSIDE) == [], path
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def _fill_with_long(database: Database) -> None:
    index = {
        "IndexName": LONG_INDEX,
        "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["included" * 25]},
    }
    create_table(
        database,
        LONG_TABLE,
        KeySchema=[{"AttributeName": LONG_NAME, "KeyType": "HASH"}],
        AttributeDefinitions=[
            {"AttributeName": LONG_NAME, "AttributeType": "S"},
            {"AttributeName": "g", "AttributeType": "S"},
        ],
        GlobalSecondaryIndexes=[index],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    insights = {"TableName": LONG_TABLE, "ContributorInsightsAction": "ENABLE"}
    database.execute("UpdateContributorInsights", insights)
    arn = f"arn:aws:kinesis:us-east-1:000000000000:stream/{'s' * 120}"
    destination = {"TableName": LONG_TABLE, "StreamArn": arn}
    database.execute("EnableKinesisStreamingDestination", destination)
    database.sweep_tables()
    recovery = {"PointInTimeRecoveryEnabled": True}
    request = {"TableName": LONG_TABLE, "PointInTimeRecoverySpecification": recovery}
    database.execute("UpdateContinuousBackups", request)
    arn = f"arn:aws:dynamodb:us-east-1:000000000000:table/{LONG_TABLE}"
    tags = [{"Key": "k" * 120, "Value": "v" * 250}]
    database.execute("TagResource", {"ResourceArn": arn, "Tags": tags})
    for last in ("", "z"):
        item = {
            LONG_NAME: {"S": LONG},
            "g": {"S": LONG + last},
            "set": {"SS": [LONG, "y" * 300]},
            "map": {"M": {"m" * 200: {"L": [{"S": LONG}]}}},
            "b" * 200: {"B": "A" * 400},
        }
        database.execute("PutItem", {"TableName": LONG_TABLE, "Item": item})
    for _ in range(10):
        filtered = "#n = :v"
        scan = {"TableName": LONG_TABLE, "FilterExpression": filtered}
        names, values = {"#n": "unknown" * 30}, {":v": {"S": "x"}}
        named = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
        database.execute("Scan", {**scan, **named})
    database.faults.add(f"GetItem table={LONG_TABLE} key.{LONG_NAME}={'q' * 300} throttle")
