"""A server, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from hashrange.database import Database
from hashrange.server import running


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials of the machine have no part in the tests."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.in_memory() as database:
        yield database


@pytest.fixture
def endpoint(database: Database) -> Iterator[str]:
    with running(database) as url:
        yield url


@pytest.fixture
def client(endpoint: str) -> Iterator[Any]:
    client = boto3.client("dynamodb", endpoint_url=endpoint)
    yield client
    client.close()
