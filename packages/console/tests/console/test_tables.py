"""Tables in the console: definitions, changes, new tables, demo tables, and what scope they are of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from consoles import CHANGES, CREATE, Browser, fill, opened, parsed
from hashrange.cli.admin import bind_admin
from hashrange.clock import VirtualClock
from hashrange.database import Database, Settings
from hashrange.server import running
from hashrange.storage.memory import MemoryEngine
from hashrange_console.tables import changes, demo, filling
from worlds import index_on

ABOUT = "/console/t/orders/about"
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/orders"


def described(database: Database, table: str = "orders") -> Any:
    return plain(database.execute("DescribeTable", {"TableName": table}))["Table"]


def plain(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


def said(browser: Browser, path: str = ABOUT) -> str:
    """The text of a page, with single spaces."""
    status, text = browser.ask(path)
    assert status == 200, text
    return " ".join(parsed(text).text.split())


def code_of(text: str, operation: str) -> Any:
    """The request in the CLI's command for an operation, in the text of a page."""
    found = re.search(rf"aws dynamodb {operation} \\ --endpoint-url \S+ \\ --cli-input-json '([^']+)'", text)
    assert found is not None, text
    return orjson.loads(found[1])


def test_the_definition_shows_a_table_and_code_that_makes_it_again(
    orders: Database, browser: Browser
) -> None:
    tags = [{"Key": "team", "Value": "shop"}]
    orders.execute("TagResource", {"ResourceArn": ARN, "Tags": plain(tags)})
    setting = {"AttributeName": "expires_at", "Enabled": True}
    orders.execute("UpdateTimeToLive", {"TableName": "orders", "TimeToLiveSpecification": dict(setting)})
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    orders.execute("UpdateTable", {"TableName": "orders", "StreamSpecification": dict(stream)})
    orders.execute("UpdateTable", {"TableName": "orders", "DeletionProtectionEnabled": True})
    text = said(browser)
    for part in (
        "Partition key: pk S", "Sort key: sk N", "by-kind global", "all attributes", "On demand",
        "expires_at", "the item as it is after it", "kept for 35 days", "team shop", "Protected", ARN,
    ):  # fmt: skip
        assert part in text, part
    assert code_of(text, "describe-table") == {"TableName": "orders"}
    again = code_of(text, "create-table")
    assert again["Tags"] == tags
    assert code_of(text, "update-time-to-live")["TimeToLiveSpecification"] == setting
    assert code_of(text, "update-continuous-backups")["TableName"] == "orders"
    with Database.in_memory() as other:
        other.execute("CreateTable", plain(again))
        new, old = described(other), described(orders)
        for member in ("AttributeDefinitions", "KeySchema", "StreamSpecification"):
            assert new[member] == old[member]
        assert new["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
        assert new["DeletionProtectionEnabled"] is True
        assert [index["IndexName"] for index in new["GlobalSecondaryIndexes"]] == ["by-kind"]


def test_a_provisioned_table_with_local_indexes_is_made_again(database: Database, browser: Browser) -> None:
    units = {"ReadCapacityUnits": 7, "WriteCapacityUnits": 8}
    local = index_on("by-size", "pk, size | title")
    sent = plain(CREATE) | {"LocalSecondaryIndexes": [local], "BillingMode": "PROVISIONED"}
    sent |= {"ProvisionedThroughput": units, "TableClass": "STANDARD_INFREQUENT_ACCESS"}
    sent["AttributeDefinitions"].append({"AttributeName": "size", "AttributeType": "N"})
    sent["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"] = units
    database.execute("CreateTable", plain(sent))
    text = said(browser)
    assert "7 read units and 8 write units" in text
    assert "keys and title" in text
    again = code_of(text, "create-table")
    by_name = sorted(sent["AttributeDefinitions"], key=lambda one: str(one["AttributeName"]))
    assert again == sent | {"AttributeDefinitions": by_name}


def test_tabs_and_the_list_lead_to_the_definition(orders: Database, browser: Browser) -> None:
    for path in ("/console", "/console/t/orders", ABOUT):
        assert f'href="{ABOUT}"' in browser.ask(path)[1]
    assert browser.ask("/console/t/nothing/about")[0] == 404


def test_every_change_is_made_and_told(orders: Database, browser: Browser) -> None:
    orders.execute("TagResource", {"ResourceArn": ARN, "Tags": [{"Key": "team", "Value": "x"}]})
    for path in (
        "/console/add-index", "/console/time-to-live", "/console/stream", "/console/recovery",
        "/console/untag", "/console/tag", "/console/drop-index", "/console/billing", "/console/protection",
    ):  # fmt: skip
        status, answer = browser.post(path, CHANGES[path] | {"preview": True})
        assert (status, "boto3" in answer["code"][0][0]) == (200, True), path
        status, answer = browser.post(path, CHANGES[path])
        assert (status, bool(answer["said"])) == (200, True), (path, answer)
    table = described(orders)
    [index] = table["GlobalSecondaryIndexes"]
    assert index["IndexName"] == "by-sk"
    assert table["BillingModeSummary"]["BillingMode"] == "PROVISIONED"
    assert index["ProvisionedThroughput"]["ReadCapacityUnits"] == 5
    assert table["StreamSpecification"]["StreamViewType"] == "KEYS_ONLY"
    assert table["DeletionProtectionEnabled"] is True
    tags = orders.execute("ListTagsOfResource", {"ResourceArn": ARN})["Tags"]
    assert plain(tags) == [{"Key": "team", "Value": "shop"}]
    text = said(browser)
    assert "5 read units and 5 write units" in text
    assert "Off: the past of the items is not kept" in text
    back: dict[str, dict[str, Any]] = {
        "/console/time-to-live": {"attribute": "expires_at", "on": False},
        "/console/stream": {"view_type": ""},
        "/console/recovery": {"on": True, "days": "7"},
        "/console/untag": {"key": "team"},
        "/console/protection": {"on": False},
        "/console/billing": {"mode": "PAY_PER_REQUEST"},
    }
    for path, sent in back.items():
        assert browser.post(path, {"table": "orders", **sent})[0] == 200, path
    text = said(browser)
    for part in ("Off: items do not expire", "Off: changes are not", "for 7 days", "Tags None.", "On demand"):
        assert part in text, part


def test_a_preview_changes_nothing(orders: Database, browser: Browser) -> None:
    before = described(orders)
    for path, sent in CHANGES.items():
        if path in {part.path for part in changes.PARTS} | {"/console/create-table"}:
            assert list(browser.post(path, sent | {"preview": True})[1]) == ["code"]
    assert described(orders) == before
    assert orders.execute("ListTables", {})["TableNames"] == ["orders"]


@pytest.mark.parametrize(
    ("path", "sent", "says"),
    [
        ("add-index", {"name": "by-kind", "partition": "kind"}, "create an index which already"),
        ("add-index", {"name": "x", "partition": "p", "sort": "p", "sort_type": "N"}, "one type in all keys"),
        ("add-index", {"name": "x", "partition": ""}, "attributeName"),
        ("drop-index", {"name": "other"}, "Requested resource not found"),
        ("billing", {"mode": "PROVISIONED", "read_units": "many"}, "a whole number"),
        ("billing", {"mode": "PROVISIONED", "read_units": "0", "write_units": "1"}, "than or equal to 1"),
        ("billing", {"mode": "OTHER"}, "billingMode"),
        ("time-to-live", {"attribute": "x", "on": False}, "already disabled"),
        ("stream", {"view_type": ""}, "stream"),
        ("stream", {"view_type": "ALL"}, "streamViewType"),
        ("recovery", {"on": True, "days": "99"}, "ecoveryPeriod"),
        ("tag", {"key": "aws:x"}, "aws:"),
        ("tag", {"key": ""}, "Tag Key"),
        ("delete-table", {"typed": "order"}, "Type the name of the table"),
        ("delete-table", {}, "Type the name of the table"),
    ],
)
def test_what_dynamodb_refuses_is_answered_in_its_words(
    orders: Database, browser: Browser, path: str, sent: dict[str, Any], says: str
) -> None:
    before = described(orders)
    status, answer = browser.post(f"/console/{path}", {"table": "orders", **sent})
    assert (status, says in answer["error"]) == (400, True), answer
    assert described(orders) == before


def test_a_table_is_deleted_if_its_name_was_typed(orders: Database, browser: Browser) -> None:
    orders.execute("UpdateTable", {"TableName": "orders", "DeletionProtectionEnabled": True})
    sent = CHANGES["/console/delete-table"]
    status, answer = browser.post("/console/delete-table", sent)
    assert (status, "protected against deletion" in answer["error"]) == (400, True)
    assert browser.post("/console/protection", {"table": "orders", "on": False})[0] == 200
    assert browser.post("/console/delete-table", sent)[1]["href"] == "/console"
    assert orders.execute("ListTables", {})["TableNames"] == []


def test_what_is_built_is_followed_until_it_is_there() -> None:
    clock = VirtualClock(1_767_225_600, frozen=True)
    settings = Settings(update_seconds=60, delete_seconds=60)
    with Database(MemoryEngine(), clock=clock, settings=settings) as database:
        fill(database)
        admin = bind_admin(0)
        with running(database, admin=admin):
            browser = opened(admin)
            assert "data-busy" not in browser.ask(ABOUT)[1] + browser.ask("/console")[1]
            assert browser.post("/console/add-index", CHANGES["/console/add-index"])[0] == 200
            for path in (ABOUT, "/console"):
                assert "data-busy" in browser.ask(path)[1], path
            assert "creating" in said(browser)
            clock.advance(120)
            database.settle()
            for path in (ABOUT, "/console"):
                assert "data-busy" not in browser.ask(path)[1], path
            assert browser.post("/console/delete-table", CHANGES["/console/delete-table"])[0] == 200
            _, text = browser.ask(ABOUT)
            assert ("deleting" in text, "data-busy" in text, "data-post" in text) == (True, True, False)
            assert "deleting" in browser.ask("/console")[1]


def test_a_table_that_is_being_made_has_a_definition() -> None:
    with Database.in_memory(settings=Settings(create_seconds=3_600)) as database:
        admin = bind_admin(0)
        with running(database, admin=admin):
            browser = opened(admin)
            browser.post("/console/create-table", CHANGES["/console/create-table"])
            text = said(browser, "/console/t/made/about")
            assert "creating" in text
            assert "This page follows a change" in text


def test_a_new_table_is_made_as_its_code_says(database: Database, browser: Browser) -> None:
    form = {
        "name": "made",
        "partition": "customer",
        "sort": "at",
        "sort_type": "N",
        "mode": "PROVISIONED",
        "read_units": "3",
        "write_units": "4",
        "stream": "KEYS_ONLY",
        "protected": True,
        "indexes": [
            {"name": "by-state", "partition": "state", "projection": "INCLUDE", "include": "a, b"},
            {"name": "by-size", "kind": "local", "sort": "size", "sort_type": "N", "projection": "KEYS_ONLY"},
        ],
    }
    _, answer = browser.post("/console/create-table", form | {"preview": True})
    command = next(text for language, text in answer["code"] if language == "AWS CLI")
    sent = code_of(" ".join(command.split()), "create-table")
    status, answer = browser.post("/console/create-table", form)
    assert (status, answer["href"]) == (200, "/console/t/made/about"), answer
    assert browser.ask(answer["href"])[0] == 200
    table = described(database, "made")
    with Database.in_memory() as other:
        other.execute("CreateTable", plain(sent))
        again = described(other, "made")
    for varying in ("TableId", "CreationDateTime", "LatestStreamArn", "LatestStreamLabel"):
        del table[varying], again[varying]
    assert table == again
    assert table["DeletionProtectionEnabled"] is True
    [index] = table["GlobalSecondaryIndexes"]
    assert index["Projection"]["NonKeyAttributes"] == ["a", "b"]
    [index] = table["LocalSecondaryIndexes"]
    assert index["KeySchema"][0]["AttributeName"] == "customer"


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"name": "a", "partition": "pk"}, "greater than or equal to 3"),
        ({"name": "orders", "partition": "pk"}, "Table already exists: orders"),
        ({"name": "new", "partition": "pk", "partition_type": "BOOL"}, "BOOL"),
        ({"name": "new", "partition": "pk", "mode": "PROVISIONED"}, "a whole number"),
        ({"name": "new", "partition": "pk", "indexes": [{"name": "x", "kind": "other"}]}, "global or local"),
        ({"name": "new", "partition": "pk", "indexes": [{"name": "x", "kind": "local"}]}, "ndex"),
        ({"name": "new", "partition": "pk", "sort": "pk", "sort_type": "N"}, "one type in all keys"),
    ],
)
def test_a_wrong_new_table_says_why(
    orders: Database, browser: Browser, form: dict[str, Any], says: str
) -> None:
    status, answer = browser.post("/console/create-table", form)
    assert (status, says in answer["error"]) == (400, True), answer
    assert orders.execute("ListTables", {})["TableNames"] == ["orders"]


