"""The judge of liveness finds servers that do not answer, or do not recover."""

from __future__ import annotations

import socket
from random import Random
from threading import Event

import pytest

from consistency import client as clients
from consistency import liveness
from consistency.client import Client
from consistency.drawn import done, names, open_ended
from consistency.history import History
from consistency.liveness import NAME, judge


def test_a_server_that_keeps_silent_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "TIMEOUT_SECONDS", 0.05)
    history = History()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(0, [f"http://127.0.0.1:{silent.getsockname()[1]}"], Random(0), history)
        with client.recorded("registers", "put", key="k", value=1):
            client.call("PutItem")
    assert history.counts() == {"unknown": 1}
    assert names(judge(history.operations)) == {"no answer"}


def test_what_does_not_recover_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers for a server's health, and a client makes no step."""
    monkeypatch.setattr(liveness, "DEADLINE_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    history, workers = History(), [Client(number, [], Random(0), History()) for number in range(2)]
    liveness.watch(history, [url], workers, Event())
    assert names(judge(history.operations)) == {"not well", "stuck"}


def test_a_sound_history_is_not_accused() -> None:
    history = [
        done(NAME, "health", 0, 1, "ok", url="u"),
        done(NAME, "steps", 0, 1, [2, 5]),
        open_ended("registers", "put", 0, key="k", value=1),
    ]
    assert judge(history) == []
    assert names(judge([*history, done(NAME, "steps", 0, 1, [2, 1])])) == {"stuck"}
