"""Who may open the console and change something: links, cookies, other sites, read-only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from click.testing import CliRunner

from consoles import (
    CHANGES,
    DOWNLOADS,
    EVENTS,
    EVERY_TYPE,
    KEY,
    PAGES,
    QUESTIONS,
    TOKEN,
    Browser,
    EventStream,
    opened,
    parsed,
    stored,
)  # fmt: skip
from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.server import running
from hashrange_console import routes
from hashrange_console.entry import (
    AGE_SECONDS_MAX,
    IDLE_SECONDS_MAX,
    PASSES_MAX,
    Entry,
    console_of,
    link_to,
)
from hashrange_console.pages import of_rings


def test_every_page_has_the_headers_and_no_code_inside_it(orders: Database, browser: Browser) -> None:
    for path in (*PAGES, *DOWNLOADS):
        status, text = browser.ask(path)
        assert status == 200, (path, text)
        policy = browser.last.getheader("Content-Security-Policy") or ""
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert browser.last.getheader("X-Content-Type-Options") == "nosniff"
        assert browser.last.getheader("Referrer-Policy") == "no-referrer"
        assert browser.last.getheader("Cache-Control") == "no-store"
        if path in DOWNLOADS:
            continue
        assert parsed(text).inline == []
        assert not re.search(r'(?:src|href|action)="(?:https?:)?//', text)


def test_static_files_are_kept_by_browsers_under_addresses_with_a_hash(browser: Browser) -> None:
    _, page = browser.ask("/console")
    names = re.findall(r'"(/console/static/[^"]+)"', page)
    assert len(names) >= 2
    for name in names:
        assert re.search(r"/[0-9a-f]{12}/[\w/-]+\.(css|js)$", name)
        assert Browser(browser.url).ask(name)[0] == 200
        browser.ask(name)
        assert "immutable" in (browser.last.getheader("Cache-Control") or "")
    folder = names[0].rpartition("/")[0]
    assert browser.ask("/console/static/0123456789ab/console.css")[0] == 404
    assert browser.ask(f"{folder}/..%2Fcode.py")[0] == 404


def test_a_link_opens_the_console_once(database: Database) -> None:
    admin = bind_admin(0)
    with running(database, admin=admin):
        link = link_to(admin).removeprefix(admin.url)
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
        for path in (*PAGES, *EVENTS, *DOWNLOADS):
            status, text = stranger.ask(path)
            assert status == 401
            assert f"hashrange console --admin-url {browser.url}" in text
            assert "orders" not in text
        for path, body in {**CHANGES, **QUESTIONS}.items():
            assert stranger.post(path, body)[0] == 401
    assert stored(orders) == EVERY_TYPE


def test_pages_and_changes_here_are_all_that_there_are() -> None:
    paths = {"/console/t/{table}": "/console/t/orders", "/console/t/{table}/item": "/console/t/orders/item"}
    names = ("new", "import", "export", "about", "entities", "stream", "stream/events", "past")
    paths |= {f"/console/t/{{table}}/{name}": f"/console/t/orders/{name}" for name in names}
    others = {part.path for pages in of_rings() for part in pages.parts}
    for endpoint in routes.ENDPOINTS:
        if endpoint.path in {"/v1/console-link", "/console/logout", "/console/{rest:path}", *others}:
            continue  # (they need no session, are no page, or are of another ring)
        if endpoint.method == "POST":
            assert endpoint.path in {**CHANGES, **QUESTIONS}
        elif endpoint.path.endswith("/events"):
            assert paths.get(endpoint.path, endpoint.path) in EVENTS
        elif not endpoint.path.startswith("/console/static/"):
            path = paths.get(endpoint.path, endpoint.path)
            assert any(page.split("?")[0] == path for page in (*PAGES, *DOWNLOADS)), endpoint.path


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
    paths: dict[str, Any] = {**CHANGES, "/v1/clock": {}, "/v1/data/DeleteTable": {"TableName": "orders"}}
    for headers in foreign:
        for path, body in {**paths, **QUESTIONS, "/v1/console-link": {}}.items():
            assert browser.ask(path, body, **headers)[0] == 403, (path, headers)
        assert browser.ask("/v1/faults", method="DELETE", **headers)[0] == 403
    assert stored(orders) == EVERY_TYPE
    own: list[dict[str, str]] = [{"Sec_Fetch_Site": "same-origin"}, {"Origin": origin}, {}]
    for headers in own:
        for path, body in QUESTIONS.items():
            assert browser.ask(path, body, **headers)[0] == 200


def test_a_change_needs_json(orders: Database, browser: Browser) -> None:
    for path, body in {**CHANGES, **QUESTIONS}.items():
        assert browser.ask(path, body, Content_Type="text/plain")[0] == 415
    assert browser.ask("/v1/data/Scan", {"TableName": "orders"}, Content_Type="text/plain")[0] == 415


def test_a_read_only_console_refuses_every_change(orders: Database) -> None:
    admin = bind_admin(0, read_only=True)
    with running(orders, admin=admin):
        browser = opened(admin)
        for path, body in CHANGES.items():
            status, answer = browser.post(path, body)
            assert (status, "--console-read-only" in answer["error"]) == (403, True)
        for path, body in QUESTIONS.items():
            assert browser.post(path, body)[0] == 200
        for path in PAGES:
            status, text = browser.ask(path)
            assert status == (400 if "&view=edit" in path else 200)
            assert "read-only" in text, path
            assert not re.search(r"<button[^>]*data-(?:undo|save|delete|run-change|demo)", text)
            assert not re.search(r"<form[^>]*data-post", text)
        delete = {"TableName": "orders", "Key": KEY}
        for operation, sent in {
            "DeleteItem": delete,
            "DeleteTable": {"TableName": "orders"},
            "ExecuteStatement": {"Statement": "DELETE FROM orders WHERE pk='a'"},
            "BatchExecuteStatement": {},
        }.items():
            assert browser.post(f"/v1/data/{operation}", sent)[0] == 403, operation
        assert browser.post("/v1/data/Scan", {"TableName": "orders"})[0] == 200
        assert browser.post("/v1/data/ExecuteStatement", {"Statement": "SELECT * FROM orders"})[0] == 200
        own = {"Sec_Fetch_Site": "same-origin"}
        undo = {"table": "orders", "to": "now", "all": True}
        for path, body in {"/v1/clock": {}, "/v1/past/undo": undo}.items():
            assert browser.ask(path, body, **own)[0] == 403
        # A command that uses the plane goes on as before.
        assert browser.post("/v1/past/undo", {"table": "orders", "to": "now", "all": True})[0] == 200
    assert stored(orders) == EVERY_TYPE


def test_a_guarded_plane_opens_its_console_to_sessions_and_to_its_token(database: Database) -> None:
    admin = bind_admin(0, token=TOKEN)
    with running(database, admin=admin):
        assert Browser(admin.url).ask("/console")[0] == 401
        assert Browser(admin.url).ask("/consoles")[0] == 401
        assert Browser(admin.url).ask("/v1/console-link", {})[0] == 401
        assert Browser(admin.url).ask("/v1/data/ListTables", {})[0] == 401
        for _ in range(2):
            other = Browser(admin.url)
            assert other.ask(f"/console?token={TOKEN}")[0] == 303
            assert other.ask("/console")[0] == 200
        browser = opened(admin)
        assert browser.ask("/console")[0] == 200
        assert browser.ask("/v1/tables")[0] == 401
        link = {"Authorization": f"Bearer {TOKEN}"}
        assert Browser(admin.url).ask("/v1/console-link", {}, **link)[0] == 200


def test_entries_are_forgotten_when_there_are_too_many() -> None:
    entry = Entry()
    first = entry.link()
    session = entry.redeem(entry.link())
    assert session is not None
    for _ in range(PASSES_MAX):
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


def test_a_banner_is_on_every_page(orders: Database) -> None:
    admin = bind_admin(0)
    console_of(admin.door).banner = "<production>"
    with running(orders, admin=admin):
        browser = opened(admin)
        for path in PAGES:
            _, text = browser.ask(path)
            assert '<p class="banner"><bdi>&lt;production&gt;</bdi></p>' in text, path
            assert "<title>&lt;production&gt; · " in text


def test_a_session_ends_by_time_by_use_and_by_the_log_out() -> None:
    now = 1_000.0
    entry = Entry("the-token-of-the-plane", lambda: now)
    link, unused = entry.link(), entry.link()
    session = entry.redeem(link)
    by_token = entry.redeem("the-token-of-the-plane")
    assert session is not None
    assert by_token is not None
    now += IDLE_SECONDS_MAX - 1
    assert entry.knows(session)
    assert entry.knows(by_token, uses=False)
    now += 1
    assert entry.knows(session)
    assert not entry.knows(by_token), "looking at a session is no use of it"
    assert entry.redeem(unused) is None
    while now < 1_000.0 + AGE_SECONDS_MAX:
        assert entry.knows(session)
        now += IDLE_SECONDS_MAX / 2
    assert not entry.knows(session)
    session = entry.redeem(entry.link())
    assert session is not None
    entry.end(f"{session}x")
    assert entry.knows(session)
    entry.end(session)
    assert not entry.knows(session)


def test_links_and_sessions_end_with_the_key_that_asked_for_them() -> None:
    counts = True
    entry = Entry()
    first, second = (entry.link(read_only=True, counts=lambda: counts) for _ in range(2))
    session = entry.redeem(first)
    assert session is not None
    assert entry.knows(session)
    counts = False
    assert not entry.knows(session)
    assert entry.redeem(second) is None
    counts = True
    assert not entry.knows(session), "it has ended for good"


def test_a_log_out_ends_the_session_and_its_live_rows(orders: Database) -> None:
    admin = bind_admin(0, read_only=True)
    with running(orders, admin=admin):
        browser, other = opened(admin), opened(admin)
        _, page = browser.ask("/console")
        assert '<form method="post" action="/console/logout"><button' in page
        held = Browser(browser.url, browser.cookie)
        assert held.ask("/console/logout", method="POST", Sec_Fetch_Site="cross-site")[0] == 403
        with EventStream(held, "/console/requests/events") as events:
            assert held.ask("/console/logout", method="POST", Sec_Fetch_Site="same-origin")[0] == 303
            assert held.cookie.endswith('=""')
            while events.answer.readline():
                pass  # until the server ends the stream
        assert browser.ask("/console")[0] == 401
        assert other.ask("/console")[0] == 200


class Log:
    """An audit log that keeps who was said to have changed something."""

    problem = ""
    written = lost = incomplete = 0

    def __init__(self) -> None:
        self.operators: list[tuple[str, dict[str, Any], bool]] = []

    def operated(
        self, operation: str, by: Mapping[str, Any], peer: str, status: int, *, denied: bool
    ) -> None:
        self.operators.append((operation, dict(by), denied))


def test_the_audit_log_tells_the_console_from_strangers(orders: Database) -> None:
    log: Any = Log()
    admin = bind_admin(0)
    with running(orders, admin=admin, audit=log):
        browser, body = opened(admin), CHANGES["/console/faults/add"]
        assert browser.post("/console/faults/add", body)[0] == 200
        assert Browser(admin.url).post("/console/faults/add", body)[0] == 401
    assert log.operators == [
        ("POST /console/faults/add", {"by": "console", "verified": True}, False),
        ("POST /console/faults/add", {"by": "anyone", "verified": False}, True),
    ]
