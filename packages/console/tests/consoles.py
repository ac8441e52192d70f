"""Helpers for the tests of the console: a client that keeps cookies, a table, and what pages hold."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import quote, urlsplit

import orjson
import pytest

from hashrange.cli.admin import bind_admin
from hashrange.database import Caller, Database
from hashrange.observing.observer import Active, ObservedRequest, Observer
from hashrange.server import running
from hashrange.server.admin.port import Admin
from hashrange_console.entry import link_to
from worlds import recovery_of, table_of

TOKEN = "0123456789abcdef"
APP = Caller(access_key="app")
CREATE = table_of("orders", "pk, sk:N", indexes={"by-kind": "kind"})
RECOVERY = recovery_of("orders")
EVERY_TYPE: dict[str, Any] = {
    "pk": {"S": "a"},
    "sk": {"N": "12345678901234567890123456789012345678"},
    "small": {"N": "-0.12345678901234567890123456789012345678"},
    "text": {"S": "\u0000 \u2028 </textarea><script>alert(1)</script> \r\n 👩‍👩‍👧 שלום \\ \" '"},
    "empty": {"S": ""},
    "bytes": {"B": base64.b64encode(bytes(range(256))).decode()},
    "yes": {"BOOL": True},
    "no": {"BOOL": False},
    "null": {"NULL": True},
    "strings": {"SS": ["42", "x"]},
    "numbers": {"NS": ["-1", "2.5"]},
    "blobs": {"BS": ["AA==", "AQ=="]},
    "list": {"L": [{"M": {"deep": {"L": []}}}, {"N": "100"}, {"NULL": True}]},
    "map": {"M": {" ": {"S": "a space"}, "S": {"S": "a type's name"}}},
}
KEY = {name: EVERY_TYPE[name] for name in ("pk", "sk")}
ITEM = "/console/t/orders/item?key=" + quote(orjson.dumps(KEY))
JSON = {"Content-Type": "application/json"}


@dataclass
class Browser:
    """A client that keeps cookies."""

    url: str
    cookie: str = ""
    last: HTTPResponse = field(init=False)

    def ask(self, path: str, body: Any = None, method: str = "", **headers: str) -> tuple[int, str]:
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        sent = {} if body is None else dict(JSON)
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie:
            sent.setdefault("Cookie", self.cookie)
        data = orjson.dumps(body) if body is not None else None
        connection.request(method or ("GET" if body is None else "POST"), path, data, sent)
        self.last = connection.getresponse()
        text = self.last.read().decode()
        connection.close()
        if made := self.last.getheader("Set-Cookie"):
            self.cookie = made.partition(";")[0]
        return self.last.status, text

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        status, text = self.ask(path, body)
        return status, orjson.loads(text)


class EventStream:
    """An open stream of server-sent events: the names and the texts of its events."""

    def __init__(self, browser: Browser, path: str) -> None:
        self._connection = HTTPConnection(urlsplit(browser.url).netloc, timeout=30)
        self._connection.request("GET", path, headers={"Cookie": browser.cookie})
        self.answer = self._connection.getresponse()

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.answer.close()
        self._connection.close()

    def next(self, wanted: str, containing: str = "") -> str:
        """The text of the next event with this name and this in its text."""
        while True:
            name, lines = "", []
            while line := self.answer.readline().decode().rstrip("\n"):
                if line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    lines.append(line[6:])
            if name == wanted and containing in "\n".join(lines):
                return "\n".join(lines)
            assert name or not self.answer.isclosed(), f"the stream ended without {wanted}"


def opened(admin: Admin) -> Browser:
    """A browser that has opened a link to the console."""
    browser = Browser(admin.url)
    assert browser.ask(link_to(admin).removeprefix(admin.url))[0] == 303
    return browser


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.in_memory() as database:
        yield database


@pytest.fixture
def browser(database: Database) -> Iterator[Browser]:
    admin = bind_admin(0)
    with running(database, admin=admin):
        yield opened(admin)


@pytest.fixture
def orders(database: Database) -> Database:
    """The database, with a table."""
    fill(database)
    return database


def fill(database: Database) -> None:
    """Make the table, with an item that has every type."""
    database.execute("CreateTable", orjson.loads(orjson.dumps(CREATE)))
    database.execute("UpdateContinuousBackups", dict(RECOVERY))
    put(database, EVERY_TYPE)


def put(database: Database, item: Any) -> None:
    database.execute("PutItem", {"TableName": "orders", "Item": orjson.loads(orjson.dumps(item))})


def stored(database: Database, key: Any = None) -> Any:
    sent = {"TableName": "orders", "Key": orjson.loads(orjson.dumps(key or KEY))}
    return orjson.loads(orjson.dumps(database.execute("GetItem", sent))).get("Item")


def show(
    observer: Observer, request: Any, error: Exception | None = None, seconds: float = 0.0, **more: str
) -> None:
    """Show a request that has ended to an observer."""
    with Database.in_memory() as database:
        active = Active((observer,), database.engine, database.settings, _fail)
        seen = ObservedRequest(active, more.get("operation", "PutItem"), request, APP)
    seen.error, seen.seconds = error, seconds
    observer.ended(seen)


def _fail(observer: str, error: Exception) -> None:
    raise error


class Fields(HTMLParser):
    """The texts of a page's form fields, and its scripts' and styles' places."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self.text = ""
        self.inline: list[str] = []
        self._name: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "textarea":
            self._name = given["name"]
            self.fields[self._name or ""] = ""
        if tag == "style" or (tag == "script" and "src" not in given) or "style" in given:
            self.inline.append(tag)
        self.inline += [name for name in given if name.startswith("on")]

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._name is not None:
            # (as browsers do)
            self.fields[self._name] = self.fields[self._name].removeprefix("\n")
            self._name = None

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._name is not None:
            self.fields[self._name] += data