def test_the_demo_table_is_filled_step_by_step(database: Database, browser: Browser) -> None:
    assert "data-demo" in browser.ask("/console")[1]
    status, step = browser.post("/console/demo", {})
    assert (status, step["next"], step["ready"]) == (200, 0, False), step
    assert "Go on filling it" in said(browser, "/console/new-table")
    seen = [0]
    while not step["ready"]:
        status, step = browser.post("/console/demo", {"next": step["next"]})
        assert status == 200, step
        seen.append(step["next"])
    items = demo.items()
    assert seen == sorted(set(seen))
    assert seen[-1] == step["count"] == len(items)
    assert 200 <= len(items) <= 500
    stored = plain(database.execute("Scan", {"TableName": demo.TABLE}))
    assert (stored["Count"], browser.ask(step["href"])[0]) == (len(items), 200)
    for index in described(database, demo.TABLE).get("GlobalSecondaryIndexes", ()):
        scan = database.execute("Scan", {"TableName": demo.TABLE, "IndexName": index["IndexName"]})
        assert scan["Count"] > 20
    # A table that is full is not touched again.
    assert "is there already" in said(browser, "/console/new-table")
    for sent in ({}, {"next": 0}):
        assert browser.post("/console/demo", sent)[0] == 400
    assert filling.TAG not in said(browser, f"/console/t/{demo.TABLE}/about")


