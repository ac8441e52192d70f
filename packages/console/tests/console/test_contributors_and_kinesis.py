"""The pages of contributor insights and of Kinesis destinations."""

from __future__ import annotations

from contextlib import suppress

import orjson

from consoles import Browser, opened, parsed
from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.errors import ServiceError
from hashrange.server import running
from hashrange.settings import Settings
from worlds import create

ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/changes"
GET = {"TableName": "orders", "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}}}


def text_of(page: str) -> str:
    return " ".join(parsed(page).text.split())


def test_insights_are_enabled_shown_and_disabled(orders: Database, browser: Browser) -> None:
    page = browser.ask("/console/contributors")[1]
    assert "No table has contributor insights" in page
    done = browser.post("/console/contributors/change", {"action": "ENABLE", "table": "orders"})
    assert done == (200, {"href": "/console/contributors"})
    orders.sweep_tables()
    assert "Nothing was counted yet" in browser.ask("/console/contributors")[1]
    for _ in range(3):
        orders.execute("GetItem", dict(GET))
    orders.faults.add("GetItem times=1 throttle")
    with suppress(ServiceError):
        orders.execute("GetItem", dict(GET))
    status, page = browser.ask("/console/contributors")
    said = text_of(page)
    assert status == 200
    assert "Most used partition keys since" in said
    assert "pk a 1.5" in said
    assert "pk a sk 1 1.5" in said
    assert "Most throttled partition keys" in said
    assert 'href="/console/t/orders?pk=a"' in page
    assert "orders the table enabled" in said
    assert "Nothing was counted yet" in browser.ask("/console/contributors?table=other")[1]
    done = browser.post("/console/contributors/change", {"action": "DISABLE", "table": "orders"})
    assert done[0] == 200
    answer = orders.execute("DescribeContributorInsights", {"TableName": "orders"})
    assert orjson.loads(orjson.dumps(answer))["ContributorInsightsStatus"] in ("DISABLING", "DISABLED")


def test_insights_of_an_index_and_what_dynamodb_refuses(orders: Database, browser: Browser) -> None:
    change = {"action": "ENABLE", "table": "orders", "index": "by-kind"}
    assert browser.post("/console/contributors/change", change)[0] == 200
    assert "orders by-kind" in text_of(browser.ask("/console/contributors")[1])
    status, answer = browser.post("/console/contributors/change", {"action": "ENABLE", "table": "none"})
    assert (status, answer["code"]) == (400, "ResourceNotFoundException")


def test_a_destination_is_enabled_shown_and_disabled(orders: Database, browser: Browser) -> None:
    page = browser.ask("/console/kinesis")[1]
    assert "No table sends its changes to Kinesis" in page
    assert "The server has no endpoint of Kinesis" in page
    enable = {"action": "enable", "table": "orders", "arn": f" {ARN} ", "precision": "MICROSECOND"}
    assert browser.post("/console/kinesis/change", enable) == (200, {"href": "/console/kinesis"})
    said = text_of(browser.ask("/console/kinesis")[1])
    assert f"orders {ARN} active 0 – microseconds Disable" in said
    status, answer = browser.post("/console/kinesis/change", enable)
    assert status == 400
    assert "must be DISABLED or ENABLE_FAILED to perform ENABLE operation" in answer["error"]
    disable = {"action": "disable", "table": "orders", "arn": ARN}
    assert browser.post("/console/kinesis/change", disable)[0] == 200
    assert f"orders {ARN} disabled 0 –" in text_of(browser.ask("/console/kinesis")[1])


def test_a_destination_says_how_many_changes_wait() -> None:
    # Nobody listens there, so the changes wait.
    settings = Settings(kinesis_endpoint="http://127.0.0.1:9")
    with Database.in_memory(settings=settings) as database:
        admin = bind_admin(0)
        with running(database, admin=admin):
            browser = opened(admin)
            create(database, "music", "pk")
            database.execute("EnableKinesisStreamingDestination", {"TableName": "music", "StreamArn": ARN})
            for number in range(3):
                item = {"pk": {"S": str(number)}}
                database.execute("PutItem", {"TableName": "music", "Item": item})
            said = text_of(browser.ask("/console/kinesis")[1])
            assert "The server has no endpoint" not in said
            assert f"music {ARN} enabling 3 " in said
            [shown] = orjson.loads(browser.ask("/v1/destinations")[1])["destinations"]
            assert (shown["table"], shown["status"], shown["waiting"]) == ("music", "ENABLING", 3)
            assert shown["oldest_waiting"].startswith("20")
            assert shown["lag_seconds"] >= 0


def test_a_read_only_console_changes_neither(orders: Database) -> None:
    admin = bind_admin(0, read_only=True)
    with running(orders, admin=admin):
        browser = opened(admin)
        for path in ("/console/contributors", "/console/kinesis"):
            page = browser.ask(path)[1]
            assert "This console is read-only" in page
            assert "data-post" not in page
        change = {"action": "enable", "table": "orders", "arn": ARN}
        assert browser.post("/console/kinesis/change", change)[0] == 403
        change = {"action": "ENABLE", "table": "orders"}
        assert browser.post("/console/contributors/change", change)[0] == 403
