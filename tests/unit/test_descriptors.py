"""File descriptors: who gets how many, and a server that is asked for more connections than it has."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from select import select
from socket import create_connection, socket
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange.files import descriptors
from worlds import table_of

resource = pytest.importorskip("resource", reason="POSIX's limits")

LIMIT = 256
HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=00",
}
CREATE = table_of("table", "pk")


@given(st.integers(136, 1 << 31), st.integers(1, 100_000))
def test_the_shares_never_exceed_the_limit(limit: int, wanted: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resource, "getrlimit", lambda _: (limit, limit))
        connections = descriptors.connections_max(wanted)
        assert 1 <= connections <= wanted
        assert connections + descriptors.engine_files_max() + descriptors.RESERVED <= limit


@pytest.mark.parametrize(
    ("limits", "set_to"),
    [
        ((256, 1000), [1000]),
        ((1000, 1000), []),
        ((256, resource.RLIM_INFINITY), [65_536, 10_240]),
        ((20_000, resource.RLIM_INFINITY), [65_536]),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), []),
    ],
)
def test_the_limit_is_raised_as_far_as_the_system_lets_it(
    limits: tuple[int, int], set_to: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def refuse(_: int, wanted: tuple[int, int]) -> None:
        assert wanted[1] == limits[1]
        tried.append(wanted[0])
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", refuse)
    descriptors.raise_limit()
    assert tried == set_to


@contextmanager
def served(
    directory: Path, limits: tuple[int, int]
) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """A durable server under `ulimit -n`, soft and hard, and its line about having started."""
    options = ["--port", "0", "--log-format", "json", "--data-dir", str(directory / "data")]
    with subprocess.Popen(
        [sys.executable, "-m", "hashrange", "serve", *options],
        stderr=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits),
    ) as process:
        assert process.stderr is not None
        try:
            yield process, json.loads(process.stderr.readline())
        finally:
            process.kill()


def address_of(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname
    assert parts.port
    return parts.hostname, parts.port


def call(connection: HTTPConnection, operation: str, request: object) -> Any:
    headers = HEADERS | {"X-Amz-Target": f"DynamoDB_20120810.{operation}"}
    connection.request("POST", "/", json.dumps(request), headers)
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    return json.loads(body)


def is_closed(connection: socket) -> bool:
    try:
        return connection.recv(1000) == b""
    except ConnectionResetError:
        return True


@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 600, reason="needs 600 file descriptors")
def test_connections_beyond_the_limit_are_refused_and_the_others_go_on(tmp_path: Path) -> None:
    with served(tmp_path, (LIMIT, LIMIT)) as (process, started), ExitStack() as stack:
        connections_max = started["connections_max"]
        assert started["descriptors_max"] == LIMIT
        assert 100 <= connections_max < LIMIT
        address = address_of(started["endpoint"])
        kept = HTTPConnection(*address, timeout=10)
        stack.callback(kept.close)
        call(kept, "CreateTable", CREATE)

        crowd = [stack.enter_context(create_connection(address, timeout=10)) for _ in range(400)]
        # The admin plane has a number of its own.
        admin = [stack.enter_context(create_connection(address_of(started["admin"]))) for _ in range(40)]
        for number in range(50):
            item = {"pk": {"S": str(number)}}
            call(kept, "PutItem", {"TableName": "table", "Item": item})
            assert call(kept, "GetItem", {"TableName": "table", "Key": item}) == {"Item": item}
        # The engine begins new files under way.
        for number in range(200):
            item = {"pk": {"S": f"large {number}"}, "text": {"S": "x" * 390_000}}
            call(kept, "PutItem", {"TableName": "table", "Item": item})

        # Connections are accepted in their order, so the last are refused; none waits forever.
        assert {one.recv(1000)[:12] for one in crowd[connections_max:]} == {b"HTTP/1.1 503"}
        # The admin plane gives the places of those who say nothing to others.
        waiting = set(admin)
        while len(waiting) > 16:
            readable, _, _ = select(waiting, [], [], 5)  # (in ten seconds it gives up all who say nothing)
            assert readable
            assert all(map(is_closed, readable))
            waiting -= set(readable)

        for one in crowd + admin:
            one.close()
        again = [HTTPConnection(*address, timeout=10) for _ in range(20)]
        for connection in again:
            stack.callback(connection.close)
        # The server may read the new connections before it reads that the old ones are closed.
        for _ in range(200):
            again[0].request("GET", "/")
            answer = again[0].getresponse()
            answer.read()
            if answer.status == 200:
                break
            again[0].close()
        for connection in again:
            call(connection, "ListTables", {})

        process.terminate()
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr]
        assert process.wait(10) == 0
        assert [(line["event"], line.get("plane")) for line in lines if line["event"] != "started"] == [
            ("connections refused", "data"),
            ("idle connections closed", "admin"),
            ("stopping", None),
            ("stopped", None),
        ]


def test_the_server_raises_its_limit(tmp_path: Path) -> None:
    with served(tmp_path, (LIMIT, 500)) as (_, started):
        assert started["descriptors_max"] == 500
        assert started["connections_max"] == 500 - 125 - descriptors.RESERVED
