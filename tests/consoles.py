"""Helpers for the tests of the console: a client that keeps cookies, a table, and what pages hold."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import quote, urlsplit

import orjson

from hashrange.database import Database
from hashrange.server.admin.port import Admin

TOKEN = "0123456789abcdef"
CREATE = {
    "TableName": "orders",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
        {"AttributeName": "kind", "AttributeType": "S"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-kind",
            "KeySchema": [{"AttributeName": "kind", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
RECOVERY = {
    "TableName": "orders",
    "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
}
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


def opened(admin: Admin) -> Browser:
    """A browser that has opened a link to the console."""
    browser = Browser(admin.url)
    assert browser.ask(admin.console_link().removeprefix(admin.url))[0] == 303
    return browser


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
        if tag == "textarea":
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
    "/console", "/console?q=ord", "/console/t/orders", "/console/t/orders?index=by-kind&pk=x", ITEM,
    ITEM + "&view=json", ITEM + "&view=dynamodb", ITEM + "&view=edit", ITEM + "&view=history",
    "/console/t/orders/new", "/console/ask", "/console/ask?statement=SELECT%20*%20FROM%20orders",
    "/console/t/orders?at=now", "/console/ask?statement=DELETE%20FROM%20orders",
)  # fmt: skip
CHANGES: dict[str, Any] = {
    "/console/save": {"table": "orders", "edited": '{"pk": {"S": "new"}, "sk": {"N": "1"}}'},
    "/console/delete": {"table": "orders", "shown": orjson.dumps(EVERY_TYPE).decode()},
    "/console/undo": {"table": "orders", "key": KEY, "to": "now"},
    "/console/run": {"statement": "INSERT INTO orders VALUE {'pk': 'new', 'sk': 1}"},
}
