"""Accepting: what happens when there are too many connections, or no descriptors for them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import socket
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import pytest

import certificates
from collecting import young_objects_only
from hashrange.server import listening
from hashrange.server.listening import Guests, Listener, bind
from hashrange.server.run import new_event_loop

REFUSAL = b"no room"


class Greeter(asyncio.Protocol):
    """Greets each peer, and stays."""

    def __init__(self, guests: set[Greeter]) -> None:
        self._guests = guests

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._guests.add(self)
        # uvloop's transports have the methods of a Transport, but not its class.
        cast(asyncio.Transport, transport).write(b"welcome")

    def connection_lost(self, exc: Exception | None) -> None:
        self._guests.discard(self)


def with_listener(
    body: Callable[[tuple[str, int], set[Greeter]], Coroutine[Any, Any, None]],
    *,
    connections_max: int = 1000,
) -> None:
    """Run `body` beside an open listener."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        present: set[Greeter] = set()
        guests = Guests(
            "test", lambda: Greeter(present), lambda: len(present), connections_max, lambda: REFUSAL
        )
        sockets = await bind(loop, "127.0.0.1", 0, 100)
        listener = Listener(sockets, guests, loop)
        listener.open()
        try:
            await body(sockets[0].getsockname(), present)
        finally:
            await listener.close()
        assert all(one.fileno() == -1 for one in sockets)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(asyncio.wait_for(run(), 30))


async def greeting(address: tuple[str, int]) -> tuple[bytes, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(*address)
    return await reader.readexactly(7), writer


async def is_welcome(address: tuple[str, int], present: set[Greeter]) -> None:
    """The body of a test in which one client is greeted."""
    text, writer = await greeting(address)
    assert text == b"welcome"
    writer.close()


def events(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.name == listening.__name__]


def test_beyond_the_number_is_refused_with_one_line_and_taken_again_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body(address: tuple[str, int], present: set[Greeter]) -> None:
        first = [await greeting(address) for _ in range(3)]
        assert {text for text, _ in first} == {b"welcome"}
        late = [await greeting(address) for _ in range(50)]
        assert {text for text, _ in late} == {REFUSAL}
        for _, writer in first + late:
            writer.close()
            await writer.wait_closed()
        while present:
            await asyncio.sleep(0)
        text, writer = await greeting(address)
        assert text == b"welcome"
        writer.close()

    with caplog.at_level(logging.INFO):
        with_listener(body, connections_max=3)
    assert events(caplog) == ["connections refused"]


def test_clients_that_connect_at_once_are_accepted_at_once() -> None:
    """Each round of the event loop serves those that were accepted before, which takes longer and longer."""

    async def body(address: tuple[str, int], present: set[Greeter]) -> None:
        with contextlib.ExitStack() as clients:
            for _ in range(50):  # the kernel connects them while the loop stands still
                clients.enter_context(socket.create_connection(address))
            rounds = 0
            while len(present) < 50:
                await asyncio.sleep(0)
                rounds += 1
            assert rounds < 10

    with_listener(body)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EBADF])
def test_a_failing_accept_is_not_tried_again_at_once(
    number: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    steps: list[str] = []

    accepted = listening.accepted

    async def fail_at_first(loop: asyncio.AbstractEventLoop, socket_: socket.socket) -> socket.socket:
        if steps.count("fail") < 3:
            steps.append("fail")
            raise OSError(number, "too many open files")
        return await accepted(loop, socket_)

    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        if seconds:
            steps.append("wait")
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    monkeypatch.setattr(listening, "accepted", fail_at_first)
    with caplog.at_level(logging.INFO):
        with_listener(is_welcome)
    assert steps == ["fail", "wait"] * 3
    assert events(caplog) == ["accepting failed"]


def test_a_client_that_left_stops_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [ConnectionAbortedError()]
    accepted = listening.accepted

    async def fail_once(loop: asyncio.AbstractEventLoop, socket_: socket.socket) -> socket.socket:
        if failures:
            raise failures.pop()
        return await accepted(loop, socket_)

    monkeypatch.setattr(listening, "accepted", fail_once)
    with_listener(is_welcome)
    assert not failures
    assert events(caplog) == []


@pytest.mark.filterwarnings("error")  # of sockets that nobody closed
@pytest.mark.parametrize("rounds", range(8))
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("make_loop", [new_event_loop, asyncio.new_event_loop], ids=["default", "asyncio"])
def test_who_arrives_as_it_closes_is_not_left_open(
    make_loop: Callable[[], asyncio.AbstractEventLoop], secure: bool, rounds: int, tmp_path: Path
) -> None:
    """Closing meets the connection at every step of accepting it."""
    unraisable: list[Any] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        present: set[Greeter] = set()
        guests = Guests(
            "test",
            lambda: Greeter(present),
            lambda: len(present),
            10,
            lambda: REFUSAL,
            certificates.make(tmp_path).certificates() if secure else None,
        )
        sockets = await bind(loop, "127.0.0.1", 0, 100)
        listener = Listener(sockets, guests, loop)
        listener.open()
        await asyncio.sleep(0)  # it waits for connections
        with socket.create_connection(sockets[0].getsockname(), 30) as client:
            client.setblocking(False)
            for _ in range(rounds):
                await asyncio.sleep(0)
            await listener.close()
            if present:
                assert await loop.sock_recv(client, 100) == b"welcome"
                return
            with contextlib.suppress(ConnectionResetError):  # if it was in the kernel's queue
                assert await loop.sock_recv(client, 100) == b""

    hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        with young_objects_only():
            with asyncio.Runner(loop_factory=make_loop) as runner:
                runner.run(asyncio.wait_for(run(), 30))
            gc.collect()
    finally:
        sys.unraisablehook = hook
    assert [str(one.exc_value) for one in unraisable] == []


def test_a_connection_that_is_gone_before_it_is_accepted_is_waited_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another process that listens on the socket may take it, or the client may leave."""
    readable = listening._readable
    early: list[None] = []

    async def too_early(loop: asyncio.AbstractEventLoop, socket_: socket.socket) -> None:
        if early:
            await readable(loop, socket_)
        else:
            early.append(None)

    monkeypatch.setattr(listening, "_readable", too_early)
    with_listener(is_welcome)
    assert early
    assert events(caplog) == []


def test_an_address_that_cannot_be_had_leaves_no_socket() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        (taken,) = await bind(loop, "127.0.0.1", 0, 1)
        with taken, pytest.raises(OSError) as caught:
            await bind(loop, "127.0.0.1", taken.getsockname()[1], 1)
        assert caught.value.errno == errno.EADDRINUSE

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run())
