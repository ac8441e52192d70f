"""In a real browser: the search and the settings of the header, columns, and switches in the place of what is
missing."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qs, urlsplit

import orjson

from console_browsing import KEY, PLACE, Browsers, console, phone, put


def test_a_page_without_a_stream_or_a_past_turns_it_on(browsers: Browsers) -> None:
    with console() as (_, admin), browsers.page(admin) as page:
        page.goto(admin.url + "/console/t/empty/stream")
        page.get_by_role("button", name="Turn the stream on").click()
        page.get_by_text("Nothing has changed in the last 15 minutes").wait_for()
        page.goto(admin.url + "/console/t/empty/past")
        page.get_by_role("button", name="Turn recovery on").click()
        page.get_by_role("slider").wait_for()


def test_the_type_of_a_column_is_chosen_before_an_import(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin) as page:
        page.goto(admin.url + "/console/t/empty/import")
        file = {"name": "a.csv", "mimeType": "", "buffer": b"pk,sk,size,code\np,1,5,007\n"}
        page.get_by_label("A file").set_input_files(file)  # type: ignore[arg-type]
        assert page.get_by_label("Type of size").input_value() == "N"
        page.get_by_label("Type of code").select_option("number")
        page.get_by_role("region", name="The first rows").get_by_text("7", exact=True).wait_for()
        page.get_by_label("Type of code").select_option("text")
        page.get_by_role("region", name="The first rows").get_by_text("007", exact=False).wait_for()
        page.get_by_role("button", name="Import").click()
        page.get_by_text("Done: 1 written.").wait_for()
        key = {"pk": {"S": "p"}, "sk": {"N": "1"}}
        item = database.execute("GetItem", {"TableName": "empty", "Key": key})["Item"]
        assert orjson.loads(orjson.dumps(item)) == {**key, "size": {"N": "5"}, "code": {"S": "007"}}


def test_the_search_of_any_page_leads_to_tables_pages_and_items(browsers: Browsers) -> None:
    with console() as (_, admin), browsers.page(admin) as page:
        for typed, place in (
            ("many", "**/console/t/many"), ("faults", "**/console/faults"),
            (orjson.dumps(KEY).decode(), "**/item?key=**"), ("SELECT * FROM orders", "**/ask?statement=**"),
        ):  # fmt: skip
            page.goto(admin.url + "/console/t/orders?pk=a")
            page.keyboard.press("/")
            page.keyboard.insert_text(typed)
            page.keyboard.press("Enter")
            page.wait_for_url(place)
        page.goto(admin.url + "/console/requests")
        page.keyboard.press("/")
        page.keyboard.type("cl")
        page.get_by_role("link", name="Clock page").wait_for()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url("**/console/clock")


def test_a_browser_keeps_its_colours_and_its_times(browsers: Browsers) -> None:
    options = {"timezone_id": "Asia/Kolkata", "color_scheme": "light"}
    with console() as (database, admin), browsers.page(admin, **options) as page:
        back = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(back)
        page.get_by_label("Settings").press("Enter")
        page.get_by_label("dark").check()
        dark = page.evaluate(back)
        page.goto(admin.url + "/console/requests")
        assert (page.evaluate(back), dark != light) == (dark, True)
        page.get_by_label("Settings").press("Enter")
        with page.expect_navigation():
            page.get_by_label("local").check()
        page.get_by_text("UTC+5:30").first.wait_for()
        database.execute("Scan", {"TableName": "orders"})
        time = page.get_by_role("region", name="Requests").locator("time").first
        time.wait_for()
        utc = str(time.get_attribute("datetime"))[11:16]
        minutes = int(utc[:2]) * 60 + int(utc[3:]) + 330
        assert time.inner_text().startswith(f"{minutes // 60 % 24:02}:{minutes % 60:02}:")


def test_fields_for_moments_take_the_times_that_are_shown(browsers: Browsers) -> None:
    with console() as (_, admin), browsers.page(admin, timezone_id="Asia/Kolkata") as page:
        past = f"{admin.url}/console/t/orders/past"
        page.goto(f"{past}?at=2026-01-31T12:00:00.250Z")
        start = page.get_by_label("From (UTC)")
        assert start.input_value() == "2026-01-31T12:00:00.250Z"
        page.get_by_label("Settings").press("Enter")
        with page.expect_navigation():
            page.get_by_label("local").check()
        start = page.get_by_label("From (UTC+5:30)")
        assert start.input_value() == "2026-01-31 17:30:00.250"
        sent = {
            "2026-01-31 17:30:00.250": "2026-01-31T12:00:00.250Z",
            "2026-02-01 00:15": "2026-01-31T18:45:00.000Z",
            "2026-02-01": "2026-01-31T18:30:00.000Z",
            "2026-02-01T00:15Z": "2026-02-01T00:15Z",
            "2026-02-30 00:15": "2026-02-30 00:15",
            "10m": "10m",
        }
        for typed, moment in sent.items():
            page.get_by_label("From (UTC+5:30)").fill(typed)
            with page.expect_navigation():
                page.get_by_role("button", name="Compare").click()
            assert parse_qs(urlsplit(page.url).query)["at"] == [moment]
        page.goto(f"{admin.url}/console/t/orders?at=2026-01-31T18:45:00.000Z")
        assert page.get_by_label("As of (UTC+5:30)").input_value() == "2026-02-01 00:15:00.000"


def test_versions_are_chosen_by_the_times_that_are_shown(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin, timezone_id="Asia/Kolkata") as page:
        database.execute("PutItem", {"TableName": "orders", "Item": {**KEY, "size": {"N": "1"}}})
        page.goto(admin.url + PLACE + "&view=history")
        page.get_by_label("Settings").press("Enter")
        with page.expect_navigation():
            page.get_by_label("local").check()
        page.locator("summary", has_text="Compare two versions").click()
        chosen = page.locator("select[name=before]")
        moment = datetime.fromisoformat(chosen.input_value())
        there = moment.astimezone(timezone(timedelta(hours=5, minutes=30)))
        here = there.replace(tzinfo=None).isoformat(" ", "milliseconds")  # (the versions may share a second)
        assert chosen.locator("option:checked").inner_text().startswith(here)
        page.get_by_role("button", name="Compare").click()
        page.get_by_role("region", name="Difference").get_by_role("columnheader", name=here).wait_for()


def test_columns_of_the_shown_page_are_sorted(browsers: Browsers) -> None:
    with console() as (database, admin), browsers.page(admin) as page:
        for number, size in enumerate(("9", "10", "-1.5", "1E+2")):
            put(database, number, size={"N": size})
        put(database, 9)
        page.goto(admin.url + "/console/t/orders?pk=live")
        rows = page.get_by_role("region", name="Items").locator("tbody tr")
        for sizes in (["-1.5", "9", "10", "100", "–"], ["100", "10", "9", "-1.5", "–"]):
            page.get_by_role("button", name="size").click()
            assert [row.locator("td").last.inner_text() for row in rows.all()] == sizes
        # The keys go through the rows as they stand.
        page.keyboard.press("Tab")
        page.get_by_role("region", name="Items").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url("**%223%22**")


def test_the_values_of_an_item_stand_in_a_column(browsers: Browsers) -> None:
    for options in (phone("light"), {"viewport": {"width": 1440, "height": 800}}):
        with console() as (_, admin), browsers.page(admin, **options) as page:
            page.goto(admin.url + PLACE)
            left = "(parts) => parts.map((part) => Math.round(part.getBoundingClientRect().left))"
            top = page.locator(".tree > li > .leaf > div").evaluate_all(left)
            assert len(top) > 5
            assert len(set(top)) == 1
            if options["viewport"]["width"] > 1_000:
                assert set(page.locator(".tree .leaf > div").evaluate_all(left)) == set(top)
