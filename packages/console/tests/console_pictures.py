"""The pictures of the console in the docs: every page, light and dark, of the demo table.

`make pictures` takes them again, after a page has changed; look at the differences before you keep them. The
tests only see that each page has its pictures. Another ring takes those of its pages by `main`.
"""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import boto3
import orjson

from hashrange.cli.admin import bind_admin
from hashrange.clock import VirtualClock
from hashrange.database import Caller, Database
from hashrange.errors import ServiceError
from hashrange.server import running
from hashrange.server.admin.port import Admin
from hashrange_console.entry import link_to
from hashrange_console.tables import demo

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOLDER: Final = Path(__file__).parents[1] / "docs" / "pictures"
"""The folder of the pictures; `parents[1]` is that of the ring."""
SCHEMES: Final = ("light", "dark")
_BEGAN: Final = 1_772_460_000.0
_SIZE: Final = {"width": 1100, "height": 700}

_ITEM: Final = "/console/t/shop/item?key=" + quote(
    orjson.dumps({"PK": {"S": "CUSTOMER#ada"}, "SK": {"S": "CUSTOMER"}})
)
PAGES: Final = {
    "tables": "/console",
    "new-table": "/console/new-table",
    "definition": "/console/t/shop/about",
    "items": "/console/t/shop?index=GSI1&pk=STATE%23sent",
    "item": _ITEM,
    "edit": f"{_ITEM}&view=edit",
    "history": f"{_ITEM}&view=history",
    "import": "/console/t/shop/import",
    "builder": "/console/ask?table=shop&attr=GSI1PK&op=%3D&type=S&value=STATE%23sent&value2=&run=1",
    "statement": "/console/ask?statement=" + quote("SELECT * FROM \"shop\" WHERE PK = 'CUSTOMER#ada'"),
    "entities": "/console/t/shop/entities",
    "graph": "/console/t/shop/entities?view=graph",
    "past": "/console/t/shop/past?at=2m",
    "requests": "/console/requests",
    "stream": "/console/t/shop/stream?from=start",
    "contributors": "/console/contributors",
    "kinesis": "/console/kinesis",
    "faults": "/console/faults",
    "clock": "/console/clock",
}
"""The pages that have pictures, by the names of the pictures."""
SPENDING: Final = frozenset(("contributors", "kinesis"))
"""The pages whose server has been used for an hour."""


def fill(database: Database, clock: VirtualClock) -> None:
    """Make the demo table, and a past: two customers move, one leaves."""

    def run(operation: str, **request: Any) -> None:
        database.execute(operation, orjson.loads(orjson.dumps(request)))

    run("CreateTable", **demo.CREATE)
    recovery = {"PointInTimeRecoveryEnabled": True}
    run("UpdateContinuousBackups", TableName=demo.TABLE, PointInTimeRecoverySpecification=recovery)
    for item in demo.items():
        run("PutItem", TableName=demo.TABLE, Item=item)
    clock.advance(3_600.0)
    for name, city in (("ada", "Bergen"), ("ivo", "Porto")):
        key = {"PK": {"S": f"CUSTOMER#{name}"}, "SK": {"S": "CUSTOMER"}}
        run(
            "UpdateItem",
            TableName="shop",
            Key=key,
            UpdateExpression="SET city = :c, visits = :one",
            ExpressionAttributeValues={":c": {"S": city}, ":one": {"N": "1"}},
        )
    run("DeleteItem", TableName="shop", Key={"PK": {"S": "CUSTOMER#tove"}, "SK": {"S": "CUSTOMER"}})
    clock.advance(60.0)
    database.settle()


def use(endpoint: str) -> None:
    """Some requests of a program."""
    client = boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="shop-front",
        aws_secret_access_key="any",
    )
    for number in range(40):
        name = ("ada", "ivo", "ada", "greta")[number % 4]
        values: Any = {":k": {"S": f"CUSTOMER#{name}"}}
        client.query(TableName="shop", KeyConditionExpression="PK = :k", ExpressionAttributeValues=values)
        if number % 3 == 0:
            item: Any = {"PK": {"S": f"CUSTOMER#{name}"}, "SK": {"S": "BASKET"}, "count": {"N": str(number)}}
            client.put_item(TableName="shop", Item=item)
        if number % 10 == 4:
            with suppress(client.exceptions.ConditionalCheckFailedException):
                client.put_item(TableName="shop", Item=item, ConditionExpression="attribute_not_exists(PK)")


