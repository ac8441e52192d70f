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


def get(
    path: bytes = b"/",
    accept: bytes | None = BROWSER,
    method: bytes = b"GET",
    host: bytes = b"127.0.0.1:8000",
) -> Response:
    wire = Wire(region="us-east-1", account_id="000000000000", page=page(ADMIN_URL))
    headers = {b"host": host} if accept is None else {b"host": host, b"accept": accept}
    answer = wire.read(method, path, headers, b"")
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

    Tags().feed(page('http://"><script>alert(1)</script>')(b"localhost").decode())
    assert opened == []
    assert not re.search(r"@import|url\(", page(ADMIN_URL)(b"localhost").decode())
    assert dict(get().headers)[b"Content-Security-Policy"].startswith(b"default-src 'none'")


def test_the_page_says_who_reaches_the_admin_plane() -> None:
    assert b"own machine" in page(ADMIN_URL)(b"")
    assert b"--admin-token" in page(ADMIN_URL, guarded=True)(b"")
    assert b"without an admin plane" in page(None)(b"")


@pytest.mark.parametrize("host", [b"127.0.0.1:8000", b"db.example", b"[::1]:4566", b"localhost:80"])
def test_the_examples_name_the_address_by_which_the_browser_came(host: bytes) -> None:
    text = get(host=host).body.decode()
    endpoint = f"http://{host.decode()}"
    for variable in ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_DYNAMODB_STREAMS"):
        assert f"export {variable}={endpoint}\n" in text
    for language in ("Python", "JavaScript", "Java", "Go"):
        example = text.partition(f"<summary>{language}</summary>")[2].partition("</details>")[0]
        assert f'"{endpoint}"' in example


@pytest.mark.parametrize(
    "host", [b"", b"x<script>", b'"onload="', b"a b", b"[x]", b"a:123456", b"\xff", b"a" * 300, b"a\nb"]
)
def test_a_host_that_is_no_name_is_not_shown(host: bytes) -> None:
    text = get(host=host).body.decode()
    assert "DYNAMODB=THE-ADDRESS-OF-THIS-PAGE\n" in text
    assert not host or "http://" + host.decode("latin-1") not in text


def test_nothing_is_logged_of_the_icon_that_every_browser_asks_for(caplog: pytest.LogCaptureFixture) -> None:
    assert get(b"/favicon.ico").status == 404
    assert not caplog.records
    assert get(b"/other").status == 404
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
