"""Helpers for the tests of the console in real browsers: a server with some tables, and browsers that note
what their pages ask for."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright

from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.errors import ServiceError
from hashrange.prices import published
from hashrange.server import running
from hashrange.server.admin.port import Admin
from hashrange_lab.money import meter

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
}
PLACE = "/console/t/orders/item?key=" + quote(orjson.dumps(KEY))
PAGES = (
    "/console", "/console/t/orders", "/console/t/orders?pk=a&op=between&sk=1&sk2=2", "/console/t/empty",
    PLACE, PLACE + "&view=json", PLACE + "&view=edit", PLACE + "&view=history", "/console/t/orders/new",
    PLACE + "&view=edit&as=json", PLACE + "&view=edit&as=dynamodb", PLACE + "&saved=2026-01-01T00:00:00.000Z",
    "/console/t/orders/new?as=dynamodb", "/console/t/orders/import",
    "/console/t/orders?pk=a&col=text&col=sets",
    "/console/ask", "/console/ask?statement=SELECT%20*%20FROM%20orders",
    "/console/ask?statement=DELETE%20FROM%20orders", "/console/t/orders?at=1970", "/console/ask?tab=partiql",
    "/console/ask?table=orders&attr=pk&op=between&type=S&value=a&value2=b", "/console/ask?table=nothing",
    "/console/ask?table=orders&attr=pk&op=%3D&type=S&value=b&value2=&run=1", "/console/find?text=%7B%7D",
    "/console/find?text=" + quote('{"pk": "b", "sk": 900}'), "/console/find?text=nothing-like-it",
    "/console/t/orders/entities", "/console/t/orders/entities?view=graph", "/console/t/empty/entities",
    "/console/t/orders/entities?view=access", "/console/t/orders/entities?view=items",
    "/console/t/many/entities", "/console/t/many/entities?view=graph", "/console/t/many/entities?view=items",
    "/console/requests?show=1", "/console/requests", "/console/streams", "/console/t/orders/stream",
    "/console/t/empty/stream", "/console/heat", "/console/faults", "/console/clock", "/console/t/orders/past",
    "/console/t/orders/past?at=now&show=items", "/console/t/empty/past",
    "/console/t/orders/about", "/console/new-table", "/console/costs", "/console/costs?by=caller",
    "/console/costs?region=eu-central-1", "/console/costs/advice", "/console/capacity",
    "/console/capacity?hours=24", "/console/costs/plans", "/console/costs/plans?place=spent/by-sk&minimum=5",
    "/console/costs/plans?minimum=5&maximum=4", "/console/costs/plans?region=eu-west-3",
    "/console/contributors", "/console/kinesis",
)  # fmt: skip


def _spend(database: Database) -> None:
    """Count what some requests cost, with an index that nobody reads, and keys that are throttled."""
    meter.begin(database, published())
    index = {
        "IndexName": "by-sk",
        "KeySchema": [{"AttributeName": "sk", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
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
    recovery = {"PointInTimeRecoveryEnabled": True}
    request = {"TableName": "orders", "PointInTimeRecoverySpecification": recovery}
    database.execute("UpdateContinuousBackups", request)
    database.execute("PutItem", {"TableName": "orders", "Item": orjson.loads(orjson.dumps(ITEM))})
    for number in range(60):
        item = {"pk": {"S": "b"}, "sk": {"N": str(number)}}
        database.execute("PutItem", {"TableName": "orders", "Item": item})
    # (an entity of each colour, and one that has the first again)
    for number in range(9):
        item = {"pk": {"S": f"{'ABCDEFGHI'[number] * 2}#1"}, "sk": {"N": "1"}}
        database.execute("PutItem", {"TableName": "many", "Item": item})


def create_table(database: Database, name: str, **members: Any) -> None:
    request: dict[str, Any] = {
        "TableName": name,
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
        ],
        "BillingMode": "PAY_PER_REQUEST",
        **members,
    }
    database.execute("CreateTable", request)


@contextmanager
def console() -> Iterator[tuple[Database, Admin]]:
    with Database.in_memory() as database:
        admin = bind_admin(0)
        with running(database, admin=admin):
            _fill(database)
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
            page.goto(admin.console_link())
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
