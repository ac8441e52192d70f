"""Compressed bodies: what is read, what is refused, and that a small body cannot make much work."""

from __future__ import annotations

import gzip
import zlib

import pytest

from hashrange.pace import turns
from hashrange.pace.codings import MEMBERS_MAX, TooLargeError, decoded
from hashrange.pace.texts import WINDOW_BYTES
from peer import Peer, request

LIMIT = 1024 * 1024
TEXT = b'{"a":"%b"}' % (bytes(range(97, 123)) * 10)
NOISE = zlib.compress(b"".join(str(number).encode() for number in range(50_000)))


def raw(content: bytes) -> bytes:
    return zlib.compress(content, wbits=-15)


@pytest.mark.parametrize("content", [b"x", TEXT, NOISE, b"x" * WINDOW_BYTES * 3, b"x" * LIMIT], ids=len)
def test_what_is_encoded_is_decoded(content: bytes) -> None:
    half = len(content) // 2
    members = gzip.compress(content[:half]) + gzip.compress(content[half:])
    assert decoded(b"gzip", gzip.compress(content), LIMIT) == content
    assert decoded(b" GZip ", bytearray(members), LIMIT) == content
    assert decoded(b"deflate", zlib.compress(content), LIMIT) == content
    assert decoded(b"identity", content, LIMIT) == content


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        (b"gzip", TEXT),
        (b"deflate", TEXT),
        (b"gzip", b""),
        (b"deflate", b""),
        (b"gzip", gzip.compress(b"")),
        (b"gzip", zlib.compress(TEXT)),
        (b"deflate", gzip.compress(TEXT)),
        (b"deflate", raw(TEXT)),
        (b"gzip", gzip.compress(TEXT) + b"more"),
        (b"deflate", zlib.compress(TEXT) + b"more"),
        (b"deflate", zlib.compress(TEXT) * 2),
        (b"gzip", gzip.compress(TEXT) + gzip.compress(TEXT)[:-1]),
        (b"gzip", gzip.compress(TEXT)[:-8] + bytes(8)),
        (b"gzip", gzip.compress(b"") * (MEMBERS_MAX + 1)),
        (b"br", TEXT),
        (b"gzip, gzip", gzip.compress(gzip.compress(TEXT))),
        (b"x" * 1_000, TEXT),
    ],
)
def test_what_cannot_be_decoded_is_refused(coding: bytes, body: bytes) -> None:
    with pytest.raises(ValueError):
        decoded(coding, body, LIMIT)


@pytest.mark.parametrize("coding", [b"gzip", b"deflate"])
def test_what_is_cut_off_is_refused(coding: bytes) -> None:
    whole = gzip.compress(TEXT) if coding == b"gzip" else zlib.compress(TEXT)
    for length in range(len(whole)):
        with pytest.raises(ValueError):
            decoded(coding, whole[:length], LIMIT)


def test_the_work_is_bounded_by_the_decoded_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb of 64 MB ends at the limit, and lets others run at each piece."""
    turns_taken: list[None] = []
    monkeypatch.setattr(turns, "point", lambda: turns_taken.append(None))
    with pytest.raises(TooLargeError):
        decoded(b"gzip", gzip.compress(bytes(64 * LIMIT)), LIMIT)
    assert len(turns_taken) == LIMIT // WINDOW_BYTES + 1
    with pytest.raises(TooLargeError):
        decoded(b"deflate", zlib.compress(b"x" * (LIMIT + 1)), LIMIT)
    with pytest.raises(TooLargeError):
        decoded(b"gzip", gzip.compress(b"x" * (LIMIT // 10)) * 11, LIMIT)


def encoded(body: bytes, coding: bytes = b"gzip") -> bytes:
    return request("Now", body, extra=b"Content-Encoding: %b\r\n" % coding)


def answered(peer: Peer) -> Peer:
    while peer.database.aside:
        peer.database.aside.pop(0)()
        peer.run_soon()
    return peer


def test_the_server_reads_an_encoded_request_on_a_thread() -> None:
    peer = Peer().send(encoded(gzip.compress(b'{"a":"x"}')) + request("Now"))
    assert peer.database.calls == []
    assert answered(peer).statuses() == [200, 200]
    assert [given for _, given, _ in peer.database.calls] == [{"a": "x"}, {}]


@pytest.mark.parametrize("method", [b"GET / ", b"POST /other "])
def test_only_requests_to_the_api_are_decoded(method: bytes) -> None:
    sent = encoded(b"", b"br").replace(b"POST / ", method)
    assert answered(Peer().send(sent)).statuses() == [200 if method == b"GET / " else 404]


def test_the_server_refuses_what_it_cannot_decode() -> None:
    for sent in (encoded(b"{}"), encoded(b"{}", b"br"), encoded(gzip.compress(b"{}")[:-1])):
        peer = answered(Peer().send(sent + request("Now")))
        # [report] measured on the service, for the status
        assert peer.statuses() == [500, 200]
        assert b"InternalServerError" in peer.answers()[0][1]
        assert len(peer.database.calls) == 1


def test_a_decoded_body_is_bounded_like_a_plain_one() -> None:
    content = b'{"a":"%b"}' % (b"x" * 992)
    for extra, status in ((b"", 200), (b" ", 413)):
        peer = Peer(body_bytes_max=1_000)
        assert answered(peer.send(encoded(gzip.compress(content + extra)))).statuses() == [status]
        assert len(peer.database.calls) == (status == 200)