def test_a_demo_does_not_touch_a_table_of_the_user(database: Database, browser: Browser) -> None:
    database.execute("CreateTable", plain(CREATE) | {"TableName": "shop"})
    status, answer = browser.post("/console/demo", {})
    assert (status, answer["error"]) == (400, "Table already exists: shop")
    status, answer = browser.post("/console/demo", {"next": 0})
    assert (status, "nothing was written" in answer["error"]) == (400, True)
    assert database.execute("Scan", {"TableName": "shop"})["Count"] == 0
    for number in (-1, 10_000):
        assert browser.post("/console/demo", {"next": number})[0] == 400


def test_a_demo_waits_for_its_table() -> None:
    clock = VirtualClock(1_767_225_600, frozen=True)
    with Database(MemoryEngine(), clock=clock, settings=Settings(create_seconds=10)) as database:
        admin = bind_admin(0)
        with running(database, admin=admin):
            browser = opened(admin)
            browser.post("/console/demo", {})
            step = browser.post("/console/demo", {"next": 0})[1]
            assert (step["next"], step["waits"], step["ready"]) == (0, True, False)
            clock.advance(20)
            database.settle()
            step = browser.post("/console/demo", {"next": 0})[1]
            assert (step["next"], step["waits"]) == (100, False)


def test_tables_of_another_scope_are_shown_changed_and_made() -> None:
    with Database.in_memory(settings=Settings(separate_accounts=True, separate_regions=True)) as database:
        admin = bind_admin(0)
        with running(database, admin=admin):
            browser = opened(admin)
            scope = "?scope=" + quote("111111111111/eu-west-1", safe="")
            for path, sent in {
                "/console/create-table": {"name": "orders", "partition": "pk"},
                "/console/tag": {"table": "orders", "key": "team", "value": "shop"},
                "/console/add-index": {"table": "orders", "name": "by-kind", "partition": "kind"},
                "/console/demo": {},
            }.items():
                status, answer = browser.post(path + scope, sent)
                assert status == 200, answer
                assert answer.get("href", scope).endswith(scope) or not answer["href"]
            text = said(browser, ABOUT + scope)
            assert "arn:aws:dynamodb:eu-west-1:111111111111:table/orders" in text
            assert "team shop" in text
            for part in (
                'region_name="eu-west-1", aws_access_key_id="111111111111"',
                "AWS_ACCESS_KEY_ID=111111111111 AWS_SECRET_ACCESS_KEY=any \\ aws dynamodb describe-table",
                "--region eu-west-1",
                'region: "eu-west-1", credentials: { accessKeyId: "111111111111"',
            ):
                assert part in text, part
            assert "in 111111111111/eu-west-1" in said(browser, "/console/new-table" + scope)
            assert "in 000000000000/us-east-1" in said(browser, "/console/new-table")
            assert browser.ask(ABOUT)[0] == 404
            assert browser.post("/console/tag", {"table": "orders", "key": "a"})[0] == 400
            assert browser.post("/console/delete-table" + scope, {"table": "shop", "typed": "shop"})[0] == 200


