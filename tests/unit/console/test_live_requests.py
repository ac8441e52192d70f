"""The live page of requests: what it shows, what it costs when nobody looks, and its stream."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consoles import EVERY_TYPE, KEY, Browser, EventStream, fill, opened, parsed, put
from hashrange.cli.admin import bind_admin
from hashrange.database import Caller, Database
from hashrange.errors import ServiceError, ThrottlingException
from hashrange.observing.noting import Items
from hashrange.operations.context import OPERATOR
from hashrange.server import running
from hashrange.server.admin import attention
from hashrange.server.admin.attention import Attention
from hashrange.tables.items.capacity import NO_BILL
from hashrange.watching.sights import Sight
from hashrange_console.live import events, feed, state
from hashrange_console.live.feed import Feed, Viewer, Wanted
from hashrange_lab.admin import heat

SECONDS_MAX = 30
APP = Caller(access_key="app")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[state.Live]:
    """What the live pages of the servers share."""
    found: list[state.Live] = []

    class Noted(state.Live):
        def __init__(self, subject: Any) -> None:
            super().__init__(subject)
            found.append(self)

    monkeypatch.setattr(state, "Live", Noted)
    return found


def eventually(is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + SECONDS_MAX
    while not is_so():
        assert time.monotonic() < give_up


def ask(database: Database, operation: str, **sent: Any) -> Any:
    return database.execute(operation, {"TableName": "orders", **sent}, APP)


@contextmanager
def failing(database: Database) -> Iterator[None]:
    with pytest.raises(ServiceError):
        yield


def is_watched(database: Database) -> bool:
    return database.observers.active is not None


def rows(page: str) -> list[str]:
    return [" ".join(parsed(row).text.split()) for row in re.findall(r"<tr data-key.*?</tr>", page, re.S)]


def test_the_page_shows_the_latest_requests_since_it_was_opened(orders: Database, browser: Browser) -> None:
    ask(orders, "GetItem", Key=dict(KEY))
    status, text = browser.ask("/console/requests")
    assert (status, rows(text)) == (200, [])
    assert "No requests yet" in text
    ask(orders, "GetItem", Key=dict(KEY))
    ask(orders, "Scan")
    with failing(orders):
        ask(orders, "PutItem", Item=dict(KEY), ConditionExpression="attribute_not_exists(pk)")
    shown = rows(browser.ask("/console/requests")[1])
    assert [row.split()[1] for row in shown] == ["PutItem", "Scan", "GetItem"]
    assert "ConditionalCheckFailedException The conditional request failed" in shown[0]
    assert re.search(r"1 write app · us-east-1$", shown[0])
    assert re.search(r"1 of 1 item 0.5 read app", shown[2])
    for query, count in {
        "failed=1": 1, "operation=Scan": 1, "table=orders": 3, "table=other": 0, "slow=60000": 0,
        "key=" + orjson.dumps({"pk": KEY["pk"]}).decode(): 2, "key=" + '{"pk":{"S":"b"}}': 0,
    }.items():  # fmt: skip
        assert len(rows(browser.ask(f"/console/requests?{query}".replace('"', "%22"))[1])) == count, query
    status, text = browser.ask("/console/requests?slow=soon")
    assert (status, "not a number of milliseconds" in text) == (400, True)
    assert browser.ask("/console/requests?key=%5B%5D")[0] == 400


def test_a_request_is_shown_with_its_values_and_as_code(orders: Database, browser: Browser) -> None:
    browser.ask("/console/requests")
    put(orders, EVERY_TYPE)
    text = parsed(browser.ask("/console/requests?show=1")[1]).text
    assert KEY["sk"]["N"] in text
    assert "client.put_item(" in text
    ask(orders, "PutItem", Item={**KEY, "large": {"S": "x" * 100_000}})
    _, page = browser.ask("/console/requests?show=2")
    assert "(100,000 characters)" in page
    assert "client.put_item(" not in page
    for number in ("99", "-1", "x", "9" * 30):
        status, page = browser.ask(f"/console/requests?show={number}")
        assert (status, "not kept any more" in page) == (200, True)


def test_a_fault_rule_is_named_as_the_cause(orders: Database, browser: Browser) -> None:
    browser.ask("/console/requests")
    with orders.faults("Scan throttle"), failing(orders):
        ask(orders, "Scan")
    with orders.faults("Scan lose-answer"), pytest.raises(Exception, match="closed by a fault"):
        ask(orders, "Scan")
    shown = rows(browser.ask("/console/requests")[1])
    assert "AnswerLost" in shown[0]
    assert "ProvisionedThroughputExceededException" in shown[1]
    assert all("fault rule" in row for row in shown)


def test_the_consoles_own_requests_are_left_out(orders: Database, browser: Browser) -> None:
    browser.ask("/console/requests")
    browser.ask("/console/t/orders")
    assert rows(browser.ask("/console/requests")[1]) == []


def test_nothing_is_watched_until_a_page_is_opened(
    orders: Database, browser: Browser, made: list[state.Live], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[heat.Looked] = []
    see = heat.Looked.__init__

    def noted(self: heat.Looked, subject: Any) -> None:
        looked.append(self)
        see(self, subject)

    monkeypatch.setattr(heat.Looked, "__init__", noted)
    for path in ("/console", "/console/t/orders", "/console/faults", "/console/clock", "/console/streams"):
        browser.ask(path)
    assert not is_watched(orders)
    browser.ask("/console/requests")
    assert is_watched(orders)
    browser.ask("/console/heat")
    made[0].feed.attention.check()
    assert is_watched(orders)
    looked[0].attention.check()
    assert not is_watched(orders)
    assert not orders.observers.bills
    assert made[0].feed.rows(Wanted(), 10) == []


def test_attention_lasts_a_minute_or_as_long_as_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    timers: list[tuple[float, Callable[[], None]]] = []

    def later(seconds: float, callback: Callable[[], None]) -> Any:
        timers.append((seconds, callback))
        return SimpleNamespace(cancel=lambda: None)

    loop = SimpleNamespace(call_later=later)
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    watched = Attention(lambda: said.append("begin"), lambda: said.append("end"))
    watched.look()
    watched.hold()
    timers[-1][1]()
    assert said == ["begin"]
    watched.release()
    assert [seconds for seconds, _ in timers] == [
        attention.LOOK_SECONDS, attention.LOOK_SECONDS, attention.RETURN_SECONDS,
    ]  # fmt: skip
    timers[-1][1]()
    assert said == ["begin", "end"]
    watched.look()
    assert said == ["begin", "end", "begin"]


def test_the_stream_sends_rows_as_they_come(
    orders: Database, browser: Browser, made: list[state.Live]
) -> None:
    with EventStream(browser, "/console/requests/events?operation=Scan&failed=") as stream:
        assert stream.answer.status == 200
        assert stream.answer.getheader("Content-Type", "").startswith("text/event-stream")
        assert stream.answer.getheader("Cache-Control") == "no-store"
        assert "default-src 'none'" in (stream.answer.getheader("Content-Security-Policy") or "")
        stream.next("state")
        ask(orders, "GetItem", Key=dict(KEY))
        ask(orders, "Scan", FilterExpression="#a = :a", ExpressionAttributeNames={"#a": "<b>"},
            ExpressionAttributeValues={":a": {"S": "<script>"}})  # fmt: skip
        html = stream.next("rows")
        assert "Scan" in html
        assert "GetItem" not in html
        assert stream.next("state", "2 requests")
    # When the browser goes, its stream ends.
    eventually(lambda: not made[0].feed._viewers)


def test_the_stream_begins_where_the_page_ends(orders: Database, browser: Browser) -> None:
    for operation in ("Scan", "DescribeTable"):
        _, page = browser.ask("/console/requests?table=orders")
        [path] = re.findall(r'data-live="([^"]+)"', page)
        ask(orders, operation)
        with EventStream(browser, path.replace("&amp;", "&")) as stream:
            assert [row.split()[1] for row in rows(stream.next("rows"))] == [operation]


def test_a_browser_has_one_stream_and_a_server_not_too_many(
    orders: Database, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "STREAMS_MAX", 1)
    with EventStream(browser, "/console/requests/events") as first:
        first.next("state")
        with EventStream(browser, "/console/heat/events") as second:
            assert "Another page" in first.next("end")
            assert first.answer.readline() == b""
            ask(orders, "Scan")
            assert "orders" in second.next("part", "orders")
    assert browser.ask("/console/requests/events", method="HEAD")[0] == 200


def test_a_second_browser_is_refused_while_there_are_too_many(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "STREAMS_MAX", 1)
    admin = bind_admin(0)
    with running(database, admin=admin):
        one, other = opened(admin), opened(admin)
        with EventStream(one, "/console/requests/events") as stream:
            stream.next("state")
            status, text = other.ask("/console/requests/events")
            assert (status, "too many browsers" in text) == (503, True)


def test_a_server_stops_while_streams_are_open() -> None:
    with Database.in_memory() as database:
        fill(database)
        admin = bind_admin(0)
        with running(database, admin=admin):
            stream = EventStream(opened(admin), "/console/requests/events")
            stream.next("state")
        with stream:
            stream.answer.read()
        # The database is used on without the server, and is not watched any more.
        ask(database, "Scan")
        assert not is_watched(database)


def subject(database: Database) -> Any:
    return SimpleNamespace(database=database, plane=SimpleNamespace(draining=False))


def sight(request: Any, error: Exception | None = None, seconds: float = 0.0, **more: Any) -> Sight:
    operation = more.get("operation", "PutItem")
    return Sight(operation, request, APP, seconds, error, NO_BILL, Items(), 0, by_rule=False)


def test_requests_that_come_too_fast_are_counted(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = 100.0
    monkeypatch.setattr(feed, "perf_counter", lambda: moment)
    seen = Feed(subject(database))
    viewer, failed = Viewer(Wanted()), Viewer(Wanted(is_failed=True))
    seen.open(viewer, 0)
    seen.open(failed, 0)
    for number in range(feed.ROWS_MAX + 100):
        seen.see(sight({"TableName": "orders", "N": str(number)}))
    seen.see(sight({}, ThrottlingException("slow down")))
    seen.see(sight({}, seconds=feed.SLOW_SECONDS))
    assert (seen.seen, seen.skipped, viewer.skipped) == (feed.ROWS_MAX + 102, 100, 102)
    # The failed one and the slow one are kept beside the others.
    assert [row.code for row in seen.rows(Wanted(), 2)] == ["", "ThrottlingException"]
    assert len(seen.rows(Wanted(), 10_000)) == feed.ROWS_MAX + 2
    assert [row.code for row in seen.take(failed)] == ["ThrottlingException"]
    taken = [seen.take(viewer) for _ in range(feed.QUEUE_MAX // feed.SENT_MAX + 2)]
    assert [len(some) for some in taken][:2] == [feed.SENT_MAX, feed.SENT_MAX]
    assert sum(map(len, taken)) == feed.QUEUE_MAX
    moment += 0.01
    seen.see(sight({}))
    assert len(seen.rows(Wanted(), 10_000)) == feed.ROWS_MAX + 2
    assert seen.rows(Wanted(), 1)[0].number == feed.ROWS_MAX + 103


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["S", "Key", "Item"]), inner),
    max_leaves=12,
)
members = st.sampled_from(["TableName", "Item", "Key", "RequestItems", "TransactItems", "Statement", "x"])


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(members, anything), st.sampled_from(["PutItem", "Query", "BatchWriteItem", "Scan"]))
def test_requests_of_any_form_are_shown(request: Any, operation: str) -> None:
    with Database.in_memory() as database:
        seen = Feed(subject(database))
        wanted = Wanted(key=(("pk", {"S": "a"}),))
        seen.open(Viewer(wanted), 0)
        seen.see(sight(request, operation=operation))
        [row] = seen.rows(Wanted(), 10)
        assert isinstance(row.sent, bytes)
        seen.rows(wanted, 10)


def test_a_request_that_is_nested_deeply_or_large_is_cut(database: Database) -> None:
    seen = Feed(subject(database))
    deep: Any = {}
    for _ in range(2_000):
        deep = {"M": deep}
    for request in ({"Item": deep}, {"Item": ["x" * 100] * 100_000}, {"n" * 100_000: 1}):
        seen.see(sight(request))
    assert [row.is_cut for row in seen.rows(Wanted(), 10)] == [True, True, True]
    assert all(len(row.sent) <= feed.SENT_BYTES_MAX for row in seen.rows(Wanted(), 10))


def test_an_item_shows_that_the_console_wrote_it(orders: Database, browser: Browser) -> None:
    item = orjson.dumps({"pk": {"S": "new"}, "sk": {"N": "1"}}).decode()
    assert browser.post("/console/save", {"table": "orders", "edited": item})[0] == 200
    versions = orders.travel.versions("orders", {"pk": {"S": "new"}, "sk": {"N": "1"}})
    assert versions["Versions"][0]["By"] == OPERATOR
