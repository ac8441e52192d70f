"""Who may use the admin plane: hosts, tokens, malformed requests, and headers without end."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import click
import pytest

from hashrange.cli.admin import bind_admin
from hashrange.cli.remote import asking
from hashrange.database import Database
from hashrange.server import running
from hashrange.server.admin.port import CONNECTIONS_MAX, Door

TOKEN = "0123456789abcdef"
OPENED = f"Authorization: Bearer {TOKEN}\r\n"


@pytest.fixture
def url() -> Iterator[str]:
    """A plane on the loopback interface, without a token."""
    yield from _serve(bind_admin(0))


@pytest.fixture
def guarded() -> Iterator[str]:
    """A plane that other machines reach, and that asks for a token."""
    yield from _serve(bind_admin(0, "0.0.0.0", TOKEN))


def _serve(listening: object) -> Iterator[str]:
    with Database.in_memory() as database, running(database, admin=listening):  # type: ignore[arg-type]
        yield listening.url  # type: ignore[attr-defined]


def send(url: str, *pieces: bytes) -> bytes:
    """All that the plane sends until it closes the connection; the last request has to ask for that."""
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=30) as connection:
        answer = b""
        try:
            for piece in pieces:
                connection.sendall(piece)
            while received := connection.recv(65_536):
                answer += received
        except ConnectionError:  # the plane refused the rest
            pass
        return answer


def status(url: str, headers: str, *, method: str = "GET", path: str = "/health", body: bytes = b"") -> int:
    answer = send(url, f"{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n".encode() + body)
    return int(answer.split(b" ")[1])


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ("Host: localhost\r\n", 200),
        ("Host: 127.0.0.1:8100\r\n", 200),
        ("Host: [::1]\r\n", 200),
        ("Host: localhost\r\nVia: a\r\nVia: b\r\n", 200),
        ("", 400),
        ("Host: localhost\r\nHost: localhost\r\n", 400),
        ("Host: localhost\r\nHost: evil.example\r\n", 400),
        ("Host: evil.example\r\n", 400),
        ("Host: [127.0.0.1]evil.example\r\n", 400),
        ("Host: 127.0.0.1:80:evil\r\n", 400),
        ("Host: localhost@evil.example\r\n", 400),
        ("Host: localhost\r\nOrigin: a\r\nOrigin: b\r\n", 400),
        ("Host: localhost\r\nContent-Length: 1\r\nContent-Length: 1\r\n", 400),
        ("Host: localhost\r\nTransfer-Encoding: gzip, chunked\r\n", 501),
        ("Host: localhost\r\nTransfer-Encoding: gzip\r\n", 400),
    ],
)
def test_headers_are_judged_as_on_the_data_plane(url: str, headers: str, expected: int) -> None:
    assert status(url, headers) == expected


def test_what_has_no_end_is_cut_off(url: str) -> None:
    head = b"POST /v1/clock HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
    many = [b"x" * 10_000] * 200
    for pieces in (
        [b"GET /" + b"x" * 10_000, *many],
        [head + b"H: ", *many],
        [head, *[b"H: " + piece + b"\r\n" for piece in many]],
        [chunked + b"1;", *many],
        [chunked, *[b"1;" + piece + b"\r\n{\r\n" for piece in many]],
        [chunked + b"0\r\nT: ", *many],
    ):
        answer = send(url, *pieces)
        # (the kernel may discard the answer, because bytes that nobody has read were left)
        assert answer == b"" or int(answer.split(b" ")[1]) in (400, 413, 431)
    assert status(url, "Host: localhost\r\n") == 200


@pytest.mark.parametrize("headers", ["", "Authorization: Bearer\r\n", f"Authorization: Bearer {TOKEN}0\r\n"])
def test_a_guarded_plane_asks_for_its_token_on_every_path(guarded: str, headers: str) -> None:
    gets, posts = ("/", "/v1", "/v1/openapi.json", "/v1/tables", "/nothing"), ("/v1/clock", "/health")
    for method, path in (*(("GET", path) for path in gets), *(("POST", path) for path in posts)):
        assert status(guarded, f"Host: db.example\r\n{headers}", method=method, path=path) == 401
    answer = send(guarded, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b'www-authenticate: Bearer realm="hashrange admin plane"' in answer


def test_a_guarded_plane_opens_for_its_token_under_any_name(guarded: str) -> None:
    assert status(guarded, f"Host: db.example\r\n{OPENED}") == 200
    assert status(guarded, f"Host: localhost\r\nauthorization: bearer {TOKEN}\r\n") == 200
    assert status(guarded, f"Host: localhost\r\n{OPENED}{OPENED}") == 400


def test_a_token_on_the_loopback_interface_opens_no_way_around_the_host() -> None:
    for url in _serve(bind_admin(0, token=TOKEN)):
        assert status(url, "Host: localhost\r\n", path="/v1/tables") == 401
        assert status(url, f"Host: localhost\r\n{OPENED}") == 200
        assert status(url, f"Host: evil.example\r\n{OPENED}") == 400


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.7", "2001:db8::1"])
def test_other_machines_need_a_token(address: str) -> None:
    with pytest.raises(ValueError, match="HASHRANGE_ADMIN_TOKEN"):
        Door(address, address)
    assert Door(address, address, TOKEN).token == TOKEN


@pytest.mark.parametrize("token", ["short", "0123456789 abcdef", "0123456789abcde\r\n", "ü" * 16])
def test_a_token_that_is_none_is_an_error(token: str) -> None:
    with pytest.raises(ValueError, match="at least 16 characters"):
        Door(token=token)


def test_commands_bring_the_token_of_the_environment(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plane = asking.Plane(None, guarded)
    with pytest.raises(click.ClickException, match="set HASHRANGE_ADMIN_TOKEN"):
        asking.ask(plane, "/v1/tables", "tables", "")
    monkeypatch.setenv("HASHRANGE_ADMIN_TOKEN", TOKEN)
    assert asking.ask(plane, "/health", "status", "")["status"] == "ok"


PARTS = (
    b"GET ", b"POST ", b"/", b"/health", b"/v1/clock", b" HTTP/1.1", b" HTTP/1.0", b"\r\n", b"\r\n\r\n",
    b"\n",
    b"Host: localhost\r\n", b"Host: x\r\n", b"Host:", b"Content-Length: 2\r\n", b"Content-Length: -1\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n", b"2\r\n{}\r\n", b"0\r\n\r\n", b"{}",
    b"Content-Type: application/json\r\n", b"Expect: 100-continue\r\n", b"Upgrade: h2c\r\n", b"\xff", b"%",
    b"Connection: upgrade\r\n", b"Connection: close\r\n", b"http://localhost/", b"*", b"CONNECT ", b"[::1]",
    b" ", b"\0", b":", b"?",
)  # fmt: skip


def test_arbitrary_bytes_are_answered_or_refused(url: str) -> None:
    drawn = random.Random(16)
    place = urlsplit(url)
    for _ in range(300):
        data = b"".join(drawn.choices(PARTS, k=drawn.randint(1, 12)))
        with socket.create_connection((place.hostname, place.port), timeout=30) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(0.005)
            try:
                answer = connection.recv(65_536)
            except (TimeoutError, ConnectionError):
                continue
            assert answer == b"" or (
                answer.startswith(b"HTTP/1.1 ") and answer[9:12] in (b"100", b"200", b"400", b"401", b"404",
                b"405", b"409", b"411", b"413", b"415", b"431", b"501")
            ), data  # fmt: skip
    assert status(url, "Host: localhost\r\n") == 200


def test_silent_clients_keep_no_probe_out(url: str) -> None:
    """The admin plane closes the connection that has been idle longest, in whatever state it is."""
    place = urlsplit(url)
    head = b"POST /v1/clock HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
    begun = [b"", b"GET /health HT", head]
    whole = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with contextlib.ExitStack() as stack:
        silent = []
        for number in range(2 * CONNECTIONS_MAX):
            connection = socket.create_connection((place.hostname, place.port), timeout=30)
            silent.append(stack.enter_context(connection))
            kind = number % 4
            connection.sendall(whole if kind == 3 else begun[kind])
            if kind == 3:
                assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
            assert status(url, "Host: localhost\r\n") == 200
        with contextlib.suppress(ConnectionError):
            assert silent[0].recv(10) == b"", "the oldest was closed"
