"""The console in a real browser: by keyboard, light and dark, wide and narrow; judged by axe-core."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import boto3
import orjson
import pytest
from playwright.sync_api import BrowserContext, Page, sync_playwright

from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.server import running
from hashrange.server.admin.port import Admin

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
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
    "/console/ask", "/console/ask?statement=SELECT%20*%20FROM%20orders",
    "/console/ask?statement=DELETE%20FROM%20orders", "/console/t/orders?at=1970",
)  # fmt: skip


def _fill(endpoint: str) -> Any:
    client = boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
    )
    for name in ("orders", "empty"):
        client.create_table(
            TableName=name,
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "N"},
            ],
            BillingMode="PAY_PER_REQUEST",
        )
    client.update_continuous_backups(
        TableName="orders", PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    return client


@contextmanager
def console() -> Iterator[tuple[Database, Admin]]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium (Debian: apt-get install chromium)")
    with Database.in_memory() as database:
        admin = bind_admin(0)
        with running(database, admin=admin) as endpoint:
            _fill(endpoint)
            database.execute("PutItem", {"TableName": "orders", "Item": orjson.loads(orjson.dumps(ITEM))})
            for number in range(60):
                item = {"pk": {"S": "b"}, "sk": {"N": str(number)}}
                database.execute("PutItem", {"TableName": "orders", "Item": item})
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


@contextmanager
def context_of(admin: Admin, **options: Any) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(**options)
        watch = Watch(context, admin.url)
        page = context.new_page()
        page.goto(admin.console_link())
        yield page
        assert watch.foreign == []
        # (an answer that refuses something is an error of the browser's console, too)
        assert [text for text in watch.errors if "status of 400" not in text] == []
        browser.close()


def test_a_table_is_opened_and_an_attribute_changed_by_keyboard() -> None:
    with console() as (database, admin), context_of(admin) as page:
        page.keyboard.press("/")
        page.keyboard.type("ord")
        assert page.locator("#tables tbody tr:visible").count() == 1
        page.get_by_role("link", name="orders").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/console/t/orders")
        page.keyboard.press("/")
        page.keyboard.type("a")
        page.keyboard.press("Enter")
        page.wait_for_url("**pk=a**")
        assert page.locator(".plan .badge").inner_text() == "Query"
        page.get_by_role("region", name="Items").get_by_role("link").press("Enter")
        page.get_by_role("link", name="Edit").press("Enter")
        field = page.get_by_label("The item in DynamoDB’s JSON")
        before = field.input_value()
        assert orjson.loads(before) == ITEM
        field.fill(before.replace('"empty": {"S": ""}', '"empty": {"S": "filled"}'))
        field.press("Control+Enter")
        page.wait_for_url("**/item?key=**")
        page.get_by_text("filled", exact=True).wait_for()
        assert stored(database) == ITEM | {"empty": {"S": "filled"}}


def test_a_change_of_somebody_else_is_not_overwritten_and_an_item_is_deleted() -> None:
    with console() as (database, admin), context_of(admin) as page:
        page.goto(admin.url + PLACE + "&view=edit")
        theirs = {**ITEM, "empty": {"S": "theirs"}}
        database.execute("PutItem", {"TableName": "orders", "Item": orjson.loads(orjson.dumps(theirs))})
        field = page.get_by_label("The item in DynamoDB’s JSON")
        field.fill(field.input_value().replace('"empty": {"S": ""}', '"empty": {"S": "ours"}'))
        page.get_by_role("button", name="Show as code").click()
        page.get_by_text("client.update_item(").wait_for()
        page.get_by_role("button", name="Save").click()
        page.get_by_role("alert").get_by_text("Somebody changed").wait_for()
        assert stored(database) == theirs
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(admin.url + PLACE + "&view=edit")
        page.get_by_role("button", name="Delete item").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Delete item").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
        page.wait_for_url("**/console/t/orders")
        assert stored(database) is None
        page.goto(admin.url + PLACE + "&view=history")
        with page.expect_navigation():
            page.get_by_role("button", name="Bring back").first.click()
        assert stored(database) == theirs


def test_a_new_item_and_a_statement() -> None:
    with console() as (database, admin), context_of(admin) as page:
        page.goto(admin.url + "/console/t/empty/new")
        field = page.get_by_label("The item in DynamoDB’s JSON")
        field.fill("{")
        page.get_by_role("button", name="Save").click()
        page.get_by_role("alert").get_by_text("not JSON").wait_for()
        field.fill('{"pk": {"S": "x"}, "sk": {"N": "1"}}')
        page.get_by_role("button", name="Save").click()
        page.wait_for_url("**/item?key=**")
        page.goto(admin.url + "/console/ask")
        page.keyboard.press("/")
        page.keyboard.type("DELETE FROM \"empty\" WHERE pk = 'x' AND sk = 1")
        page.keyboard.press("Control+Enter")
        page.get_by_role("button", name="Run the change").click()
        page.get_by_text("Done. It cost 1 capacity units.").wait_for()
        assert database.execute("Scan", {"TableName": "empty"})["Count"] == 0


def test_reading_needs_no_javascript() -> None:
    with console() as (_, admin), context_of(admin, java_script_enabled=False) as page:
        page.get_by_role("link", name="orders").click()
        page.get_by_role("link", name="Next").click()
        assert page.get_by_role("region", name="Items").get_by_role("row").count() == 12
        page.get_by_role("link", name="Previous").click()
        page.get_by_role("region", name="Items").get_by_role("link").first.click()
        assert page.get_by_role("navigation", name="Views of this item").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_and_fits_a_phone(scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    source = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    options = {"color_scheme": scheme, "viewport": {"width": 390, "height": 800}}
    with console() as (_, admin), context_of(admin, **options) as page:
        for path in PAGES:
            page.goto(admin.url + path)
            page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
            assert not page.evaluate("window.broken"), path
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            page.evaluate(source)
            found = page.evaluate("axe.run()")["violations"]
            assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found] == [], path