def parsed(page: str) -> Fields:
    fields = Fields()
    fields.feed(page)
    return fields


PAGES = (
    "/console", "/console/t/orders", "/console/t/orders?index=by-kind&pk=x", ITEM,
    ITEM + "&view=json", ITEM + "&view=dynamodb", ITEM + "&view=edit", ITEM + "&view=history",
    ITEM + "&view=edit&as=json", ITEM + "&view=edit&as=dynamodb&on=empty", ITEM + "&saved=now",
    "/console/t/orders/new", "/console/t/orders/new?as=json", "/console/t/orders/import",
    "/console/ask", "/console/ask?statement=SELECT%20*%20FROM%20orders",
    "/console/t/orders?at=now", "/console/ask?statement=DELETE%20FROM%20orders",
    "/console/ask?tab=partiql", "/console/ask?table=orders&attr=pk&op=%3D&type=S&value=a&value2=&run=1",
    "/console/t/orders/entities", "/console/t/orders/entities?view=graph",
    "/console/t/orders/entities?view=access", "/console/t/orders/entities?view=items",
    "/console/find?text=nothing-like-it", "/console/find?text=%7B%22pk%22%3A%201%7D",
    "/console/requests", "/console/requests?failed=1&slow=20&table=orders&operation=Query&show=1",
    "/console/streams", "/console/t/orders/stream", "/console/t/orders/stream?from=start",
    "/console/faults", "/console/clock", "/console/t/orders/past?at=now",
    "/console/t/orders/past?at=now&until=now&show=items",
    "/console/t/orders/about", "/console/new-table", "/console/contributors?table=orders",
    "/console/kinesis", "/console/backups",
)  # fmt: skip
EVENTS = ("/console/requests/events", "/console/t/orders/stream/events")
"""Addresses of server-sent events."""
DOWNLOADS = ("/console/t/orders/export?format=csv", "/console/t/orders/export?format=dynamodb&pk=a",
             "/console/places")  # fmt: skip
CHANGES: dict[str, Any] = {
    "/console/save": {"table": "orders", "edited": '{"pk": {"S": "new"}, "sk": {"N": "1"}}'},
    "/console/delete": {"table": "orders", "shown": orjson.dumps(EVERY_TYPE).decode()},
    "/console/undo": {"table": "orders", "key": KEY, "to": "now"},
    "/console/saved": {"name": "mine", "address": "/console/ask?table=orders"},
    "/console/saved/delete": {"name": "other"},
    "/console/entities": {"table": "orders", "rules": [{"name": "x", "partition": "*"}]},
    "/console/uses": {"table": "orders", "on": True},
    "/console/undo-save": {"table": "orders", "key": KEY, "since": "now"},
    "/console/import": {
        "table": "orders",
        "name": "x.csv",
        "piece": base64.b64encode(b"pk,sk\nnew,1\n").decode(),
        "is_first": True,
        "is_last": True,
        "layout": {},
    },
    "/console/bulk": {"table": "orders", "action": "delete"},
    "/console/run": {"statement": "INSERT INTO orders VALUE {'pk': 'new', 'sk': 1}"},
    "/console/past/back": {"table": "orders", "keys": [KEY], "to": "now"},
    "/console/faults/add": {"effect": "latency", "options": "seconds=0"},
    "/console/faults/remove": {"number": "1"},
    "/console/clock/change": {"advance": "1m"},
    "/console/contributors/change": {"action": "ENABLE", "table": "orders"},
    "/console/kinesis/change": {
        "action": "enable",
        "table": "orders",
        "arn": "arn:aws:kinesis:us-east-1:000000000000:stream/changes",
    },
    "/console/add-index": {"table": "orders", "name": "by-sk", "partition": "sk", "partition_type": "N"},
    "/console/drop-index": {"table": "orders", "name": "by-kind"},
    "/console/billing": {"table": "orders", "mode": "PROVISIONED", "read_units": "5", "write_units": "5"},
    "/console/time-to-live": {"table": "orders", "attribute": "expires_at", "on": True},
    "/console/stream": {"table": "orders", "view_type": "KEYS_ONLY"},
    "/console/recovery": {"table": "orders", "on": False},
    "/console/tag": {"table": "orders", "key": "team", "value": "shop"},
    "/console/untag": {"table": "orders", "key": "team"},
    "/console/protection": {"table": "orders", "on": True},
    "/console/delete-table": {"table": "orders", "typed": "orders"},
    "/console/create-table": {"name": "made", "partition": "pk"},
    "/console/demo": {},
    "/console/backups/make": {"table": "orders", "name": "nightly"},
    "/console/backups/delete": {"arn": "arn:aws:dynamodb:us-east-1:000000000000:table/orders/backup/1"},
    "/console/backups/restore": {"arn": "arn:none", "target": "made"},
    "/console/backups/restore-moment": {"table": "orders", "target": "made"},
}
QUESTIONS: dict[str, Any] = {
    "/console/find": {"text": "orders"},
    "/console/past/try": {"table": "orders", "keys": [KEY], "to": "now"},
    "/console/review": CHANGES["/console/save"],
    "/console/convert": {**CHANGES["/console/save"], "to": "form"},
    "/console/import/preview": CHANGES["/console/import"],
    "/console/bulk/count": {"table": "orders"},
}
"""POSTs that change nothing."""
