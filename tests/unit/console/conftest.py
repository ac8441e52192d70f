"""A server with a console, and a browser that has opened it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from consoles import Browser, fill, opened
from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.server import running


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.in_memory() as database:
        yield database


@pytest.fixture
def browser(database: Database) -> Iterator[Browser]:
    admin = bind_admin(0)
    with running(database, admin=admin):
        yield opened(admin)


@pytest.fixture
def orders(database: Database) -> Database:
    """The database, with a table."""
    fill(database)
    return database
