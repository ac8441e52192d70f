"""Large requests: they are read by turns and on threads."""

from __future__ import annotations

from hashrange.server.http import LARGE_BODY_BYTES, LARGE_READ_BYTES
from peer import Peer, request


def test_a_large_request_is_read_on_a_thread() -> None:
    peer = Peer().send(request("Now", b'{"a":"%b"}' % (b"x" * LARGE_BODY_BYTES)) + request("Now"))
    assert peer.database.calls == []
    assert peer.plane.gathered_bytes > LARGE_BODY_BYTES
    peer.database.aside.pop()()
    peer.run_soon()
    assert peer.statuses() == [200, 200]
    assert peer.plane.gathered_bytes == 0
    broken = Peer().send(request("Now", b"{" * (LARGE_BODY_BYTES + 1)))
    broken.database.aside.pop()()
    broken.run_soon()
    assert broken.statuses() == [400]


def test_a_request_whose_preparation_takes_long_is_read_again_on_a_thread() -> None:
    peer = Peer().send(request("Stop", b'{"a":"1.0"}') + request("Now"))
    assert peer.statuses() == []
    assert [given for _, given, _ in peer.database.calls] == [{}]
    peer.database.aside.pop()()
    peer.run_soon()
    assert peer.statuses() == [200, 200]
    assert peer.answers()[0][1] == b'{"a":"1.0"}'
    assert [operation for operation, _, _ in peer.database.calls] == ["Stop", "Stop", "Now"]
    assert peer.plane.gathered_bytes == 0


def test_large_bodies_are_read_by_turns() -> None:
    """An event loop takes many megabytes from one client at once, unless the client's turn is ended."""
    server = Peer()
    piece = b"x" * LARGE_READ_BYTES
    head, body = request("Now", b'{"a":"%b"}' % (piece * 10)).split(b"\r\n\r\n")
    peers = [server.another().send(head + b"\r\n\r\n" + body[:10]) for _ in range(6)]
    for peer in peers:
        peer.send(body[10 : 10 + len(piece)])
    assert [peer.transport.paused for peer in peers] == [True] * 6
    peers[0].run_round()
    assert [peer.transport.paused for peer in peers] == [False] * 4 + [True] * 2
    peers[0].send(body[10 + len(piece) : 10 + 2 * len(piece)])
    assert peers[0].transport.paused
    peers[0].run_round()
    assert [peer.transport.paused for peer in peers] == [False] * 6
    for peer in peers:
        peer.send(body[10 + (2 if peer is peers[0] else 1) * len(piece) :])
        assert not peer.transport.paused  # the body is complete
        peer.database.aside.pop()()
        peer.run_soon()
        assert peer.statuses() == [200]


def test_a_large_body_that_is_read_by_turns_has_to_come_in_time() -> None:
    peer = Peer(body_seconds_max=10.0)
    head, body = request("Now", b'{"a":"%b"}' % (b"x" * 20 * LARGE_READ_BYTES)).split(b"\r\n\r\n")
    peer.send(head + b"\r\n\r\n")
    for turn in range(20):
        peer.plane.sweep(float(turn))
        if peer.transport.closed or peer.statuses():
            break
        peer.send(body[turn * LARGE_READ_BYTES : (turn + 1) * LARGE_READ_BYTES])
        peer.run_soon()
    assert peer.statuses() == [408]