def test_what_is_no_scope_is_refused(orders: Database, browser: Browser) -> None:
    for scope in ("a/b/c", "a b", '"><script>', "é"):
        for path in (ABOUT, "/console/new-table", "/console/t/orders"):
            status, text = browser.ask(f"{path}?scope={quote(scope)}")
            assert (status, "is not ACCOUNT/REGION" in text) == (400, True)
        answer = browser.post(f"/v1/data/ListTables?scope={quote(scope)}", {})[1]
        assert answer["__type"].endswith("#ValidationException")


@pytest.mark.parametrize("separate", [False, True])
def test_without_a_scope_the_servers_own_account_and_region_are_meant(separate: bool) -> None:
    settings = Settings(separate_accounts=separate, separate_regions=separate)
    with Database.in_memory(settings=settings) as database:
        admin = bind_admin(0)
        with running(database, admin=admin, region="eu-north-1", account_id="222222222222"):
            browser = opened(admin)
            assert browser.post("/v1/data/CreateTable", CREATE)[0] == 200
            arn = "arn:aws:dynamodb:eu-north-1:222222222222:table/orders"
            assert arn in said(browser)
            assert ('region_name="eu-north-1"' in said(browser)) == separate
            recovery = {"PointInTimeRecoveryEnabled": True}
            sent = {"TableName": "orders", "PointInTimeRecoverySpecification": recovery}
            assert browser.post("/v1/data/UpdateContinuousBackups", sent)[0] == 200
            assert browser.ask("/console/t/orders?at=now")[0] == 200
            _, text = browser.ask("/console")
            hrefs = re.findall(r'href="(/console/t/[^"]+)"', text)
            assert [("222222222222%2Feu-north-1" in href) for href in hrefs] == [separate, separate]
            for href in hrefs:
                assert browser.ask(href)[0] == 200
            assert arn in said(browser, hrefs[1])


