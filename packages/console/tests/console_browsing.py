"""Helpers for the tests of the console in real browsers: a server with some tables, and browsers that note
what their pages ask for."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.errors import ServiceError
from hashrange.server import running
from hashrange.server.admin.port import Admin
from hashrange_console.entry import link_to
from worlds import create, index_on, recovery_of

BROWSERS = {
    "chromium": shutil.which("chromium") or shutil.which("google-chrome"),
    "firefox": shutil.which("firefox-esr") or shutil.which("firefox"),
}
DIGITS = "12345678901234567890123456789012345678"
KEY: dict[str, Any] = {"pk": {"S": "a"}, "sk": {"N": DIGITS}}
ITEM: dict[str, Any] = {
    **KEY,
    "text": {"S": "</textarea><script>window.broken = true</script> \u2028 👩‍👩‍👧 שלום"},
    "empty": {"S": ""},
    "small": {"N": f"-0.{DIGITS}"},
    "bytes": {"B": "AAECAwQ="},
    "sets": {"M": {"s": {"SS": ["1", "x"]}, "n": {"NS": ["1", "2.5"]}, "b": {"BS": ["AA=="]}}},
    "flags": {"L": [{"BOOL": True}, {"NULL": True}, {"L": []}]},
    "long": {"S": "word " * 4_000},
    "wide": {"M": {f"member{number}": {"S": "a value"} for number in range(9)}},
    "blob": {"B": "AAAA" * 90},
}
PLACE = "/console/t/orders/item?key=" + quote(orjson.dumps(KEY))
PAGES = (
    "/console", "/console/t/orders", "/console/t/orders?pk=a&op=between&sk=1&sk2=2", "/console/t/empty",
    PLACE, PLACE + "&view=json", PLACE + "&view=edit", PLACE + "&view=history", "/console/t/orders/new",
    PLACE + "&view=edit&as=json", PLACE + "&view=edit&as=dynamodb", PLACE + "&saved=2026-01-01T00:00:00.000Z",
    "/console/t/orders/new?as=dynamodb", "/console/t/orders/import",
    "/console/t/orders?pk=a&col=text&col=sets", "/console/t/blobs",
    "/console/ask", "/console/ask?statement=SELECT%20*%20FROM%20orders",
    "/console/ask?statement=DELETE%20FROM%20orders", "/console/t/orders?at=1970", "/console/ask?tab=partiql",
    "/console/ask?table=orders&attr=pk&op=between&type=S&value=a&value2=b", "/console/ask?table=nothing",
    "/console/ask?table=orders&attr=pk&op=%3D&type=S&value=b&value2=&run=1", "/console/find?text=%7B%7D",
    "/console/find?text=" + quote('{"pk": "b", "sk": 900}'), "/console/find?text=nothing-like-it",
    "/console/t/orders/entities", "/console/t/orders/entities?view=graph", "/console/t/empty/entities",
    "/console/t/orders/entities?view=access", "/console/t/orders/entities?view=items",
    "/console/t/many/entities", "/console/t/many/entities?view=graph", "/console/t/many/entities?view=items",
    "/console/requests?show=1", "/console/requests", "/console/streams", "/console/t/orders/stream",
    "/console/t/empty/stream", "/console/faults", "/console/clock", "/console/t/orders/past",
    "/console/t/orders/past?at=now&show=items", "/console/t/empty/past",
    "/console/t/orders/about", "/console/new-table", "/console/contributors", "/console/kinesis",
    "/console/backups",
)  # fmt: skip


def _spend(database: Database) -> None:
    """Some requests, with an index that nobody reads, and keys that are throttled."""
    index = index_on("by-sk", "sk")
    create_table(database, "spent", GlobalSecondaryIndexes=[index])
    insights = {"TableName": "spent", "ContributorInsightsAction": "ENABLE"}
    database.execute("UpdateContributorInsights", insights)
    arn = "arn:aws:kinesis:us-east-1:000000000000:stream/changes"
    database.execute("EnableKinesisStreamingDestination", {"TableName": "spent", "StreamArn": arn})
    database.sweep_tables()
    for number in range(20):
        item = {"pk": {"S": "a"}, "sk": {"N": str(number)}}
        database.execute("PutItem", {"TableName": "spent", "Item": item})
    database.faults.add("GetItem table=spent times=1 throttle")
    for _ in range(12):
        database.execute("Scan", {"TableName": "spent", "FilterExpression": "attribute_exists(x)"})
        with suppress(ServiceError):
            database.execute("GetItem", {"TableName": "spent", "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}}})
    database.faults.clear()


def _fill(database: Database) -> None:
    for name in ("orders", "empty", "many"):
        create_table(database, name)
    database.execute("UpdateContinuousBackups", recovery_of("orders"))
    database.execute("PutItem", {"TableName": "orders", "Item": orjson.loads(orjson.dumps(ITEM))})
    for number in range(60):
        item = {"pk": {"S": "b"}, "sk": {"N": str(number)}}
        database.execute("PutItem", {"TableName": "orders", "Item": item})
    # (an entity of each colour, and one that has the first again)
    for number in range(9):
        item = {"pk": {"S": f"{'ABCDEFGHI'[number] * 2}#1"}, "sk": {"N": "1"}}
        database.execute("PutItem", {"TableName": "many", "Item": item})
    binary = {
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "B"}],
    }
    create_table(database, "blobs", **binary)
    database.execute("PutItem", {"TableName": "blobs", "Item": {"id": {"B": "A" * 60}}})


def create_table(database: Database, name: str, **members: Any) -> None:
    create(database, name, "pk, sk:N", **members)


@contextmanager
def console(begin: Callable[[Database], object] = lambda _: None) -> Iterator[tuple[Database, Admin]]:
    """A server with some tables, which programs have used since `begin`."""
    with Database.in_memory() as database:
        admin = bind_admin(0)
        with running(database, admin=admin):
            _fill(database)
            begin(database)
            _spend(database)
            yield database, admin


def stored(database: Database) -> Any:
    sent = {"TableName": "orders", "Key": orjson.loads(orjson.dumps(KEY))}
    return orjson.loads(orjson.dumps(database.execute("GetItem", sent))).get("Item")


class Watch:
    """Notes what the pages of a browser ask for, and their errors."""

    def __init__(self, context: BrowserContext, own: str) -> None:
        self.foreign: list[str] = []
        self.errors: list[str] = []
        context.on("request", lambda request: self._note(request.url, own))
        context.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)
        context.on("weberror", lambda error: self.errors.append(str(error.error)))

    def _note(self, url: str, own: str) -> None:
        if not url.startswith((f"{own}/", "data:")):
            self.foreign.append(url)


class Browsers:
    """The browsers of this module, each started when it is first needed."""

    def __init__(self, playwright: Playwright) -> None:
        self._playwright = playwright
        self._started: dict[str, Browser] = {}

    def _browser(self, kind: str) -> Browser:
        if kind not in self._started:
            path = BROWSERS[kind]
            if path is None:
                pytest.skip(f"there is no {kind} (Debian: apt-get install chromium firefox-esr)")
            self._started[kind] = (
                self._playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
                if kind == "chromium"
                else self._playwright.firefox.launch(channel="moz-firefox", executable_path=path)
            )
        return self._started[kind]

    @contextmanager
    def page(self, admin: Admin, kind: str = "chromium", **options: Any) -> Iterator[Page]:
        """A page that has opened the console, in a context of its own."""
        context = self._browser(kind).new_context(**options)
        try:
            watch = Watch(context, admin.url)
            page = context.new_page()
            page.goto(link_to(admin))
            yield page
            assert watch.foreign == []
            # (an answer that refuses something is an error of the browser's console, too)
            assert [text for text in watch.errors if not re.search("status of 40[01]", text)] == []
        finally:
            context.close()

    def close(self) -> None:
        for browser in self._started.values():
            browser.close()


def enable_stream(database: Database) -> None:
    specification = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    database.execute("UpdateTable", {"TableName": "orders", "StreamSpecification": specification})


def put(database: Database, number: int, **more: Any) -> None:
    item = {"pk": {"S": "live"}, "sk": {"N": str(number)}, **more}
    database.execute("PutItem", {"TableName": "orders", "Item": item})


@pytest.fixture(scope="module")
def browsers() -> Iterator[Browsers]:
    with sync_playwright() as playwright:
        browsers = Browsers(playwright)
        yield browsers
        browsers.close()


SCHEMES = ("light", "dark")


def phone(scheme: str) -> dict[str, Any]:
    """The options of a page on a phone, which is laid out as wide as its widest part."""
    return {"color_scheme": scheme, "viewport": {"width": 390, "height": 800}, "is_mobile": True}


ODDITIES = """(width) => {
  const found = [];
  const root = document.documentElement;
  const end = document.querySelector("main").getBoundingClientRect().bottom + scrollY;
  const wide = Math.max(innerWidth, root.scrollWidth);
  const high = root.scrollHeight;
  if (wide > width) found.push(`${wide} px wide`);
  if (high > Math.max(innerHeight, end) + 1) found.push(`${high} px high, ends at ${end}`);
  for (const value of document.querySelectorAll(".grid tbody :is(td, th) bdi")) {
    const cell = value.closest("td, th");
    const room = cell.getBoundingClientRect().right;
    const isCut = getComputedStyle(cell).textOverflow === "ellipsis";
    if (isCut && value.getBoundingClientRect().right > room) found.push(`only "…" of ${value.textContent}`);
  }
  return found;
}"""
"""What is wrong with the layout of a page: it is wider than the window, higher than what it shows, or a cell
has no more than an ellipsis."""


def check_layout(page: Page, path: str) -> None:
    """Check that a page is as wide as the window and as high as what it shows, with values in its grids."""
    assert page.viewport_size is not None
    assert page.evaluate(ODDITIES, page.viewport_size["width"]) == [], path


def check_page(page: Page, path: str, scheme: str) -> None:
    """Check that an open page is accessible, and fits the window."""
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    check_layout(page, path)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert not page.evaluate("window.broken"), path
    check_layout(page, path)
    page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    assert _violations(page, scheme) == [], path


def _violations(page: Page, scheme: str) -> list[tuple[str, list[str]]]:
    """What axe-core finds wrong on a page: by all rules on a light page, by those of colours on a dark
    one."""
    options: dict[str, Any] = {"resultTypes": ["violations"], "selectors": False}
    if scheme == "dark":
        options["runOnly"] = ["color-contrast", "link-in-text-block"]
    found = page.evaluate("(options) => axe.run(options)", options)["violations"]
    return [(rule["id"], [node["html"] for node in rule["nodes"]][:3]) for rule in found]


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


def check_long(page: Page, path: str) -> None:
    """Check that nothing on an open page sticks out."""
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert page.evaluate(OUTSIDE) == [], path
    check_layout(page, path)


def fill_with_long(database: Database) -> None:
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
    database.execute("UpdateContinuousBackups", recovery_of(LONG_TABLE))
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
