"""The console over its socket: who may open it, what its pages say, and that a save loses nothing."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import quote, urlsplit

import orjson
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.clock import VirtualClock
from hashrange.console import changes, code, looks, routes, shown
from hashrange.console.reach import Refused, key_of
from hashrange.database import Database, Settings
from hashrange.server import running
from hashrange.server.admin.entry import KEPT_MAX, Entry
from hashrange.server.admin.port import Admin
from hashrange.storage.memory import MemoryEngine

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
    "list": {"L": [{"M": {"deep": {"L": []}}}, {"N": "1E+2"}, {"NULL": True}]},
    "map": {"M": {" ": {"S": "a space"}, "S": {"S": "a type's name"}}},
}
EVERY_TYPE["list"]["L"][1] = {"N": "100"}
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


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.in_memory() as database:
        yield database


def _opened(admin: Admin) -> Browser:
    browser = Browser(admin.url)
    assert browser.ask(admin.console_link().removeprefix(admin.url))[0] == 303
    return browser


@pytest.fixture
def browser(database: Database) -> Iterator[Browser]:
    admin = bind_admin(0)
    with running(database, admin=admin):
        yield _opened(admin)


@pytest.fixture
def orders(database: Database) -> Database:
    database.execute("CreateTable", orjson.loads(orjson.dumps(CREATE)))
    database.execute("UpdateContinuousBackups", dict(RECOVERY))
    put(database, EVERY_TYPE)
    return database


def put(database: Database, item: Any) -> None:
    database.execute("PutItem", {"TableName": "orders", "Item": orjson.loads(orjson.dumps(item))})


def stored(database: Database, key: Any = None) -> Any:
    sent = {"TableName": "orders", "Key": orjson.loads(orjson.dumps(key or KEY))}
    return orjson.loads(orjson.dumps(database.execute("GetItem", sent))).get("Item")


class _Fields(HTMLParser):
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


def parsed(page: str) -> _Fields:
    fields = _Fields()
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


def test_every_page_has_the_headers_and_no_code_inside_it(orders: Database, browser: Browser) -> None:
    for path in PAGES:
        status, text = browser.ask(path)
        assert status == 200, (path, text)
        policy = browser.last.getheader("Content-Security-Policy") or ""
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert browser.last.getheader("X-Content-Type-Options") == "nosniff"
        assert browser.last.getheader("Referrer-Policy") == "no-referrer"
        assert browser.last.getheader("Cache-Control") == "no-store"
        assert parsed(text).inline == []
        assert not re.search(r'(?:src|href|action)="(?:https?:)?//', text)


def test_static_files_are_kept_by_browsers_under_names_with_hashes(browser: Browser) -> None:
    _, page = browser.ask("/console")
    names = re.findall(r'"(/console/static/[^"]+)"', page)
    assert len(names) == 2
    for name in names:
        assert re.search(r"-[0-9a-f]{12}\.(css|js)$", name)
        assert Browser(browser.url).ask(name)[0] == 200
        browser.ask(name)
        assert "immutable" in (browser.last.getheader("Cache-Control") or "")
    assert browser.ask("/console/static/console.css")[0] == 404
    assert browser.ask("/console/static/..%2Fcode.py")[0] == 404


def test_a_link_opens_the_console_once(database: Database) -> None:
    admin = bind_admin(0)
    with running(database, admin=admin):
        link = admin.console_link().removeprefix(admin.url)
        first, second = Browser(admin.url), Browser(admin.url)
        assert first.ask(link)[0] == 303
        kept = first.last.getheader("Set-Cookie") or ""
        assert "HttpOnly" in kept
        assert "SameSite=strict" in kept
        assert "Path=/console" in kept
        assert TOKEN not in link
        assert first.last.getheader("Location") == "/console"
        assert first.ask("/console")[0] == 200
        assert first.ask(link)[0] == 303  # (the same browser opens its old link again)
        status, text = second.ask(link)
        assert (status, "has been used" in text, second.cookie) == (401, True, "")


def test_without_a_session_every_page_and_every_change_is_refused(orders: Database, browser: Browser) -> None:
    for cookie in ("", f"{browser.cookie}x", browser.cookie.partition("=")[0] + "="):
        stranger = Browser(browser.url, cookie)
        for path in PAGES:
            status, text = stranger.ask(path)
            assert status == 401
            assert "hashrange console" in text
            assert "orders" not in text
        for path, body in CHANGES.items():
            assert stranger.post(path, body)[0] == 401
    assert stored(orders) == EVERY_TYPE


def test_pages_and_changes_here_are_all_that_there_are() -> None:
    paths = {"/console/t/{table}": "/console/t/orders", "/console/t/{table}/item": "/console/t/orders/item"}
    paths["/console/t/{table}/new"] = "/console/t/orders/new"
    for endpoint in routes.ENDPOINTS:
        if endpoint.method == "POST":
            assert endpoint.path in CHANGES
        elif not endpoint.path.startswith("/console/static/"):
            path = paths.get(endpoint.path, endpoint.path)
            assert any(page.split("?")[0] == path for page in PAGES), endpoint.path


def test_the_cookie_of_an_earlier_server_is_refused(browser: Browser) -> None:
    with Database.in_memory() as other:
        admin = bind_admin(0)
        with running(other, admin=admin):
            assert Browser(admin.url, browser.cookie).ask("/console")[0] == 401


def test_other_sites_may_change_nothing(orders: Database, browser: Browser) -> None:
    origin = browser.url
    foreign: list[dict[str, str]] = [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site", "Origin": origin},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
    ]
    paths: dict[str, Any] = {**CHANGES, "/clock": {}, "/data/DeleteTable": {"TableName": "orders"}}
    for headers in foreign:
        for path, body in {**paths, "/console-link": {}}.items():
            assert browser.ask(path, body, **headers)[0] == 403, (path, headers)
        assert browser.ask("/faults", method="DELETE", **headers)[0] == 403
    assert stored(orders) == EVERY_TYPE
    own: list[dict[str, str]] = [{"Sec_Fetch_Site": "same-origin"}, {"Origin": origin}, {}]
    for headers in own:
        preview = {**CHANGES["/console/save"], "preview": True}
        assert browser.ask("/console/save", preview, **headers)[0] == 200


def test_a_change_needs_json(orders: Database, browser: Browser) -> None:
    for path, body in CHANGES.items():
        assert browser.ask(path, body, **{"Content_Type": "text/plain"})[0] == 415
    assert browser.ask("/data/Scan", {"TableName": "orders"}, **{"Content_Type": "text/plain"})[0] == 415


def test_a_read_only_console_refuses_every_change(orders: Database) -> None:
    admin = bind_admin(0, read_only=True)
    with running(orders, admin=admin):
        browser = _opened(admin)
        for path, body in CHANGES.items():
            status, answer = browser.post(path, body)
            assert (status, "--console-read-only" in answer["error"]) == (403, True)
        for path in PAGES:
            status, text = browser.ask(path)
            assert status == (400 if path.endswith("&view=edit") else 200)
            assert "read-only" in text, path
            assert not re.search(r"<button[^>]*data-(?:undo|save|delete|run-change)", text)
        delete = {"TableName": "orders", "Key": KEY}
        for operation, sent in {
            "DeleteItem": delete,
            "DeleteTable": {"TableName": "orders"},
            "ExecuteStatement": {"Statement": "DELETE FROM orders WHERE pk='a'"},
            "BatchExecuteStatement": {},
        }.items():
            assert browser.post(f"/data/{operation}", sent)[0] == 403, operation
        assert browser.post("/data/Scan", {"TableName": "orders"})[0] == 200
        assert browser.post("/data/ExecuteStatement", {"Statement": "SELECT * FROM orders"})[0] == 200
        own = {"Sec_Fetch_Site": "same-origin"}
        for path, body in {"/clock": {}, "/past/undo": {"table": "orders", "to": "now", "all": True}}.items():
            assert browser.ask(path, body, **own)[0] == 403
        # A command that uses the plane goes on as before.
        assert browser.post("/past/undo", {"table": "orders", "to": "now", "all": True})[0] == 200
    assert stored(orders) == EVERY_TYPE


def test_a_guarded_plane_opens_its_console_to_sessions_and_to_its_token(database: Database) -> None:
    admin = bind_admin(0, token=TOKEN)
    with running(database, admin=admin):
        assert Browser(admin.url).ask("/console")[0] == 401
        assert Browser(admin.url).ask("/consoles")[0] == 401
        assert Browser(admin.url).ask("/console-link", {})[0] == 401
        assert Browser(admin.url).ask("/data/ListTables", {})[0] == 401
        for _ in range(2):
            other = Browser(admin.url)
            assert other.ask(f"/console?token={TOKEN}")[0] == 303
            assert other.ask("/console")[0] == 200
        browser = _opened(admin)
        assert browser.ask("/console")[0] == 200
        assert browser.ask("/health")[0] == 401
        link = {"Authorization": f"Bearer {TOKEN}"}
        assert Browser(admin.url).ask("/console-link", {}, **link)[0] == 200


def test_entries_are_forgotten_when_there_are_too_many() -> None:
    entry = Entry()
    first = entry.link()
    session = entry.redeem(entry.link())
    assert session is not None
    for _ in range(KEPT_MAX):
        entry.redeem(entry.link())
        entry.link()
    assert entry.redeem(first) is None
    assert not entry.knows(session)
    for wrong in ("", "\udcff", "é"):
        assert entry.redeem(wrong) is None
        assert not entry.knows(wrong)


def test_a_command_prints_a_new_link(database: Database) -> None:
    admin = bind_admin(0)
    with running(database, admin=admin) as endpoint:
        result = CliRunner().invoke(main, ["console", "--endpoint-url", endpoint])
        assert result.exit_code == 0
        link = result.stdout.strip()
        assert link.startswith(f"{admin.url}/console?token=")
        assert Browser(admin.url).ask(link.removeprefix(admin.url))[0] == 303


def test_the_data_endpoint_answers_as_dynamodb_does(orders: Database, browser: Browser) -> None:
    sent = {"TableName": "orders", "ReturnConsumedCapacity": "TOTAL"}
    status, answer = browser.post("/data/Scan", sent)
    assert (status, answer["Items"], answer["Count"]) == (200, [EVERY_TYPE], 1)
    assert answer["ConsumedCapacity"]["CapacityUnits"] > 0
    status, answer = browser.post("/data/Scan", {"TableName": "nothing"})
    assert status == 400
    assert answer["__type"].endswith("#ResourceNotFoundException")
    assert browser.post("/data/Unknown", {})[1]["__type"].endswith("#UnknownOperationException")
    assert browser.post("/data/Scan", [])[1]["__type"].endswith("#SerializationException")
    assert browser.post("/data/PutItem", {"TableName": "orders", "Item": EVERY_TYPE}) == (200, {})


def test_the_data_endpoint_reads_the_tables_of_a_scope() -> None:
    with Database.in_memory(settings=Settings(separate_accounts=True, separate_regions=True)) as database:
        admin = bind_admin(0)
        with running(database, admin=admin):
            browser = _opened(admin)
            scope = "111111111111/eu-west-1"
            assert browser.post(f"/data/CreateTable?scope={quote(scope)}", CREATE)[0] == 200
            assert browser.post("/data/DescribeTable", {"TableName": "orders"})[0] == 400
            _, text = browser.ask("/console")
            [href] = re.findall(r'href="(/console/t/[^"]+)"', text)
            assert browser.ask(href)[0] == 200
            assert browser.ask("/console/t/orders")[0] == 404


def test_an_edit_that_changes_nothing_is_byte_for_byte_what_was_stored(
    orders: Database, browser: Browser
) -> None:
    fields = parsed(browser.ask(ITEM + "&view=edit")[1]).fields
    assert orjson.loads(fields["edited"]) == EVERY_TYPE
    assert fields["edited"] == fields["shown"]
    saved = {"table": "orders", "edited": fields["edited"], "shown": fields["shown"]}
    status, answer = browser.post("/console/save", saved)
    assert (status, "nothing to save" in answer["error"]) == (400, True)
    # The same text makes the same item again, in another place.
    item = orjson.loads(fields["edited"]) | {"pk": {"S": "copy"}}
    status, answer = browser.post("/console/save", {"table": "orders", "edited": orjson.dumps(item).decode()})
    assert status == 200
    assert stored(orders, {"pk": {"S": "copy"}, "sk": KEY["sk"]}) == EVERY_TYPE | {"pk": {"S": "copy"}}


def _save(browser: Browser, edited: Any, before: Any = EVERY_TYPE) -> tuple[int, Any]:
    text = orjson.dumps(before).decode() if before is not None else ""
    return browser.post(
        "/console/save", {"table": "orders", "edited": orjson.dumps(edited).decode(), "shown": text}
    )


def test_a_save_writes_what_was_changed(orders: Database, browser: Browser) -> None:
    edited = {**EVERY_TYPE, "empty": {"S": "now"}, "added": {"NS": ["1"]}}
    del edited["null"]
    status, answer = _save(browser, edited)
    assert (status, answer["href"]) == (200, _item_href())
    assert stored(orders) == edited
    assert browser.ask(answer["href"])[0] == 200


@pytest.mark.parametrize("change", ["an attribute that was edited", "another attribute", "deletion"])
def test_a_save_is_refused_if_somebody_changed_the_item(
    orders: Database, browser: Browser, change: str
) -> None:
    theirs: Any = {**EVERY_TYPE, "empty" if change.startswith("an ") else "yes": {"S": "theirs"}}
    if change == "deletion":
        orders.execute("DeleteItem", {"TableName": "orders", "Key": orjson.loads(orjson.dumps(KEY))})
        theirs = None
    else:
        put(orders, theirs)
    for path, sent in {
        "/console/save": {"edited": orjson.dumps(EVERY_TYPE | {"empty": {"S": "ours"}}).decode()},
        "/console/delete": {},
    }.items():
        body = {"table": "orders", "shown": orjson.dumps(EVERY_TYPE).decode(), **sent}
        status, answer = browser.post(path, body)
        assert (status, answer["code"]) == (400, changes.CONFLICT)
        assert "Somebody changed or deleted" in answer["error"]
    assert stored(orders) == theirs


def test_an_attribute_that_somebody_added_stays_and_is_not_overwritten(
    orders: Database, browser: Browser
) -> None:
    put(orders, EVERY_TYPE | {"theirs": {"S": "kept"}})
    assert _save(browser, EVERY_TYPE | {"theirs": {"S": "ours"}})[0] == 400
    assert _save(browser, EVERY_TYPE | {"empty": {"S": "ours"}})[0] == 200
    assert stored(orders) == EVERY_TYPE | {"theirs": {"S": "kept"}, "empty": {"S": "ours"}}


def test_a_new_item_overwrites_none(orders: Database, browser: Browser) -> None:
    status, answer = _save(browser, {**KEY, "mine": {"S": "x"}}, None)
    assert (status, "already" in answer["error"]) == (400, True)
    assert stored(orders) == EVERY_TYPE


def test_an_item_with_very_many_attributes_is_saved(orders: Database, browser: Browser) -> None:
    many = {**KEY, **{f"a{number}": {"N": str(number)} for number in range(1_000)}}
    put(orders, many)
    edited = many | {"a7": {"N": "-7"}, "new": {"S": "x"}}
    assert _save(browser, edited, many) == (200, {"href": _item_href()})
    assert stored(orders) == edited
    assert _save(browser, many | {"a7": {"N": "9"}}, many)[0] == 400


def _item_href() -> str:
    return looks.href("/console/t/orders/item", key=orjson.dumps(KEY).decode())


@pytest.mark.parametrize(
    ("edited", "says"),
    [
        ("{", "not JSON"),
        ("[]", "a JSON object"),
        ('{"sk": {"N": "1"}}', "needs its key: pk"),
        ('{"pk": {"S": "b"}, "sk": {"N": "1"}}', "key of an item cannot be changed"),
        ('{"pk": {"S": "a"}, "sk": {"N": 1234567890123456789}}', 'written as {"N": "12.5"}'),
        ('{"pk": {"S": "a"}, "sk": {"N": "1"}, "x": {"L": [{"M": {"y": "z"}}]}}', "x[0].y: a value is"),
        ('{"pk": {"S": "a"}, "sk": {"N": "1"}, "x": {"S": "y", "N": "1"}}', "x: a value is"),
        ('{"pk": {"S": "a"}, "sk": {"N": "1"}, "x": {"Q": "y"}}', "x: a value is"),
    ],
)
def test_a_wrong_edit_says_where_it_is_wrong(
    orders: Database, browser: Browser, edited: str, says: str
) -> None:
    body = {"table": "orders", "edited": edited, "shown": orjson.dumps(EVERY_TYPE).decode()}
    status, answer = browser.post("/console/save", body)
    assert (status, says in answer["error"]) == (400, True), answer
    assert stored(orders) == EVERY_TYPE


def test_the_history_of_an_item_and_a_version_brought_back() -> None:
    clock = VirtualClock(1_767_225_600, frozen=True)
    with Database(MemoryEngine(), clock=clock) as database:
        database.execute("CreateTable", orjson.loads(orjson.dumps(CREATE)))
        database.execute("UpdateContinuousBackups", dict(RECOVERY))
        for text in ("first", "second"):
            clock.advance(60)
            put(database, EVERY_TYPE | {"empty": {"S": text}})
        clock.advance(60)
        admin = bind_admin(0)
        with running(database, admin=admin):
            browser = _opened(admin)
            said = parsed(browser.ask(ITEM + "&view=history")[1]).text
            assert re.search(r"changed\s*first\s*second", said)
            _, text = browser.ask(ITEM + "&view=history")
            [moment] = re.findall(r'data-to="([^"]+)"', text)
            assert moment == "2026-01-01T00:01:00.000Z"
            assert "first" in browser.ask(ITEM + f"&at={moment}")[1]
            asked = {"table": "orders", "key": KEY, "to": moment}
            assert browser.post("/console/undo", asked)[1]["done"] == "restored"
            assert stored(database)["empty"] == {"S": "first"}
            _, text = browser.ask(ITEM + f"&view=history&before={moment}&after={moment}")
            assert "These two versions are equal" in text
            assert browser.ask(ITEM + "&at=1970-01-01")[0] == 400


def test_pages_of_a_grid_lead_forwards_and_back(orders: Database, browser: Browser) -> None:
    for number in range(120):
        put(orders, {"pk": {"S": "b"}, "sk": {"N": str(number)}, "kind": {"S": "x"}})
    seen: list[list[str]] = []
    path = "/console/t/orders?pk=b"
    while path:
        _, text = browser.ask(path)
        seen.append(re.findall(r'class="v-N"[^>]*>(\d+)<', text))
        [path] = [*re.findall(r'rel="next" href="([^"]+)"', text), ""][:1]
        path = path.replace("&amp;", "&")
    assert [number for page in seen for number in page] == [str(number) for number in range(120)]
    for page in reversed(seen[:-1]):
        [back] = re.findall(r'rel="prev" href="([^"]+)"', text)
        _, text = browser.ask(back.replace("&amp;", "&"))
        assert re.findall(r'class="v-N"[^>]*>(\d+)<', text) == page
    assert 'rel="prev"' not in text


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("pk=b&op=begins_with&sk=1", "begins_with"),
        ("sk=1", "needs the partition key"),
        ("pk=b&op=drop&sk=1", "not a condition"),
        ("filter=%23x+%3D", "FilterExpression"),
        ("filter=a&values=%7B", "not JSON"),
        ("start=x", "not a key"),
        ("at=soon", "not a time"),
        ("at=1970-01-01", "past of table orders"),
        ("index=by-kind&at=now", "no past"),
    ],
)
def test_a_wrong_query_says_why(orders: Database, browser: Browser, query: str, says: str) -> None:
    status, text = browser.ask(f"/console/t/orders?{query}")
    assert (status, says in parsed(text).text) == (400, True), parsed(text).text


def test_conditions_on_the_sort_key(orders: Database, browser: Browser) -> None:
    for number in range(10):
        put(orders, {"pk": {"S": "b"}, "sk": {"N": str(number)}})
    for query, expected in {
        "sk=3&op=&sk2=&order=&at=&filter=&names=&values=": "3", "op=%3D&sk=3": "3", "op=%3C&sk=2": "01", "op=%3E%3D&sk=8": "89",
        "op=between&sk=4&sk2=6": "456", "op=%3E&sk=7&order=down": "98",
    }.items():  # fmt: skip
        _, text = browser.ask(f"/console/t/orders?pk=b&{query}")
        assert "".join(re.findall(r'class="v-N"[^>]*>(\d)<', text)) == expected


def test_a_statement_that_writes_is_run_by_its_button_only(orders: Database, browser: Browser) -> None:
    statement = "INSERT INTO orders VALUE {'pk': 'new', 'sk': 1}"
    status, text = browser.ask(f"/console/ask?statement={quote(statement)}")
    assert (status, "was not run yet" in text) == (200, True)
    assert stored(orders, {"pk": {"S": "new"}, "sk": {"N": "1"}}) is None
    assert browser.post("/console/run", {"statement": statement}) == (200, {"units": 1.0})
    assert stored(orders, {"pk": {"S": "new"}, "sk": {"N": "1"}}) is not None
    assert browser.post("/console/run", {"statement": statement})[1]["code"] == "DuplicateItemException"
    status, text = browser.ask("/console/ask?statement=SELECT")
    assert (status, 'role="alert"' in text) == (400, True)


def test_an_empty_server_shows_how_to_create_a_table(browser: Browser) -> None:
    _, text = browser.ask("/console")
    said = parsed(text).text
    assert "There are no tables yet" in said
    example = said[said.index("import boto3") : said.index("AWS CLI")]
    endpoint = re.search(r'endpoint_url="([^"]+)"', example)
    assert endpoint is not None
    compile(example, "example", "exec")


def test_code_keeps_binary_values_exact() -> None:
    request = {"Key": {"B": {"S": "name"}, "k": {"B": "AAECAw=="}}, "Set": {"BS": ["AA=="]}, "No": None}
    text = code.boto3("GetItem", request, "http://127.0.0.1:1")
    assert r"""{"B": b'\x00\x01\x02\x03'}""" in text
    compile(text, "example", "exec")
    assert 'Buffer.from("AAECAw==", "base64")' in code.javascript("GetItem", request, "http://x")
    assert "get-item" in code.aws_cli("GetItem", request, "http://x")


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)


@settings(max_examples=40)
@given(name=texts.filter(bool), value=texts)
def test_any_name_and_value_is_escaped(name: str, value: str) -> None:
    hostile = name + '"><script>alert(1)</script>\'' + name
    item = {**KEY, hostile: {"S": value + "</textarea><img src=x onerror=y>"}}
    environment = looks.environment()
    macros: Any = environment.get_template("parts.html").module
    cells = [shown.cell(one) for one in item.values()]
    page = str(macros.grid([{"href": "/x", "cells": cells}], list(item), {}, set(), hostile))
    page += "".join(str(macros.node(node)) for node in shown.tree(item, ["pk", "sk"]))
    page += str(macros.as_code(code.snippets("PutItem", {"Item": item}, hostile)))
    page += str(environment.from_string("<textarea name='e'>{{ t }}</textarea>").render(t=shown.typed_json(item)))
    fields = parsed(page)
    assert not re.search(r"<(?:script|img|/textarea><img)", page)
    assert fields.inline == []
    assert orjson.loads(fields.fields["e"]) == item


def test_cells_say_their_types_and_are_short() -> None:
    for value, text in [
        ({"S": "42"}, '"42"'),
        ({"S": "x"}, "x"),
        ({"N": "1" * 38}, "1" * 38),
        ({"BOOL": True}, "true"),
        ({"NULL": True}, "null"),
        ({"SS": ["1", "b"]}, '{"1", b}'),
        ({"L": [{"N": "1"}, {"M": {"a": {"S": ""}}}]}, '[1, {a: ""}]'),
        ({"B": "AAECAw=="}, "AAECAw== · 4 B"),
    ]:
        cell = shown.cell(value)  # type: ignore[arg-type]
        assert cell is not None
        assert (cell.text, cell.title) == (text, "")
    large = shown.cell({"S": "x" * 400_000})
    assert large is not None
    assert len(large.text) == shown.CELL_CHARACTERS_MAX
    assert len(large.title) == shown.TITLE_CHARACTERS_MAX
    [node] = shown.tree({"big": {"S": "x" * 400_000}}, [])
    assert node.text + node.rest == "x" * 400_000


def test_plain_json_has_all_digits() -> None:
    text = shown.plain_json({"n": {"N": "1" * 38}, "s": {"NS": ["2", "0.10"]}, "m": {"M": {"x": {"NULL": True}}}})
    assert f'"n": {"1" * 38}' in text
    assert "[2, 0.10]" in text
    assert '{"x": null}' in text


def test_a_key_in_an_address_must_be_one() -> None:
    for text in ("", "[]", "{}", "x"):
        with pytest.raises(Refused, match="not a key"):
            key_of(text)
