"""The live page of a table's stream: its changes, its triggers, and the differences that it shows."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest

from consoles import CREATE, EVERY_TYPE, KEY, Browser, EventStream, fill, opened, parsed, put
from hashrange.cli.admin import bind_admin
from hashrange.clock import VirtualClock
from hashrange.database import Database
from hashrange.server import running
from hashrange.storage.memory import MemoryEngine
from hashrange_console.differences import changes
from hashrange_console.live import records, triggers
from hashrange_console.live.events import Event
from worlds import expiry_of, table_of

PAGE = "/console/t/orders/stream"


def enable(database: Database, view_type: str = "NEW_AND_OLD_IMAGES") -> None:
    specification = {"StreamEnabled": True, "StreamViewType": view_type}
    database.execute("UpdateTable", {"TableName": "orders", "StreamSpecification": specification})


def item(number: int, **more: Any) -> dict[str, Any]:
    return {"pk": {"S": "b"}, "sk": {"N": str(number)}, **more}


def rows(page: str) -> list[str]:
    return [" ".join(parsed(row).text.split()) for row in re.findall(r"<tr data-key.*?</tr>", page, re.S)]


def test_a_table_without_a_stream_offers_it(orders: Database, browser: Browser) -> None:
    status, page = browser.ask(PAGE)
    assert (status, "This table has no stream" in page) == (200, True)
    assert 'data-post="/console/stream"' in page
    assert browser.ask(f"{PAGE}/events")[0] == 400
    assert browser.ask("/console/t/nothing/stream")[0] == 404
    assert browser.ask("/console/t/nothing/stream/events")[0] == 404
    assert "No table has a stream" in browser.ask("/console/streams")[1]
    enable(orders)
    assert f'href="{PAGE}"' in browser.ask("/console/streams")[1]
    assert "Nothing has changed" in browser.ask(PAGE)[1]


def test_the_changes_are_shown_as_differences_newest_first(orders: Database, browser: Browser) -> None:
    enable(orders)
    put(orders, item(1, a={"M": {"city": {"S": "Bern"}, "<i>": {"N": "1"}}}, gone={"S": "x"}))
    put(orders, item(1, a={"M": {"city": {"S": "Basel"}, "<i>": {"N": "1"}}}))
    orders.execute("DeleteItem", {"TableName": "orders", "Key": item(1)})
    _, page = browser.ask(PAGE)
    shown = rows(page)
    assert [row.split()[1] for row in shown] == ["REMOVE", "MODIFY", "INSERT"]
    assert 'a.city "Bern" → became "Basel" gone removed x' in shown[1]
    assert "<i>" not in page
    key = orjson.dumps(item(1)).decode()
    assert f"/console/t/orders/item?key={key}" in re.sub(r"%(\w\w)", lambda m: chr(int(m[1], 16)), page)


@pytest.mark.parametrize(
    ("view_type", "says"),
    [
        ("KEYS_ONLY", "keys only"),
        ("NEW_IMAGE", "new images only, so what changed is not known. The new image: x 2"),
        ("OLD_IMAGE", "old images only, so what changed is not known. The old image: x 1"),
    ],
)
def test_a_stream_without_both_images_says_so(
    orders: Database, browser: Browser, view_type: str, says: str
) -> None:
    enable(orders, view_type)
    put(orders, item(1, x={"N": "1"}))
    put(orders, item(1, x={"N": "2"}))
    assert says in rows(browser.ask(PAGE)[1])[0]


def test_the_oldest_records_are_read_in_pages(orders: Database, browser: Browser) -> None:
    enable(orders)
    for number in range(120):
        put(orders, item(number))
    assert "there are more than are shown" in browser.ask(PAGE)[1]
    path, seen = f"{PAGE}?from=start", []
    while path:
        _, page = browser.ask(path)
        seen += [int(row.split("·")[1].split()[0]) for row in rows(page)]
        [path] = [*re.findall(r'rel="next" href="([^"]+)"', page), ""][:1]
        path = path.replace("&amp;", "&")
    assert seen == list(range(120))
    assert browser.ask(f"{PAGE}?from=start&at=%7B%22x%22:1%7D")[0] == 400


def test_a_very_long_recent_past_is_cut(
    orders: Database, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable(orders)
    monkeypatch.setattr(records, "_READ_MAX", 1)
    for number in range(10):
        put(orders, item(number))
    _, page = browser.ask(PAGE)
    assert len(rows(page)) == records._PAGES_MAX
    [path] = re.findall(r'data-live="([^"]+)"', page)
    with EventStream(browser, path.replace("&amp;", "&")) as live:
        put(orders, item(99))
        assert [row.split("·")[1].split()[0] for row in rows(live.next("rows"))] == ["99"]


def test_a_change_comes_by_the_stream(orders: Database, browser: Browser) -> None:
    enable(orders)
    put(orders, item(1))
    _, page = browser.ask(PAGE)
    [path] = re.findall(r'data-live="([^"]+)"', page)
    put(orders, item(2))
    with EventStream(browser, path.replace("&amp;", "&")) as stream:
        [first] = rows(stream.next("rows"))
        assert "b · 2" in first
        put(orders, item(3, x={"S": "<script>"}))
        html = stream.next("rows")
        assert "b · 3" in rows(html)[0]
        assert "<script>" not in html
        orders.execute("DeleteTable", {"TableName": "orders"})
        put_again = {**CREATE, "TableName": "other"}
        orders.execute("CreateTable", put_again)
    with EventStream(browser, path.replace("&amp;", "&")) as stream:
        assert stream.answer.status == 404


def test_expiry_and_the_time_are_those_of_the_database() -> None:
    clock = VirtualClock(1_767_225_600, frozen=True)
    with Database(MemoryEngine(), clock=clock) as database:
        fill(database)
        enable(database)
        database.execute("UpdateTimeToLive", expiry_of("orders", "expires"))
        put(database, item(1, expires={"N": "1767225700"}))
        clock.advance(200)
        database.settle()
        admin = bind_admin(0)
        with running(database, admin=admin):
            browser = opened(admin)
            [removed, inserted] = rows(browser.ask(PAGE)[1])
            assert removed.startswith("00:03:20 REMOVE TTL b · 1")
            assert inserted.startswith("00:00:00 INSERT b · 1")
            # A quarter of an hour later they are in the stream, but not on its page.
            clock.advance(16 * 60)
            assert rows(browser.ask(PAGE)[1]) == []
            assert len(rows(browser.ask(f"{PAGE}?from=start")[1])) == 2


def checkpoint(database: Database, name: str, shard: str, **more: Any) -> None:
    saved = {"trigger": {"S": name}, "shard": {"S": shard}, "updated": {"N": "1767225600.000"}, **more}
    database.execute("PutItem", {"TableName": triggers.CHECKPOINTS, "Item": saved})


def test_the_checkpoints_are_where_triggers_save_them() -> None:
    of_triggers = pytest.importorskip("hashrange_triggers")
    assert of_triggers.DEFAULT_TABLE == triggers.CHECKPOINTS


def test_the_triggers_of_a_table_and_their_lag() -> None:
    clock = VirtualClock(1_767_225_600, frozen=True)
    with Database(MemoryEngine(), clock=clock) as database:
        fill(database)
        enable(database)
        database.execute("CreateTable", table_of(triggers.CHECKPOINTS, "trigger, shard"))
        [stream] = database.execute("ListStreams", {"TableName": "orders"})["Streams"]
        arn, label = stream["StreamArn"], stream["StreamLabel"]
        [shard] = database.execute("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]
        place = f"{label}/{shard['ShardId']}"
        put(database, item(1))
        opening = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        iterator = database.execute("GetShardIterator", opening)["ShardIterator"]
        [record] = database.execute("GetRecords", {"ShardIterator": iterator})["Records"]
        number = orjson.loads(orjson.dumps(record))["dynamodb"]["SequenceNumber"]
        for name in ("from-start", "late", "mails"):
            checkpoint(database, name, label)
        checkpoint(database, "mails", place, sequence={"S": number})
        checkpoint(database, "late", place, since={"N": "1767225600.0"}, iterator={"S": iterator})
        checkpoint(database, "other-table", "2020-01-01T00:00:00.000/shard")
        checkpoint(database, "finished", label, done={"BOOL": True})
        admin = bind_admin(0)
        with running(database, admin=admin):
            browser = opened(admin)
            said = " ".join(parsed(browser.ask(PAGE)[1]).text.split())
            assert "mails up to date 0 –" in said
            assert "from-start behind 1 0 s" in said
            assert "late behind 1 0 s" in said
            assert "finished up to date" in said
            assert "other-table" not in said
            clock.advance(20 * 60)  # (the iterator has expired, too)
            put(database, item(2))
            said = " ".join(parsed(browser.ask(PAGE)[1]).text.split())
            assert "mails does not run 1 0 s" in said
            assert "late does not run 2 1,200 s" in said
            clock.advance(25 * 3_600)
            database.settle()
            said = " ".join(parsed(browser.ask(PAGE)[1]).text.split())
            assert "mails has lost changes" in said
            assert "mails" in browser.ask("/console/streams")[1]


def test_differences_go_down_to_the_members() -> None:
    old: Any = {"a": {"M": {"b.c": {"L": [{"N": "1"}, {"S": "x"}]}, "same": {"S": "y"}}}, "s": {"SS": ["1"]}}
    new: Any = {"a": {"M": {"b.c": {"L": [{"N": "2"}]}, "same": {"S": "y"}}}, "s": {"SS": ["2"]}}
    new["t"] = {"S": ""}
    found = [(change.path, change.kind) for change in changes(old, new).shown]
    assert found == [
        ('a."b.c"', "changed"), ("s", "changed"), ("t", "added"),
    ]  # fmt: skip
    old["a"]["M"]["b.c"]["L"].pop()
    assert changes(old, new).shown[0].path == 'a."b.c"[0]'
    assert changes(old, old).shown == ()
    assert [change.path for change in changes(None, new, frozenset(["a"])).shown] == ["s", "t"]
    long = "word " * 900
    [change] = changes({"t": {"S": long + "old"}}, {"t": {"S": long + "new one"}}).shown
    assert change.before is not None
    assert change.after is not None
    assert (change.before.text[-9:], change.after.text[-13:]) == ('word old"', 'word new one"')
    many = changes(None, {f"n{number}": {"N": "1"} for number in range(80)})
    assert (len(many.shown), many.has_more) == (50, True)
    assert len(changes(EVERY_TYPE, {**EVERY_TYPE, "yes": {"BOOL": False}}, frozenset(KEY)).shown) == 1


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_no_text_ends_an_event_or_begins_another(end: str) -> None:
    """A client may end a line with each of the three, so a text with any of them is several lines of data."""
    forged = f"a{end}{end}event: end{end}data: forged{end}{end}b{end}id: 7{end}retry: 1"
    sent = Event("rows", forged).wire().decode()
    assert "\r" not in sent
    first, *rest = sent.removesuffix("\n\n").split("\n")
    assert first == "event: rows"
    assert all(line.startswith("data: ") for line in rest)
    assert "\n".join(line[6:] for line in rest) == forged.replace(end, "\n")
