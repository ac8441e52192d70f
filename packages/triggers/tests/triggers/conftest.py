"""The world that the tests of triggers live in."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

import hashrange_triggers as triggers
from hashrange import client
from hashrange.clock import ManualClock
from hashrange.database import Database, Settings
from hashrange.storage.memory import MemoryEngine
from triggers.world import World


@pytest.fixture
def settings() -> Settings:
    return Settings()


@pytest.fixture
def world(settings: Settings) -> Iterator[World]:
    clock = ManualClock()
    database = Database(MemoryEngine(), clock=clock, settings=settings)
    clients = triggers.Clients(client.connect(database), client.connect(database, service="dynamodbstreams"))
    world = World(clock, database, clients)
    world.create_table()
    yield world
    database.close()


@pytest.fixture
def unused_port() -> int:
    """A port that nobody listens on right now, for a server that has to come back under its old address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
