"""Which Host and Origin headers a server takes: its own and the operator's, nobody else's."""

from __future__ import annotations

import logging
import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange.server import ServerSettings
from hashrange.server.access import Access

LOOPBACK = ("127.0.0.1", "::1")
OWN = (
    b"localhost",
    b"localhost:8000",
    b"LOCALHOST:80",
    b"127.0.0.1:8000",
    b"127.0.0.2",
    b"[::1]:8000",
    b"db.localhost",
)
FOREIGN = (
    b"evil.example", b"evil.example:8000", b"localhost.evil.example", b"127.0.0.1.evil.example",
    b"notlocalhost", b"10.0.0.1:8000", b"[2001:db8::1]:8000", b"", b":8000",
)  # fmt: skip
MALFORMED = (
    b"[", b"]", b"[]", b"localhost@evil.example", b"\xff", b"[127.0.0.1]", b"[127.0.0.1]evil.example",
    b"[::1]evil.example", b"[::1]:80:evil", b"localhost:80:evil", b"localhost:evil", b"::1", b"[::1%25lo]",
    b"localhost/", b"localhost evil.example", b"http://localhost", b"localhost?", b"localhost#", b"local\t",
)  # fmt: skip


def status(access: Access, host: bytes | None, origin: bytes | None = None) -> int:
    headers = {b"host": host, b"origin": origin}
    refusal = access.refusal({name: value for name, value in headers.items() if value is not None})
    return 200 if refusal is None else refusal.status


def access(*, listening: tuple[str, ...] = LOOPBACK, host: str = "127.0.0.1", **settings: Any) -> Access:
    return Access(ServerSettings(**settings), listening=listening, host=host)


@pytest.mark.parametrize("host", OWN)
def test_loopback_names_are_a_loopback_servers_own(host: bytes) -> None:
    assert status(access(), host) == 200
    assert status(access(allow_host=("other",)), host) == 200


@pytest.mark.parametrize("host", FOREIGN)
def test_a_loopback_server_refuses_other_names_every_time(host: bytes) -> None:
    rules = access()
    assert [status(rules, host) for _ in range(3)] == [403] * 3


@pytest.mark.parametrize("host", MALFORMED)
@pytest.mark.parametrize("listening", [LOOPBACK, ("0.0.0.0",)])
def test_what_is_no_name_or_address_is_malformed_wherever_the_server_listens(
    host: bytes, listening: tuple[str, ...]
) -> None:
    """RFC 9112, 3.2 demands 400."""
    for rules in (access(listening=listening), access(listening=listening, allow_host=("*",))):
        assert [status(rules, host) for _ in range(2)] == [400] * 2


@given(st.text(alphabet="abclost.-0127:[]@").map(str.encode))
def test_only_loopback_names_pass(host: bytes) -> None:
    name = host.partition(b":")[0] if not host.startswith(b"[") else host.partition(b"]")[0]
    if status(access(), host) == 200:
        assert name.endswith(b"localhost") or name.startswith((b"127.", b"["))
        assert re.fullmatch(rb"[a-z0-9.-]+(:[0-9]*)?|\[[0-9a-f:.]+\](:[0-9]*)?", host)


def test_a_client_of_http_1_0_needs_no_host() -> None:
    assert status(access(), None) == 200


def test_allowed_names_pass_with_any_port() -> None:
    rules = access(allow_host=("DB.internal", "[2001:db8::1]"))
    for host in (b"db.internal", b"db.internal:8000", b"DB.INTERNAL:1", b"[2001:db8::1]:8000"):
        assert status(rules, host) == 200
    assert status(rules, b"x.db.internal") == 403


def test_the_name_that_the_server_listens_on_is_its_own() -> None:
    assert status(access(host="db.test"), b"db.test:8000") == 200


@pytest.mark.parametrize("listening", [("0.0.0.0",), ("::",), ("192.0.2.7",), ("127.0.0.1", "192.0.2.7"), ()])
def test_a_server_that_listens_elsewhere_has_names_that_it_cannot_know(listening: tuple[str, ...]) -> None:
    assert status(access(listening=listening, host=""), b"hashrange:8000") == 200
    narrowed = access(listening=listening, host="", allow_host=("hashrange",))
    assert [status(narrowed, host) for host in (b"hashrange:8000", b"localhost", b"evil.example")] == [
        200,
        200,
        403,
    ]
    for address in listening:
        assert status(narrowed, address.encode() if ":" not in address else f"[{address}]".encode()) == 200


def test_any_host() -> None:
    assert {status(access(allow_host=("*",)), host) for host in FOREIGN} == {200}


@pytest.mark.parametrize("listening", [LOOPBACK, ("0.0.0.0",)])
@pytest.mark.parametrize(
    "origin", [b"https://evil.example", b"null", b"", b"http://localhost:8000", b"file://"]
)
def test_pages_are_refused_wherever_the_server_listens(listening: tuple[str, ...], origin: bytes) -> None:
    rules = access(listening=listening)
    assert [status(rules, b"localhost:8000", origin) for _ in range(2)] == [403] * 2


def test_allowed_pages() -> None:
    rules = access(allow_origin=("http://localhost:3000", "null"))
    assert status(rules, b"localhost", b"http://localhost:3000") == 200
    assert status(rules, b"localhost", b"null") == 200
    for origin in (
        b"http://localhost:3001",
        b"https://localhost:3000",
        b"http://localhost:3000.evil.example",
    ):
        assert status(rules, b"localhost", origin) == 403
    # An allowed page is no way around the rule for Host.
    assert status(rules, b"evil.example", b"http://localhost:3000") == 403
    assert status(access(allow_origin=("*",)), b"localhost", b"https://evil.example") == 200


def test_a_refusal_says_what_to_do() -> None:
    for headers, remedy in (
        ({b"host": b"db.internal:80"}, "start the server with --allow-host db.internal."),
        (
            {b"host": b"localhost", b"origin": b"http://localhost:3000"},
            "start the server with --allow-origin http://localhost:3000.",
        ),
    ):
        refusal = access().refusal(headers)
        assert refusal is not None
        answer = orjson.loads(refusal.body)
        assert answer["__type"] == "com.amazon.coral.service#AccessDeniedException"
        assert answer["Message"].endswith(remedy)
        assert not any(name.lower().startswith(b"access-control") for name, _ in refusal.headers)


def test_each_refused_value_is_logged_once_and_a_flood_of_them_not_at_all(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rules = access()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            status(rules, b"evil.example")
        assert len(caplog.records) == 1
        for n in range(10_000):
            status(rules, b"%d.example" % n)
    assert len(caplog.records) == 100


def test_what_is_remembered_is_bounded() -> None:
    rules = access()
    for n in range(10_000):
        status(rules, b"%d.localhost" % n)
    assert len(rules.hosts_met) <= 1_000


@pytest.mark.parametrize("host", ["http://db.internal", "db.internal:8000", "a b", "", "user@db"])
def test_a_host_that_no_request_could_have_is_an_error(host: str) -> None:
    with pytest.raises(ValueError, match="without a scheme and a port"):
        ServerSettings(allow_host=(host,))


@pytest.mark.parametrize("origin", ["localhost:3000", "http://localhost:3000/", "http://", "", "example.com"])
def test_an_origin_that_no_page_could_have_is_an_error(origin: str) -> None:
    with pytest.raises(ValueError, match="without a path"):
        ServerSettings(allow_origin=(origin,))
