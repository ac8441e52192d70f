"""The tests' proxy: what it holds back arrives late and whole, or never."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

import postgres
from proxy import Proxy


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Instead of PostgreSQL."""
    directory = postgres.new_directory()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / ".s.PGSQL.5432"))
        listener.listen()
        yield listener
    (directory / ".s.PGSQL.5432").unlink()
    directory.rmdir()


@pytest.fixture
def proxy(listener: socket.socket) -> Iterator[Proxy]:
    directory = listener.getsockname().rpartition("/")[0]
    with Proxy(f"host={directory} user=postgres") as proxy:
        yield proxy


class Pair:
    """A client, and the server's end of its connection."""

    def __init__(self, proxy: Proxy, listener: socket.socket) -> None:
        self.client = socket.socket(socket.AF_UNIX)
        self.client.connect(f"{proxy.url.partition('host=')[2].partition(' ')[0]}/.s.PGSQL.5432")
        self.server = listener.accept()[0]

    def close(self) -> None:
        self.client.close()
        self.server.close()


@pytest.fixture
def pair(proxy: Proxy, listener: socket.socket) -> Iterator[Pair]:
    pair = Pair(proxy, listener)
    yield pair
    pair.close()


def test_it_forwards_both_ways_and_the_end(pair: Pair) -> None:
    pair.client.sendall(b"request")
    assert pair.server.recv(100) == b"request"
    pair.server.sendall(b"answer")
    assert pair.client.recv(100) == b"answer"
    pair.client.close()
    assert pair.server.recv(100) == b""


def test_a_client_hears_of_a_server_that_dies_with_requests_unread(pair: Pair) -> None:
    pair.client.sendall(b"request")
    assert pair.server.recv(3) == b"req"
    pair.server.close()
    assert pair.client.recv(100) == b""


def test_a_request_arrives_although_its_client_has_gone(proxy: Proxy, pair: Pair) -> None:
    proxy.hold("requests")
    pair.client.sendall(b"late")
    pair.client.close()
    proxy.pass_on()
    assert pair.server.recv(100) == b"late"
    assert pair.server.recv(100) == b""


def test_an_answer_that_is_held_back_never_arrives_after_a_cut(proxy: Proxy, pair: Pair) -> None:
    proxy.hold("answers")
    pair.client.sendall(b"request")
    assert pair.server.recv(100) == b"request"
    pair.server.sendall(b"answer")
    proxy.cut()
    assert pair.client.recv(100) == b""


def test_new_connections_pass_although_the_present_ones_are_held(
    proxy: Proxy, pair: Pair, listener: socket.socket
) -> None:
    proxy.hold("requests", new=False)
    pair.client.sendall(b"held")
    other = Pair(proxy, listener)
    other.client.sendall(b"request")
    assert other.server.recv(100) == b"request"
    proxy.pass_on()
    assert pair.server.recv(100) == b"held"
    other.close()


def test_new_connections_are_held(proxy: Proxy, listener: socket.socket) -> None:
    proxy.hold("requests")
    pair = Pair(proxy, listener)
    pair.client.sendall(b"request")
    proxy.cut()
    assert pair.server.recv(100) == b""
    pair.close()


def test_who_cannot_connect_further_is_cut(listener: socket.socket, proxy: Proxy) -> None:
    pair = Pair(proxy, listener)
    listener.close()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"{proxy.url.partition('host=')[2].partition(' ')[0]}/.s.PGSQL.5432")
        assert client.recv(100) == b""
    pair.close()