def test_requests_of_the_plane_are_counted_in_the_metrics(orders: Database, browser: Browser) -> None:
    browser.post("/v1/data/Scan", {"TableName": "orders"})
    browser.post("/v1/data/Scan", {"TableName": "nothing"})
    browser.post("/v1/data/NoSuchThing", {})
    browser.ask("/console/t/orders")
    _, text = browser.ask("/metrics")
    assert 'hashrange_requests_total{operation="Scan",status="200",error=""} 2' in text
    assert (
        'hashrange_requests_total{operation="Scan",status="400",error="ResourceNotFoundException"} 1' in text
    )
    assert "NoSuchThing" not in text
    assert 'hashrange_other_responses_total{status="400",error="UnknownOperationException"} 1' in text


def test_a_new_table_with_what_create_table_does_not_take(database: Database, browser: Browser) -> None:
    form = {"name": "made", "partition": "pk", "ttl": "expires_at", "recovery": True}
    code = browser.post("/console/create-table", {**form, "preview": True})[1]["code"]
    assert all("TimeToLive" in text or "time_to_live" in text or "time-to-live" in text for _, text in code)
    assert browser.post("/console/create-table", form)[0] == 200
    ttl = database.execute("DescribeTimeToLive", {"TableName": "made"})["TimeToLiveDescription"]
    assert ttl["AttributeName"] == "expires_at"
    assert "The past of the items is kept" in said(browser, "/console/t/made/about")


def test_backups_are_made_restored_and_deleted(tmp_path: Path) -> None:
    with Database.in_memory(settings=Settings(backup_dir=str(tmp_path))) as database:
        fill(database)
        admin = bind_admin(0)
        with running(database, admin=admin):
            _make_and_restore(database, opened(admin))


def _make_and_restore(orders: Database, browser: Browser) -> None:
    assert "There are no backups" in said(browser, "/console/backups")
    assert browser.post("/console/backups/make", {"table": "orders", "name": "nightly"})[0] == 200
    orders.settle()
    page = browser.ask("/console/backups")[1]
    [arn] = set(re.findall(r'name="arn" value="([^"]+)"', page))
    assert re.search(r"nightly orders .* Restore", said(browser, "/console/backups"))
    restore = {"arn": arn, "target": "again"}
    assert "restore_table_from_backup" in str(
        browser.post("/console/backups/restore", {**restore, "preview": True})
    )
    assert browser.post("/console/backups/restore", restore)[1]["href"] == "/console/t/again/about"
    moment = {"table": "orders", "target": "before", "at": "now"}
    assert browser.post("/console/backups/restore-moment", moment)[0] == 200
    assert browser.post("/console/backups/restore-moment", {**moment, "at": "soon"})[0] == 400
    orders.settle()
    for name in ("again", "before"):
        assert orders.execute("Scan", {"TableName": name})["Count"] == 1
    assert browser.post("/console/backups/delete", {"arn": arn})[0] == 200
    assert "nightly" not in said(browser, "/console/backups")