def spend(database: Database, clock: VirtualClock) -> None:
    """An hour of two programs on the shop, which has a rush in the middle."""
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    index = {"Update": {"IndexName": "GSI1", "ProvisionedThroughput": dict(units)}}
    update: Any = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units}
    update["GlobalSecondaryIndexUpdates"] = [index]
    database.execute("UpdateTable", {"TableName": "shop", **update})
    insights = {"TableName": "shop", "ContributorInsightsAction": "ENABLE"}
    database.execute("UpdateContributorInsights", insights)
    arn = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"
    database.execute("EnableKinesisStreamingDestination", {"TableName": "shop", "StreamArn": arn})
    database.sweep_tables()
    front, reports = Caller(agent="Boto3/1.40 app/shop-front"), Caller(agent="Boto3/1.40 app/reports")
    values: Any = {":k": {"S": "CUSTOMER#ada"}, ":s": {"S": "Bergen"}}
    for minute in range(60):
        busy = 12 + round(10 * math.sin(minute / 9)) + (40 if 38 <= minute < 42 else 0)
        if minute in (39, 41):
            database.faults.add(f"GetItem times={minute - 36} throttle")
        for number in range(busy):
            key = {"PK": {"S": f"CUSTOMER#{('ada', 'ivo')[number % 2]}"}, "SK": {"S": f"VISIT#{minute % 7}"}}
            request: Any = {"TableName": "shop", "Key": key, "ConsistentRead": number % 3 == 0}
            with suppress(ServiceError):
                database.execute("GetItem", request, front)
            if number % 3 == 0:
                item = {**key, "note": {"S": "x" * 900 * (number % 4)}}
                database.execute("PutItem", {"TableName": "shop", "Item": item}, front)
        request = {
            "TableName": "shop",
            "KeyConditionExpression": "PK = :k",
            "FilterExpression": "#s = :s",
            "ExpressionAttributeNames": {"#s": "city"},
            "ExpressionAttributeValues": dict(values),
        }
        database.execute("Query", request, front)
        if minute % 5 == 0:
            del request["KeyConditionExpression"]
            request["ExpressionAttributeValues"] = {":s": {"S": "Bergen"}}
            database.execute("Scan", request, reports)
        clock.advance(60.0 if minute < 59 else 30.0)


@contextmanager
def opened(begin: Callable[[Database], object] | None) -> Iterator[tuple[Admin, str, Any]]:
    """A server with the demo table, and a browser. `begin`: programs have used the server for an hour, and
    this was called before."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    clock = VirtualClock(_BEGAN)
    with Database.in_memory(clock=clock) as database:
        fill(database, clock)
        if begin is not None:
            begin(database)
            spend(database, clock)
        admin = bind_admin(0)
        with running(database, admin=admin) as endpoint, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            yield admin, endpoint, browser
            browser.close()


def take(page: Page, admin: Admin, endpoint: str, path: str, file: Path) -> None:
    """Take the picture of a page."""
    page.goto(admin.url + path)
    if path in ("/console/requests", "/console/heat"):
        use(endpoint)
        page.locator("tbody tr").nth(3).wait_for()
    # The ports differ from run to run.
    page.evaluate("document.querySelector('.endpoint').textContent = 'http://127.0.0.1:8000'")
    page.screenshot(path=file)


def main(
    folder: Path, pages: Mapping[str, str], spending: frozenset[str], begin: Callable[[Database], object]
) -> None:
    """Take all pictures, or those whose pages are named on the command line. `begin` is called before the
    server of the pages in `spending` is used for an hour."""
    wanted = [name for name in pages if name in (sys.argv[1:] or pages)]
    folder.mkdir(exist_ok=True)
    for spends in (False, True):
        names = [name for name in wanted if (name in spending) == spends]
        if not names:
            continue
        with opened(begin if spends else None) as (admin, endpoint, browser):
            for scheme in SCHEMES:
                page = browser.new_context(color_scheme=scheme, viewport=_SIZE).new_page()
                page.goto(link_to(admin))
                for name in names:
                    take(page, admin, endpoint, pages[name], file := folder / f"{name}-{scheme}.png")
                    print(file.name)


def check(folder: Path, pages: Mapping[str, str], text: Path) -> None:
    """Check that a text shows all pictures of a folder, and that they are those of its pages."""
    names = {f"{name}-{scheme}.png" for name in pages for scheme in SCHEMES}
    assert {file.name for file in folder.iterdir()} == names
    shown = text.read_text(encoding="utf-8")
    for name in names:
        assert f"pictures/{name}" in shown


if __name__ == "__main__":
    main(FOLDER, PAGES, SPENDING, lambda _: None)
