"""What a browser shows that opens the data plane, and what others get there."""

from __future__ import annotations

import logging
import re
from html.parser import HTMLParser

import pytest

from hashrange.protocol import Response, Wire
from hashrange.server.page import page

BROWSER = b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ADMIN_URL = "http://127.0.0.1:8100"


def get(path: bytes = b"/", accept: bytes | None = BROWSER, method: bytes = b"GET") -> Response:
    wire = Wire(region="us-east-1", account_id="000000000000", page=page(ADMIN_URL))
    answer = wire.read(method, path, {} if accept is None else {b"accept": accept}, b"")
    assert isinstance(answer, Response)
    return answer


def test_a_browser_hears_what_this_is_and_where_to_look() -> None:
    answer = get()
    assert (answer.status, answer.content_type) == (200, b"text/html; charset=utf-8")
    text = answer.body.decode()
    assert "DynamoDB" in text
    assert f'<a href="{ADMIN_URL}/health">' in text
    assert "docs" in text
    assert get(method=b"HEAD").content_type == answer.content_type


@pytest.mark.parametrize("accept", [None, b"*/*", b"text/plain", b"application/json", b""])
def test_others_hear_what_dynamodb_says(accept: bytes | None) -> None:
    answer = get(accept=accept)
    assert (answer.body, answer.content_type) == (
        b"healthy: dynamodb.us-east-1.amazonaws.com ",
        b"text/plain",
    )


def test_the_page_is_whole_and_loads_nothing() -> None:
    opened: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            assert tag not in ("script", "img", "iframe", "object", "embed")
            if tag not in ("meta", "link"):
                opened.append(tag)
            if tag == "link":
                assert dict(attributes)["href"] == "data:,"

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    Tags().feed(page('http://"><script>alert(1)</script>').decode())
    assert opened == []
    assert not re.search(r"@import|url\(", page(ADMIN_URL).decode())
    assert dict(get().headers)[b"Content-Security-Policy"].startswith(b"default-src 'none'")


def test_the_page_says_who_reaches_the_admin_plane() -> None:
    assert b"own machine" in page(ADMIN_URL)
    assert b"--admin-token" in page(ADMIN_URL, guarded=True)
    assert b"without an admin plane" in page(None)


def test_nothing_is_logged_of_the_icon_that_every_browser_asks_for(caplog: pytest.LogCaptureFixture) -> None:
    assert get(b"/favicon.ico").status == 404
    assert not caplog.records
    assert get(b"/other").status == 404
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
