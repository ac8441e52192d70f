"""The connection object over a fake transport: framing, order, back-pressure, limits, time."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doses import examples
from hashrange import errors
from hashrange.database import Caller
from hashrange.server.http import LARGE_BODY_BYTES, LINGER_SECONDS_MAX, Connection
from hashrange.server.plane import APART_BYTES, PORTION_BYTES, Exchange
from peer import SIGNED, FakeTransport, Peer, request


def test_a_call_is_answered_and_the_connection_kept() -> None:
    peer = Peer().send(request("Now", b'{"a":1}'))
    assert peer.answers() == [(200, b'{"a":1}')]
    assert peer.database.calls == [("Now", {"a": 1}, Caller("eu-west-1", "000000000000", "AKID"))]
    assert not peer.transport.closed
    assert b"Connection: keep-alive\r\n" in peer.transport.written
    assert b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n" in peer.transport.written


def test_an_error_is_answered_and_the_connection_kept() -> None:
    peer = Peer().send(request("Fail"))
    (status, body) = peer.answers()[0]
    assert status == 400
    assert orjson.loads(body)["__type"] == "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException"
    assert peer.send(request("Now")).statuses() == [400, 200]


def test_a_database_that_raises_is_an_internal_error(caplog: pytest.LogCaptureFixture) -> None:
    peer = Peer().send(request("Break")).send(request("Now"))
    peer.run_soon()  # logging the error may have taken so long that the next request waits for its turn
    assert peer.statuses() == [500, 200]
    assert caplog.records


def test_any_split_of_the_bytes_is_the_same_request() -> None:
    data = request("Now", b'{"a":1}')
    for cut in range(1, len(data)):
        peer = Peer().send(data[:cut])
        assert peer.answers() == []
        assert peer.send(data[cut:]).answers() == [(200, b'{"a":1}')]
    peer = Peer()
    for index in range(len(data)):
        peer.send(data[index : index + 1])
    assert peer.answers() == [(200, b'{"a":1}')]


def test_a_chunked_body() -> None:
    head = request("Now", extra=b"Transfer-Encoding: chunked\r\n").replace(b"Content-Length: 2\r\n", b"")
    peer = Peer().send(
        head.removesuffix(b"{}") + b'3\r\n{"a\r\n4;x=y\r\n":1}\r\n0\r\nX-Amz-Target: trailer\r\n\r\n'
    )
    assert peer.answers() == [(200, b'{"a":1}')]
    assert peer.send(request("Now")).statuses() == [200, 200]


def test_pipelined_answers_leave_in_order_and_in_one_write() -> None:
    peer = Peer().send(request("First") + request("Now") + request("Third"))
    first, third = peer.database.unfinished
    third({"n": 3}, None)
    peer.run_soon()
    assert peer.answers() == []
    first({"n": 1}, None)
    peer.run_soon()
    assert [body for _, body in peer.answers()] == [b'{"n":1}', b"{}", b'{"n":3}']
    assert peer.transport.writes == 1


def test_answers_that_are_ready_at_once_leave_in_one_write() -> None:
    peer = Peer().send(request("Now") * 20)
    assert peer.statuses() == [200] * 20
    assert peer.transport.writes == 1


def test_a_pipeline_has_an_end() -> None:
    peer = Peer(pipeline_max=4).send(request("Later") * 10)
    assert len(peer.database.calls) == 4
    assert peer.transport.paused
    while peer.database.unfinished:
        peer.database.unfinished.pop(0)({}, None)
        peer.run_soon()
        assert len(peer.database.unfinished) <= 4
    assert peer.statuses() == [200] * 10
    assert not peer.transport.paused


def test_a_client_that_does_not_read_is_not_served_more() -> None:
    peer = Peer(buffered_bytes_max=1000)
    peer.connection.pause_writing()
    assert peer.transport.paused
    peer.send(request("Now") * 3)
    assert peer.database.calls == []
    peer.connection.resume_writing()
    assert peer.statuses() == [200] * 3
    assert not peer.transport.paused


def test_answers_held_back_by_an_earlier_one_are_bounded() -> None:
    peer = Peer(buffered_bytes_max=1000).send(
        request("Later") + request("Now", b'{"a":"%b"}' % (b"x" * 600)) * 5
    )
    assert len(peer.database.calls) == 3
    peer.database.unfinished.pop()({}, None)
    peer.run_soon()
    assert peer.statuses() == [200] * 6


@pytest.mark.parametrize(
    ("version", "extra", "kept"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"Connection: close\r\n", False),
        (b"1.0", b"", False),
        (b"1.0", b"Connection: keep-alive\r\n", True),
    ],
)
@pytest.mark.parametrize("operation", ["Now", "Fail"])
def test_who_keeps_the_connection(version: bytes, extra: bytes, kept: bool, operation: str) -> None:
    peer = Peer().send(request(operation, extra=extra, version=version))
    assert len(peer.answers()) == 1
    assert peer.transport.closed is not kept
    assert (b"Connection: close\r\n" in peer.transport.written) is not kept


def test_nothing_is_read_after_the_last_request() -> None:
    peer = Peer().send(request("Now", extra=b"Connection: close\r\n") + request("Now") + b"garbage")
    assert peer.statuses() == [200]
    assert len(peer.database.calls) == 1


def test_expect_continue() -> None:
    data = request("Now", extra=b"Expect: 100-continue\r\n")
    peer = Peer().send(data[:-2])
    assert peer.transport.written == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert peer.send(b"{}").statuses() == [100, 200]


def test_continue_waits_for_the_answers_before_it() -> None:
    peer = Peer().send(request("Later") + request("Now", extra=b"Expect: 100-continue\r\n")[:-2])
    assert peer.answers() == []
    peer.database.unfinished.pop()({}, None)
    peer.run_soon()
    assert peer.send(b"{}").statuses() == [200, 100, 200]


def test_head_has_no_body() -> None:
    peer = Peer().send(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert peer.transport.written.endswith(b"Content-Length: 42\r\n\r\n")


def test_an_offer_to_upgrade_is_declined() -> None:
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    peer = Peer().send(request("Now", extra=offer) + request("Now"))
    peer.send(request("Now"))
    assert peer.statuses() == [200, 200, 200]
    assert Peer().send(request("Now", extra=offer) * 3).statuses() == [200, 200, 200]
    assert Peer().send(request("Now", extra=offer)[:-1]).send(b"}").statuses() == [200]


def test_a_tunnel_is_not_made() -> None:
    peer = Peer().send(b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\nhello")
    assert peer.statuses() == [404]
    peer.send(request("Now"))
    assert peer.database.calls == []


@pytest.mark.parametrize(
    ("data", "limits", "status"),
    [
        (b"\r\n\r\nhello\r\n\r\n", {}, 400),
        (b"POST / HTTP/1.1\r\n\r\n", {}, 400),  # RFC 9112, 3.2: no Host
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", {}, 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", {}, 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", {}, 400),
        *[
            (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: %b\r\n\r\n" % coding, {}, 501)
            for coding in (b"gzip, chunked", b"gzip", b"identity", b"chunked;q=1", b"xchunked")
        ],
        *[
            (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: %b\r\n\r\n0\r\n\r\n" % coding, {}, 400)
            for coding in (b"chunked, gzip", b"chunked, chunked", b"", b"\x0bchunked")
        ],
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {}, 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {}, 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", {}, 400),
        (request("Now", b"x" * 11), {"body_bytes_max": 10}, 413),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nxxxxxxxxxxx\r\n",
            {"body_bytes_max": 10},
            413,
        ),
        (request("Now", extra=b"Expect: the unexpected\r\n"), {}, 417),
        (request("Now", extra=b"".join(b"H%d: x\r\n" % n for n in range(100))), {}, 431),
        (request("Now", extra=b"H: " + b"x" * 70_000 + b"\r\n"), {}, 431),
        (b"POST /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", {}, 431),
    ],
)
def test_what_is_not_proper_http_ends_the_connection(
    data: bytes, limits: dict[str, Any], status: int
) -> None:
    for prefix in (b"", request("Now")):
        for step in (len(data), 1000):
            peer = Peer(**limits).send(prefix)
            for start in range(0, len(data), step):
                peer.send(data[start : start + step])
            assert peer.statuses() == [*([200] if prefix else []), status]
            assert b"Connection: close\r\n" in peer.transport.written
            assert peer.transport.half_closed
            assert not peer.transport.closed
            peer.send(request("Now"))
            assert len(peer.answers()) == 2 if prefix else 1
            peer.pass_time(LINGER_SECONDS_MAX + 0.1)
            assert peer.transport.aborted


HEADERS_READ = {
    "Amz-Sdk-Request": "attempt=1",
    "Authorization": "AWS4-HMAC-SHA256 Credential=A/1/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, "
    "Signature=0",
    "Content-Encoding": "identity",
    "Content-Length": "2",
    "Content-Type": "application/x-amz-json-1.0",
    "Date": "Thu, 01 Jan 2026 00:00:00 GMT",
    "Expect": "100-continue",
    "Host": "localhost",
    "Origin": "http://localhost:3000",
    "Transfer-Encoding": "chunked",
    "X-Amz-Date": "20260101T000000Z",
    "X-Amz-Target": "DynamoDB_20120810.Now",
}


def headers_read() -> set[str]:
    """All headers that the server reads, by its sources: `headers.get(b"…")`, `b"…" in headers`."""
    sources = Path(__file__).resolve().parents[2] / "src" / "hashrange"
    modules = ("protocol", "server/access", "server/http")
    text = "".join((sources / f"{module}.py").read_text("utf-8") for module in modules)
    found = re.findall(r'eaders\.get\(b"([a-z-]+)"|b"([a-z-]+)" (?:not )?in headers', text)
    found += re.findall(r'\(b"([a-z-]+)", (b)"Access-Control-Allow-', text)
    return {one or other for one, other in found}


def test_the_headers_that_are_read_are_known_here() -> None:
    asked = {"access-control-request-headers", "access-control-request-method"}  # echoed, nothing else
    asked.add("accept")  # a list, which may come in parts
    asked.add("user-agent")  # whatever a client says of itself
    assert headers_read() - asked == {name.lower() for name in HEADERS_READ}


@pytest.mark.parametrize("name", HEADERS_READ)
@pytest.mark.parametrize("other", ["the same", "other"])
def test_a_header_that_is_read_comes_once(name: str, other: str) -> None:
    framing = {"Content-Length", "Transfer-Encoding"}
    unused = "Content-Length" if name == "Transfer-Encoding" else "Transfer-Encoding"
    lines = [f"{header}: {value}\r\n" for header, value in HEADERS_READ.items() if header != unused]
    body = "{}" if unused != "Content-Length" else "2\r\n{}\r\n0\r\n\r\n"
    assert len(lines) == len(HEADERS_READ) - len(framing) + 1

    def send() -> Peer:
        peer = Peer(allow_origin=("*",))
        return peer.send(f"POST / HTTP/1.1\r\n{''.join(lines)}\r\n{body}".encode())

    assert 400 not in send().statuses()
    again = HEADERS_READ[name] if other == "the same" else "3"
    lines.insert(0, f"{name.upper()}: {again}\r\n")
    peer = send()
    assert peer.statuses() == [400]
    assert peer.transport.half_closed
    assert peer.database.calls == []


def test_other_headers_may_repeat() -> None:
    peer = Peer().send(request("Now", extra=b"Via: a\r\nVia: b\r\n"))
    assert peer.statuses() == [200]


def test_a_header_of_very_many_lines_is_refused() -> None:
    peer = Peer().send(request("Now", extra=b"Via: abcdefgh\r\n" * 2_000) + request("Now"))
    assert peer.statuses() == [400]
    assert peer.database.calls == []


def test_a_request_of_a_page_does_not_reach_the_database() -> None:
    peer = Peer().send(request("Now", extra=b"Origin: https://evil.example\r\n") + request("Now"))
    assert peer.statuses() == [403, 200]
    assert len(peer.database.calls) == 1
    assert peer.plane.metrics.responses == {(403, "AccessDeniedException"): 1}


def test_a_refusal_waits_for_the_answers_before_it() -> None:
    peer = Peer().send(request("Later") + b"garbage\r\n\r\n")
    assert peer.answers() == []
    peer.database.unfinished.pop()({}, None)
    peer.run_soon()
    assert peer.statuses() == [200, 400]


def test_endless_headers_and_framing_are_cut_off() -> None:
    peer = Peer(header_bytes_max=1000).send(b"POST / HTTP/1.1\r\nHost: x\r\nH: ")
    for _ in range(100):
        peer.send(b"x" * 100)
    assert peer.statuses() == [431]
    for begin, piece in (
        (b"1;", b"x" * 100),  # an extension without end
        (b"", b"1;" + b"x" * 100 + b"\r\nx\r\n"),  # extensions that are long together
        (b"0\r\n", b"T: " + b"x" * 100 + b"\r\n"),  # trailers
        (b"1\r\nx\r\n0\r\nT: ", b"x" * 100),  # a trailer without end
    ):
        peer = Peer(header_bytes_max=1000, body_bytes_max=1_000_000)
        peer.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + begin)
        for number in range(100):
            if peer.statuses():
                assert number < 20
                break
            peer.send(piece)
        assert peer.statuses() == [431]


def test_a_body_in_very_small_chunks_is_a_body_all_the_same() -> None:
    head, body = request("Now", b'{"a":"%b"}' % (b"x" * 5_000)).split(b"\r\n\r\n")
    head = re.sub(rb"Content-Length: [0-9]+", b"Transfer-Encoding: chunked", head)
    peer = Peer(header_bytes_max=1000).send(head + b"\r\n\r\n")
    for start in range(0, len(body), 20):
        peer.send(b"".join(b"1\r\n%c\r\n" % byte for byte in body[start : start + 20]))
    assert peer.send(b"0\r\n\r\n").statuses() == [200]


def test_bodies_being_received_are_bounded_over_all_connections() -> None:
    peer = Peer(bodies_bytes_max=1000)
    data = request("Now", b'{"a":"%b"}' % (b"x" * 600))
    second, transport = Connection(peer.plane), FakeTransport()
    second.connection_made(transport)
    peer.send(data[:-400]).send(data[-400:-10])
    for piece in (data[:-400], data[-400:-10]):
        second.data_received(piece)
    assert transport.written.startswith(b"HTTP/1.1 503 ")
    assert peer.send(data[-10:]).statuses() == [200]
    assert peer.plane.gathered_bytes == 0
    peer.send(data[:-400]).send(data[-400:-10])
    assert peer.plane.gathered_bytes > 0
    peer.connection.connection_lost(None)
    assert peer.plane.gathered_bytes == 0


def test_times() -> None:
    limits = {"header_seconds_max": 1.0, "body_seconds_max": 2.0, "idle_seconds_max": 4.0}
    idle, head, body = Peer(**limits), Peer(**limits), Peer(**limits)
    head.send(b"POST / HT")
    body.send(request("Now")[:-1])
    working = Peer(**limits).send(request("Later"))
    for now, statuses in ((0.9, [[], [], []]), (1.1, [[], [408], []]), (2.1, [[], [408], [408]])):
        for peer in (idle, head, body):
            peer.pass_time(now)
        assert [peer.statuses() for peer in (idle, head, body)] == statuses
    idle.pass_time(3.9)
    assert not idle.transport.is_closing()
    idle.pass_time(4.1)
    assert idle.transport.closed
    assert idle.answers() == []
    working.pass_time(1000.0)
    assert not working.transport.is_closing()


def test_a_client_that_never_reads_is_cut_off() -> None:
    peer = Peer(write_seconds_max=5.0)
    peer.connection.pause_writing()
    peer.pass_time(4.9)
    assert not peer.transport.aborted
    peer.pass_time(5.1)
    assert peer.transport.aborted


def test_a_server_that_was_late_blames_no_client() -> None:
    peer = Peer(header_seconds_max=10.0, body_seconds_max=10.0).send(request("Now")[:-1])
    # The event loop was blocked for a minute, in which the client's last byte may have arrived.
    peer.plane.sweep(60.0)
    assert peer.statuses() == []
    assert peer.send(request("Now")[-1:]).statuses() == [200]


def test_a_request_on_a_thread_keeps_those_behind_it_waiting() -> None:
    peer = Peer().send(request("Long") + request("Now") * 3)
    assert [name for name, _, _ in peer.database.calls] == ["Long"]
    peer.database.unfinished.pop()({}, None)
    peer.run_soon()
    assert peer.statuses() == [200] * 4


@pytest.mark.parametrize("leave", [lambda peer: peer.connection.connection_lost(None), Peer.half_close])
def test_work_for_a_client_that_left_is_abandoned(leave: Callable[[Peer], None]) -> None:
    large = request("Now", b'{"a":"%b"}' % (b"x" * LARGE_BODY_BYTES))
    for data in (request("Long"), large):
        peer = Peer().send(data + request("Now"))
        leave(peer)
        peer.connection.connection_lost(None)
        assert [task.abandoned for task in peer.database.tasks] == [True]
        assert peer.plane.gathered_bytes == 0


def test_a_long_answer_is_written_in_portions() -> None:
    """To send tens of megabytes at once would hold up all other connections."""
    last = request("Now", b'{"last":1}', b"Connection: close\r\n")
    peer = Peer().send(request("Later") + request("Now") + last)
    answer = {"Responses": {"t": ["x" * 300_000] * 10}}
    peer.database.unfinished.pop()(answer, None)
    portions: list[int] = []

    def written() -> int:
        portions.append(len(peer.transport.written) - sum(portions))
        return portions[-1]

    while not peer.transport.written:
        peer.soon.pop(0)()
    assert written() == PORTION_BYTES
    peer.connection.pause_writing()
    peer.run_soon()
    assert written() == 0
    peer.connection.resume_writing()
    assert written() == PORTION_BYTES
    while peer.soon:
        peer.soon.pop(0)()
        assert written() <= PORTION_BYTES
    assert [body for _, body in peer.answers()] == [orjson.dumps(answer), b"{}", b'{"last":1}']
    assert peer.transport.closed


@pytest.mark.parametrize("size", [APART_BYTES - 1, APART_BYTES, PORTION_BYTES, PORTION_BYTES + 1])
@pytest.mark.parametrize("ends", [False, True])
def test_answers_of_every_size_come_whole_and_in_order(size: int, ends: bool) -> None:
    """A head and a body of middle size are two texts."""
    answer = {"x": "x" * (size - len(b'{"x":""}'))}
    peer = Peer().send(request("Later"))
    peer.database.unfinished.pop()(answer, None)
    peer.send(request("Later") * 2 + request("Later", extra=b"Connection: close\r\n" if ends else b""))
    for unfinished in peer.database.unfinished[::-1]:
        unfinished(answer, None)
        peer.run_soon()
    assert [body for _, body in peer.answers()] == [orjson.dumps(answer)] * 4
    assert peer.transport.closed == ends


@pytest.mark.parametrize("error", [None, errors.InternalServerError(""), errors.AnswerLost("")])
def test_an_answer_that_is_made_anew_leaves_nothing_of_the_former(error: Exception | None) -> None:
    """A body that others have overtaken runs again, and makes another answer; or it fails."""
    peer = Peer()
    exchange = Exchange(peer.connection, peer.plane, False)
    exchange.encode({"x": "x" * APART_BYTES})
    exchange.done(exchange.encode({}) if error is None else None, error)
    assert exchange.answer is not None
    assert exchange.rest == b""


def test_draining_finishes_what_is_under_way() -> None:
    idle, working, receiving = Peer(), Peer().send(request("Later")), Peer().send(request("Now")[:-1])
    for peer in (idle, working, receiving):
        peer.plane.drain()
    assert idle.transport.closed
    assert not working.transport.is_closing()
    assert not receiving.transport.is_closing()
    working.database.unfinished.pop()({}, None)
    assert working.statuses() == [200]
    assert working.transport.closed
    receiving.send(b"}")
    assert receiving.statuses() == [200]
    assert receiving.transport.closed
    assert b"Connection: close" in receiving.transport.written
    late = Connection(idle.plane)
    transport = FakeTransport()
    late.connection_made(transport)
    assert transport.written.startswith(b"HTTP/1.1 503 ")


def test_the_number_of_connections_is_bounded() -> None:
    peer = Peer(connections_max=1)
    second, transport = Connection(peer.plane), FakeTransport()
    second.connection_made(transport)
    assert transport.written.startswith(b"HTTP/1.1 503 ")
    assert transport.closed
    second.data_received(request("Now"))
    assert peer.database.calls == []
    second.connection_lost(None)
    peer.connection.connection_lost(None)
    assert not peer.plane.connections


def test_a_half_closed_client_still_gets_its_answer() -> None:
    peer = Peer().send(request("Later"))
    assert peer.connection.eof_received()
    peer.database.unfinished.pop()({}, None)
    assert peer.statuses() == [200]
    assert peer.transport.closed
    assert not Peer().connection.eof_received()


def test_an_answer_to_a_client_that_left_is_dropped() -> None:
    peer = Peer().send(request("Later") * 2)
    peer.connection.connection_lost(None)
    for done in peer.database.unfinished:
        done({}, None)
    peer.run_soon()
    assert peer.answers() == []


_PIECES = st.lists(
    st.one_of(
        st.binary(max_size=60),
        st.sampled_from(
            [request("Now"), request("Later"), b"\r\n", b"POST / HTTP/1.1\r\n", SIGNED, b"\r\n\r\n", b"{}"]
        ),
    ),
    max_size=12,
)


@given(_PIECES, st.randoms(use_true_random=False))
@settings(max_examples=examples(150), deadline=None)
def test_arbitrary_bytes_are_answered_or_refused(pieces: list[bytes], random: Any) -> None:
    peer = Peer(pipeline_max=3)
    for piece in pieces:
        peer.send(piece)
        if peer.database.unfinished and random.random() < 0.5:
            peer.database.unfinished.pop(random.randrange(len(peer.database.unfinished)))({}, None)
            peer.run_soon()
    peer.run_soon()  # on a slow machine a request may have to wait for its turn
    while peer.database.unfinished:
        peer.database.unfinished.pop(0)({}, None)
        peer.run_soon()
    assert all(status == 200 or 400 <= status < 500 for status in peer.statuses())
    peer.pass_time(1000.0)
    peer.pass_time(2000.0)
    assert peer.transport.closed or peer.transport.aborted


def test_a_connection_whose_time_cannot_be_checked_does_not_spare_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(FakeTransport):
        def is_closing(self) -> bool:
            raise RuntimeError("no end")

        close = abort = write_eof = is_closing  # type: ignore[assignment]

    peer = Peer(idle_seconds_max=0.5)
    plane = peer.plane
    transports: list[FakeTransport] = [Broken(), FakeTransport(), FakeTransport(), Broken()]
    for transport in transports:
        Connection(plane).connection_made(transport)
    plane.sweep(5.0)
    plane.sweep(6.0)
    assert [one.half_closed or one.closed for one in transports] == [False, True, True, False]
    assert plane.metrics.internal_errors == 2
    assert "cut off" in caplog.text
    plane.sweep(7.0)
    assert plane.metrics.internal_errors == 2
