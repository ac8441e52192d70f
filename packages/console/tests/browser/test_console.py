"""The console in a real browser, by keyboard and by mouse.

Chromium runs everything. Firefox takes three times as long, so it only edits an item, and opens each page
once in `test_console_pages`.
"""

from __future__ import annotations

import gzip

import orjson
import pytest
from playwright.sync_api import Page, expect

from console_browsing import (
    BROWSERS,
    DIGITS,
    ITEM,
    KEY,
    PLACE,
    Browsers,
    console,
    create_table,
    enable_stream,
    put,
    stored,
)


@pytest.mark.parametrize("kind", BROWSERS)
def test_a_table_is_opened_and_an_attribute_changed_by_keyboard(browsers: Browsers, kind: str) -> None:
    with console() as (database, admin), browsers.page(admin, kind) as page:
        page.keyboard.press("/")
        page.keyboard.type("ord")
        expect(page.locator("#tables tbody tr:visible")).to_have_count(1)
        page.get_by_role("link", name="orders").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/console/t/orders")
        page.get_by_placeholder("partition key").fill("a")
        page.keyboard.press("Enter")
        page.wait_for_url("**pk=a**")
        assert page.locator(".plan .badge").inner_text() == "Query"
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url("**/item?key=**")
        page.keyboard.type("by")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url("**on=empty**")
        page.keyboard.type("filled")
        page.locator(".changes ins", has_text="filled").wait_for()
        page.keyboard.press("Control+Enter")
        page.wait_for_url("**saved=**")
        page.get_by_text("filled", exact=True).wait_for()
        assert stored(database) == ITEM | {"empty": {"S": "filled"}}
        page.get_by_role("button", name="Undo").press("Enter")
        page.get_by_text("Undone: the item is as it was before.").wait_for()
        expect(page.get_by_text("filled", exact=True)).to_have_count(0)
        assert stored(database) == ITEM


class Keys:
    """A keyboard that counts its keys. A key with Ctrl counts as two."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.count = 0

    def press(self, *keys: str) -> None:
        for key in keys:
            self._page.keyboard.press(key)
            self.count += 1 + key.count("+")


TABLES = (
    "accounts", "audit-log", "carts", "customers", "device-events", "invoices", "inventory", "orders-archive",
    "prod-orders", "prod-order-lines", "prod-payments", "prod-sessions", "staging-orders",
    "staging-order-lines", "staging-payments", "staging-sessions", "user-profiles", "user-settings",
)  # fmt: skip
"""Names of tables as a company has them, beside those of the other tests."""


def shortest(name: str, names: list[str]) -> tuple[str, int]:
    """The shortest part of a table's name by which a search, and then the arrow keys, lead to it: the part,
    and how many tables come before it."""
    choices = []
    for length in (1, 2, 3, 4):
        for start in range(len(name) - length + 1):
            part = name[start : start + length]
            place = [other for other in sorted(names) if part in other].index(name)
            choices.append((length + (place + 1 if place else 0), part, place))
    _, part, place = min(choices)
    return part, place


def test_six_keys_open_any_table(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin) as page:
        for name in TABLES:
            create_table(database, name)
        names = [*TABLES, "orders", "empty", "many"]
        for name in names:
            page.goto(f"{admin.url}/console")
            keys = Keys(page)
            part, place = shortest(name, names)
            # (from the search, the first arrow key goes to the first table that is left)
            keys.press("/", *part, *["ArrowDown"] * (place + 1 if place else 0), "Enter")
            page.wait_for_url(f"**/console/t/{name}")
            assert keys.count <= 6, (name, part, place)


def test_eight_keys_change_an_attribute_of_an_item_in_a_list(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin) as page:
        keys = Keys(page)
        page.goto(f"{admin.url}/console/t/orders?pk=a")
        keys.press("a", "Enter")
        page.wait_for_url("**/item?key=**")
        keys.press("f", "ArrowUp", "Enter")
        page.wait_for_url("**on=empty**")
        keys.press("x")
        page.locator(".changes ins", has_text="x").wait_for()
        keys.press("Control+Enter")
        page.wait_for_url("**saved=**")
        assert keys.count <= 8
        assert stored(database) == ITEM | {"empty": {"S": "x"}}


def test_a_change_of_somebody_else_is_not_overwritten_and_an_item_is_deleted(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin) as page:
        page.goto(admin.url + PLACE + "&view=edit&as=dynamodb")
        theirs = {**ITEM, "empty": {"S": "theirs"}}
        database.execute("PutItem", {"TableName": "orders", "Item": orjson.loads(orjson.dumps(theirs))})
        field = page.get_by_label("The item", exact=True)
        field.fill(field.input_value().replace('"empty": {"S": ""}', '"empty": {"S": "ours"}'))
        changes = page.get_by_role("region", name="Changes")
        changes.get_by_text("As code").click()
        changes.get_by_text("client.update_item(").wait_for()
        page.get_by_role("button", name="Save").click()
        page.get_by_role("alert").get_by_text("Somebody changed").wait_for()
        assert stored(database) == theirs
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(admin.url + PLACE + "&view=edit")
        page.get_by_role("button", name="Delete item").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Delete item").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete the item").click()
        page.wait_for_url("**/console/t/orders")
        assert stored(database) is None
        page.get_by_role("button", name="Undo").click()
        page.wait_for_url("**saved=**")
        assert stored(database) == theirs
        database.execute("DeleteItem", {"TableName": "orders", "Key": orjson.loads(orjson.dumps(KEY))})
        page.goto(admin.url + PLACE + "&view=history")
        page.get_by_role("button", name="Restore").first.click()
        with page.expect_navigation():
            page.get_by_role("dialog").get_by_role("button", name="Restore").click()
        assert stored(database) == theirs


def test_a_new_item_and_a_statement(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin) as page:
        page.goto(admin.url + "/console/t/empty/new")
        page.keyboard.type("x")
        page.get_by_role("button", name="DynamoDB JSON").click()
        page.get_by_role("alert").get_by_text("sk:").wait_for()
        page.get_by_label("Value of sk").fill("1")
        page.get_by_role("button", name="DynamoDB JSON").click()
        field = page.get_by_label("The item", exact=True)
        field.wait_for()
        assert orjson.loads(field.input_value()) == {"pk": {"S": "x"}, "sk": {"N": "1"}}
        field.fill("{")
        page.get_by_role("status").get_by_text("This is not JSON").wait_for()
        field.fill('{"pk": {"S": "x"}, "sk": {"N": "1"}}')
        page.get_by_text("What will be saved").wait_for()
        page.get_by_role("button", name="Save").click()
        page.wait_for_url("**/item?key=**")
        assert database.execute("Scan", {"TableName": "empty"})["Count"] == 1
        # This table has no point-in-time recovery, so the browser brings back what it showed.
        page.get_by_role("button", name="Undo").click()
        page.wait_for_url("**/console/t/empty")
        assert database.execute("Scan", {"TableName": "empty"})["Count"] == 0
        database.execute("PutItem", {"TableName": "empty", "Item": {"pk": {"S": "x"}, "sk": {"N": "1"}}})
        page.goto(admin.url + "/console/ask")
        page.keyboard.press("/")
        page.keyboard.type("DELETE FROM \"empty\" WHERE pk = 'x' AND sk = 1")
        page.keyboard.press("Control+Enter")
        page.get_by_role("button", name="Run the change").click()
        page.get_by_text("Done. It cost 1 capacity unit.").wait_for()
        assert database.execute("Scan", {"TableName": "empty"})["Count"] == 0


def test_a_request_is_built_planned_run_and_saved(browsers: Browsers) -> None:
    with console() as (_, admin), browsers.page(admin) as page:
        page.goto(admin.url + "/console/ask")
        page.get_by_label("Table", exact=True).fill("orders")
        page.keyboard.press("Enter")
        page.wait_for_url("**table=orders**")
        row = page.get_by_role("group", name="Condition 1")
        row.get_by_label("Attribute").fill("pk")
        row.get_by_label("Value").fill("b")
        # (the plan follows what is written)
        page.get_by_text("for all 60 items").wait_for()
        page.get_by_role("button", name="Add a condition").click()
        row = page.get_by_role("group", name="Condition 2")
        row.get_by_label("Attribute").fill("sk")
        row.get_by_label("Operator").select_option("between")
        row.locator("[name=type]").select_option("N")
        row.get_by_label("Value").fill("3")
        row.get_by_label("and").fill("5")
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_text("Query: 3 of 3 items read").wait_for()
        page.get_by_placeholder("Name of this query").fill("three to five")
        page.get_by_role("button", name="Save this query").click()
        page.get_by_role("link", name="Run three to five").click()
        page.get_by_text("Query: 3 of 3 items read").wait_for()
        page.get_by_role("button", name="Delete three to five").click()
        page.get_by_role("button", name="Delete the query").click()
        page.get_by_text("There are no saved queries yet").wait_for()


def test_long_items_are_found_and_entities_corrected(browsers: Browsers) -> None:
    with console() as (_, admin), browsers.page(admin) as page:
        page.goto(admin.url + "/console/ask")
        page.get_by_role("searchbox").fill(orjson.dumps(ITEM).decode())
        page.keyboard.press("Enter")
        page.wait_for_url("**/orders/item?key=**")
        page.goto(admin.url + "/console/t/many/entities")
        entity = page.locator("[data-rule]").first
        entity.get_by_label("Name").fill("First letter")
        page.get_by_role("button", name="Keep these").click()
        page.get_by_text("Somebody corrected them").wait_for()
        assert page.locator("[data-rule]").first.get_by_label("Name").input_value() == "First letter"


def test_the_form_keeps_every_value_and_moves_members(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin) as page:
        item = {**ITEM, "odd": {"S": "cr\r nul\0 \n\n"}, "lines": {"S": "\n\tx\n"}, "na\nme": {"BOOL": False}}
        database.execute("PutItem", {"TableName": "orders", "Item": orjson.loads(orjson.dumps(item))})
        page.goto(admin.url + PLACE + "&view=edit")
        page.get_by_role("button", name="DynamoDB JSON").click()
        field = page.get_by_label("The item", exact=True)
        field.wait_for()
        assert orjson.loads(field.input_value()) == item
        page.get_by_role("button", name="Form").click()
        page.get_by_label("Value of lines").fill("\n\tx\ny")
        page.get_by_role("button", name="Move a member of flags up").nth(1).click()
        page.get_by_label("Type of a member of flags").nth(2).select_option("M")
        page.get_by_role("button", name="Add attribute to", exact=False).last.wait_for()
        page.locator("[data-rows] > .add").click()
        page.keyboard.type("added")
        page.get_by_label("Value of a new attribute").fill("12")
        page.get_by_label("Type of a new attribute").select_option("N")
        page.get_by_role("button", name="Remove empty").click()
        page.locator(".changes li").nth(5).wait_for()
        page.keyboard.press("Control+Enter")
        page.wait_for_url("**saved=**")
        expected = {**item, "lines": {"S": "\n\tx\ny"}, "added": {"N": "12"}}
        expected["flags"] = {"L": [{"NULL": True}, {"BOOL": True}, {"M": {}}]}
        del expected["empty"]
        assert stored(database) == expected


def test_many_items_by_keyboard(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin) as page:
        page.goto(admin.url + "/console/t/orders?pk=b")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Space")
        page.keyboard.press("ArrowDown")
        for _ in range(2):
            page.keyboard.press("Shift+ArrowDown")
        page.get_by_text("4 selected", exact=True).wait_for()
        page.get_by_role("button", name="Delete", exact=True).press("Enter")
        # Enter deletes nothing before the button that names the act is chosen.
        dialog = page.get_by_role("dialog", name="Delete 4 items?")
        assert page.evaluate("document.activeElement.textContent") == "Cancel"
        dialog.get_by_role("button", name="Delete 4 items").press("Enter")
        page.get_by_text("Done: 4 deleted.").wait_for()
        assert database.execute("Scan", {"TableName": "orders"})["Count"] == 57
        page.get_by_role("link", name="Show the items again").press("Enter")
        page.locator("summary", has_text="Change all").press("Enter")
        page.locator("[data-bulk] input[name=name]").fill("big")
        page.locator("select[name=kind]").select_option("N")
        page.locator("[data-bulk] input[name=text]").fill(DIGITS)
        page.get_by_role("button", name="Set", exact=True).press("Enter")
        page.get_by_role("dialog").get_by_role("button", name="Set big of 56 items").press("Enter")
        page.get_by_text("Done: 56 changed.").wait_for()
        found = orjson.loads(orjson.dumps(database.execute("Scan", {"TableName": "orders"})))["Items"]
        assert sum(item.get("big") == {"N": DIGITS} for item in found) == 56


def test_a_file_is_imported_and_downloaded(browsers: Browsers) -> None:
    with console() as (_, admin), browsers.page(admin) as page:
        page.goto(admin.url + "/console/t/empty/import")
        lines = [f'{{"pk": "p", "sk": {number}, "text": "{"x" * 200}"}}' for number in range(3_000)]
        lines[1_999] = '{"pk": "p"}'
        packed = gzip.compress("\n".join(lines).encode())
        file = {"name": "items.jsonl.gz", "mimeType": "", "buffer": packed}
        page.get_by_label("A file").set_input_files(file)  # type: ignore[arg-type]
        page.get_by_role("region", name="The first rows").wait_for()
        page.get_by_role("button", name="Import").click()
        page.get_by_text("Done: 2,999 written, 1 with errors.").wait_for()
        page.get_by_text("Line 2000").wait_for()
        page.keyboard.press("Enter")
        page.wait_for_url("**/console/t/empty")
        page.locator("summary", has_text="Download").click()
        with page.expect_download() as downloading:
            page.get_by_role("button", name="DynamoDB JSON lines").click()
        assert len(downloading.value.path().read_bytes().splitlines()) == 2_999
        page.locator("tbody input[type=checkbox]").first.click()
        page.locator("summary", has_text="Download").click()
        with page.expect_download() as downloading:
            page.get_by_role("button", name="CSV with types").click()
        assert len(downloading.value.path().read_bytes().splitlines()) == 2


def test_a_log_out_ends_the_session(browsers: Browsers) -> None:
    with console() as (_, admin), browsers.page(admin) as page:
        page.goto(admin.url + "/console/t/empty")
        page.get_by_label("Settings").click()
        page.get_by_role("button", name="Log out").click()
        page.get_by_role("heading", name="Open the console by its link").wait_for()
        page.goto(admin.url + "/console/t/empty")
        page.get_by_role("heading", name="Open the console by its link").wait_for()


def test_a_demo_table_an_index_and_the_deletion_of_the_table(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin) as page:
        page.goto(admin.url + "/console/new-table")
        page.get_by_role("button", name="Create shop").press("Enter")
        page.get_by_text("222 items are there").wait_for()
        page.keyboard.press("Enter")
        page.wait_for_url("**/console/t/shop")
        page.get_by_role("link", name="Definition").click()
        page.get_by_text("Add an index").click()
        form = page.locator("form[data-post='/console/add-index']")
        form.get_by_label("Name").fill("GSI1")
        form.get_by_label("Partition key", exact=True).fill("state")
        form.get_by_role("button", name="Show as code").click()
        form.get_by_text("client.update_table(").wait_for()
        form.get_by_role("button", name="Add the index").click()
        form.get_by_role("alert").get_by_text("already exists").wait_for()
        form.get_by_label("Name").fill("by-state")
        form.get_by_label("Name").press("Enter")
        page.get_by_text("The index by-state is being built.").wait_for()
        indexes = page.get_by_role("region", name="Indexes")
        indexes.get_by_role("row", name="by-state").get_by_text("60").wait_for()
        page.locator("[data-busy]").wait_for(state="detached")
        page.get_by_role("button", name="Delete the index by-state").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete the index by-state").click()
        page.get_by_text("by-state is being deleted").wait_for()
        page.get_by_text("Delete the table").first.click()
        page.get_by_role("button", name="Delete the table").click()
        page.get_by_role("alert").get_by_text("Type the name of the table").wait_for()
        page.get_by_label("To delete it, type its name").fill("shop")
        page.keyboard.press("Enter")
        page.get_by_text("deletion of the table shop has begun").wait_for()
        assert "shop" not in database.execute("ListTables", {})["TableNames"]


def test_a_form_for_a_new_table_with_indexes(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin) as page:
        page.goto(admin.url + "/console/new-table")
        page.keyboard.type("made")
        page.get_by_label("Partition key", exact=True).fill("customer")
        for name in ("by-state", "by-size", "not-this-one"):
            page.get_by_role("button", name="Add an index").click()
            page.keyboard.type(name)
        page.get_by_role("button", name="Remove").last.click()
        first, second = page.locator("fieldset").all()
        first.get_by_label("Partition key", exact=True).fill("state")
        second.get_by_label("Kind").select_option("local")
        second.get_by_label("Sort key", exact=True).fill("size")
        page.get_by_label("Mode").select_option("provisioned")
        page.get_by_label("Read units").fill("7")
        page.get_by_role("button", name="Create the table").click()
        page.get_by_role("alert").get_by_text("does not have a range key").wait_for()
        page.get_by_label("Sort key", exact=True).first.fill("placed")
        page.get_by_role("button", name="Create the table").click()
        page.wait_for_url("**/console/t/made/about")
        page.get_by_text("7 read units and 5 write units").wait_for()
        made = database.execute("DescribeTable", {"TableName": "made"})["Table"]
        assert [index["IndexName"] for index in made["LocalSecondaryIndexes"]] == ["by-size"]
        assert [index["IndexName"] for index in made["GlobalSecondaryIndexes"]] == ["by-state"]


def test_an_index_with_keys_of_several_attributes_and_an_item_for_it(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin) as page:
        page.goto(admin.url + "/console/new-table")
        page.get_by_label("Name of the table").fill("games")
        page.get_by_label("Partition key", exact=True).fill("id")
        page.get_by_role("button", name="Add an index").click()
        page.keyboard.type("by-place")
        index = page.locator("fieldset[data-list=indexes]")
        index.get_by_label("Partition key", exact=True).fill("league")
        index.get_by_label("Sort key", exact=True).fill("round")
        for _ in range(3):
            index.get_by_role("button", name="Add a key attribute").press("Enter")
        region, year, mistake = index.locator("fieldset").all()
        region.get_by_label("Attribute", exact=True).fill("region")
        year.get_by_label("Part of").select_option("RANGE")
        year.get_by_label("Attribute", exact=True).fill("year")
        year.get_by_label("Type of the attribute").select_option("N")
        mistake.get_by_role("button", name="Remove").press("Enter")
        index.get_by_label("Kind").select_option("local")
        assert index.get_by_role("button", name="Add a key attribute").is_hidden()
        index.get_by_label("Kind").select_option("global")
        page.get_by_role("button", name="Create the table").click()
        page.wait_for_url("**/console/t/games/about")
        described = database.execute("DescribeTable", {"TableName": "games"})["Table"]
        [made] = described["GlobalSecondaryIndexes"]
        keys = [(key["AttributeName"], key["KeyType"]) for key in made["KeySchema"]]
        assert keys == [("league", "HASH"), ("region", "HASH"), ("round", "RANGE"), ("year", "RANGE")]
        page.goto(admin.url + "/console/t/games/new")
        page.keyboard.type("1")
        for name, value in {"league": "a", "region": "eu", "round": "final", "year": "2026"}.items():
            page.get_by_role("button", name=f"Add {name}", exact=True).press("Enter")
            page.keyboard.type(value)
        page.locator(".changes ins", has_text="2026").wait_for()
        page.keyboard.press("Control+Enter")
        page.wait_for_url("**/item?key=**")
        page.goto(admin.url + "/console/ask?table=games")
        page.get_by_label("Read from").select_option("by-place")
        page.wait_for_url("**source=by-place**")
        for number, value in enumerate(("a", "eu", "final"), 1):
            page.get_by_role("group", name=f"Condition {number}").get_by_label("Value").fill(value)
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_text("Query: 1 of 1 item read").wait_for()


def test_what_programs_ask_is_recorded(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin) as page:
        page.goto(admin.url + "/console/t/orders/entities?view=access")
        page.get_by_role("button", name="Record from now on").press("Enter")
        page.get_by_text("No program has used this table since").wait_for()
        database.execute("Scan", {"TableName": "orders"})
        page.get_by_role("link", name="Access patterns").click()
        recorded = page.get_by_role("region", name="Recorded access patterns")
        recorded.get_by_role("link", name="Scan").wait_for()
        page.get_by_role("button", name="Stop the recording").press("Enter")
        page.get_by_role("button", name="Record from now on").wait_for()


CLIPBOARD = ["clipboard-read", "clipboard-write"]


def test_code_is_copied(browsers: Browsers) -> None:
    with console() as (_, admin), browsers.page(admin, permissions=CLIPBOARD) as page:
        page.goto(admin.url + PLACE + "&view=dynamodb")
        page.get_by_role("button", name="Copy: DynamoDB JSON").press("Enter")
        page.get_by_text("Copied").wait_for()
        assert orjson.loads(page.evaluate("navigator.clipboard.readText()")) == ITEM
        # So is what comes after the page was loaded.
        page.goto(admin.url + PLACE + "&view=edit&on=empty")
        page.keyboard.type("x")
        changes = page.get_by_role("region", name="Changes")
        changes.get_by_text("As code").press("Enter")
        changes.get_by_role("button", name="Copy").first.press("Enter")
        changes.get_by_text("Copied").wait_for()


def test_reading_needs_no_javascript(browsers: Browsers) -> None:
    with console() as (_, admin), browsers.page(admin, java_script_enabled=False) as page:
        page.get_by_role("link", name="orders").click()
        page.get_by_role("link", name="Next").click()
        expect(page.get_by_role("region", name="Items").get_by_role("row")).to_have_count(12)
        page.get_by_role("link", name="Previous").click()
        page.get_by_role("region", name="Items").get_by_role("link").first.click()
        assert page.get_by_role("navigation", name="Views of this item").is_visible()


def test_a_write_appears_in_the_stream_page_without_reloading(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin) as page:
        enable_stream(database)
        page.goto(admin.url + "/console/t/orders/stream")
        page.evaluate("window.same = true")
        put(database, 1, city={"S": "Bern"})
        page.get_by_role("link", name="live · 1").wait_for()
        put(database, 1, city={"S": "Basel"})
        row = page.get_by_role("row").nth(1)
        row.get_by_text("Basel").wait_for()
        expect(row.get_by_text("Bern")).to_have_count(1)
        page.get_by_role("button", name="Pause").click()
        put(database, 2)
        page.get_by_role("button", name="Go on (1 new)").click()
        page.get_by_role("link", name="live · 2").wait_for()
        assert page.evaluate("window.same")
        expect(page.get_by_role("row")).to_have_count(4)


def test_requests_appear_as_they_come(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin) as page:
        page.goto(admin.url + "/console/requests")
        database.execute("Scan", {"TableName": "orders"})
        page.get_by_role("cell", name="Scan").wait_for()
        with page.expect_navigation():
            page.get_by_role("region", name="Requests").get_by_role("link").first.click()
        page.get_by_role("heading", name="Scan").wait_for()


def test_items_are_brought_back_from_the_past_by_keyboard(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin) as page:
        page.goto(admin.url + "/console/t/orders/past?at=now")
        page.get_by_text("No item differs").wait_for()
        database.execute("DeleteItem", {"TableName": "orders", "Key": orjson.loads(orjson.dumps(KEY))})
        slider = page.get_by_role("slider")
        slider.focus()
        slider.press("ArrowLeft")
        box = page.get_by_role("checkbox", name=f"Choose a {DIGITS}")
        box.wait_for()
        page.get_by_role("button", name="Choose all").press("Enter")
        page.get_by_role("button", name="Restore…").press("Enter")
        page.get_by_text("1 would be written back, 0 deleted").wait_for()
        assert stored(database) is None
        with page.expect_navigation():
            page.get_by_role("dialog").get_by_role("button", name="Restore").press("Enter")
        assert stored(database) == ITEM
