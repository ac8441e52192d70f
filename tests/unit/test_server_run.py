"""A real server on a real socket: raw bytes in, raw bytes out, and the ways it stops."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from random import Random
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from hashrange.database import Database
from hashrange.pace import garbage
from hashrange.protocol import Wire
from hashrange.server import ServerSettings, run, running
from hashrange.storage.memory import MemoryEngine
from worlds import table_of

HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Target": "DynamoDB_20120810.ListTables",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=00",
}
LIST_TABLES = (
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
    + "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    + "\r\n{}"
).encode()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[tuple[str, int]]:
    with running(Database(MemoryEngine())) as endpoint_url:
        parts = urlsplit(endpoint_url)
        assert parts.hostname
        assert parts.port
        yield parts.hostname, parts.port


def exchange(endpoint: tuple[str, int], *pieces: bytes) -> bytes:
    """Send `pieces`, each in a packet of its own, then read until the server closes."""
    with socket.create_connection(endpoint, timeout=10) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            client.sendall(piece)
        client.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := client.recv(65536):
            received += chunk
        return received


def test_a_call_over_a_kept_connection(endpoint: tuple[str, int]) -> None:
    connection = HTTPConnection(*endpoint, timeout=10)
    for _ in range(3):
        connection.request("POST", "/", b"{}", HEADERS)
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.getheader("Content-Type") == "application/x-amz-json-1.0"
        assert orjson.loads(answer.read()) == {"TableNames": []}
    connection.close()


def test_a_byte_at_a_time(endpoint: tuple[str, int]) -> None:
    answer = exchange(endpoint, *(LIST_TABLES[i : i + 1] for i in range(len(LIST_TABLES))))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b'\r\n\r\n{"TableNames":[]}')


def test_pipelined_calls(endpoint: tuple[str, int]) -> None:
    answer = exchange(endpoint, LIST_TABLES * 500)
    assert answer.count(b"HTTP/1.1 200 OK\r\n") == 500
    assert answer.count(b'{"TableNames":[]}') == 500


def test_an_unknown_operation(endpoint: tuple[str, int]) -> None:
    answer = exchange(endpoint, LIST_TABLES.replace(b"ListTables", b"EatTables"))
    assert answer.endswith(b'{"__type":"com.amazon.coral.service#UnknownOperationException"}')


RANDOM = Random(1).randbytes(1000)


@pytest.mark.parametrize("garbage", [b"\x00" * 100, b"GET\r\n\r\n", RANDOM, b"\x16\x03\x01" * 50])
def test_garbage_is_refused(endpoint: tuple[str, int], garbage: bytes) -> None:
    assert exchange(endpoint, garbage)[:13] in (b"HTTP/1.1 400 ", b"")


def test_a_large_request_and_a_larger_one(endpoint: tuple[str, int]) -> None:
    connection = HTTPConnection(*endpoint, timeout=30)
    connection.request("POST", "/", b'{"x": "%b"}' % (b"x" * 15_000_000), HEADERS)
    answer = connection.getresponse()
    answer.read()
    assert answer.status in (200, 400)
    connection.close()
    head = LIST_TABLES.replace(b"Content-Length: 2", b"Content-Length: 99999999")
    assert exchange(endpoint, head).startswith(b"HTTP/1.1 413 ")


def test_many_clients_write_at_once(endpoint: tuple[str, int]) -> None:
    create = table_of("many", "pk")
    assert call(endpoint, "CreateTable", create)[0] == 200
    statuses: list[int] = []

    def write(client: int) -> None:
        for n in range(20):
            item = {"pk": {"S": f"{client}-{n}"}}
            statuses.append(call(endpoint, "PutItem", {"TableName": "many", "Item": item})[0])

    threads = [threading.Thread(target=write, args=(client,)) for client in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 160
    status, answer = call(endpoint, "Scan", {"TableName": "many", "Select": "COUNT"})
    assert (status, answer["Count"]) == (200, 160)


def call(endpoint: tuple[str, int], operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    connection = HTTPConnection(*endpoint, timeout=10)
    headers = HEADERS | {"X-Amz-Target": f"DynamoDB_20120810.{operation}"}
    connection.request("POST", "/", orjson.dumps(request), headers)
    answer = connection.getresponse()
    body = orjson.loads(answer.read())
    connection.close()
    return answer.status, body


def test_a_taken_port_is_an_error(endpoint: tuple[str, int]) -> None:
    database = Database(MemoryEngine())
    with pytest.raises(OSError, match="address"), running(database, port=endpoint[1]):
        pass


def test_the_database_outlives_its_server() -> None:
    database = Database(MemoryEngine())
    for _ in range(2):
        with running(database, settings=ServerSettings(drain_seconds_max=1.0)) as endpoint_url:
            parts = urlsplit(endpoint_url)
            connection = HTTPConnection(parts.hostname or "", parts.port, timeout=10)
            connection.request("POST", "/", b"{}", HEADERS)
            assert connection.getresponse().read() == b'{"TableNames":[]}'
            # The connection is left open and idle: stopping must not wait for it.
        connection.close()
        assert database.execute("ListTables", {}) == {"TableNames": []}


def test_asyncio_alone_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "new_event_loop", asyncio.new_event_loop)
    with running(Database(MemoryEngine())) as endpoint_url:
        parts = urlsplit(endpoint_url)
        assert exchange((parts.hostname or "", parts.port or 0), LIST_TABLES * 3).count(b"TableNames") == 3


def status_of(endpoint_url: str, method: str, **headers: str) -> tuple[int, list[str]]:
    """The status of a request, and the CORS headers of its answer."""
    parts = urlsplit(endpoint_url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    connection.request(method, "/", b"{}" if method == "POST" else None, HEADERS | headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, [name for name in answer.headers if name.startswith("Access-Control-")]


@pytest.mark.parametrize("method", ["POST", "OPTIONS", "GET"])
def test_pages_of_strangers_are_refused_on_every_way_in(method: str) -> None:
    with running(Database(MemoryEngine())) as endpoint_url:
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
            assert status_of(endpoint_url, method, **headers) == (403, [])
        assert status_of(endpoint_url, method, Host="localhost:1")[0] == (404 if method == "OPTIONS" else 200)


def test_pages_that_the_operator_allows() -> None:
    settings = ServerSettings(allow_origin=("http://localhost:3000",), allow_host=("db.test",))
    with running(Database(MemoryEngine()), settings=settings) as endpoint_url:
        for method in ("OPTIONS", "POST"):
            status, cors = status_of(endpoint_url, method, Origin="http://localhost:3000", Host="db.test:80")
            assert status == 200
            assert "Access-Control-Allow-Origin" in cors
        assert status_of(endpoint_url, "OPTIONS", Origin="http://localhost:3001") == (403, [])


def test_a_server_on_all_addresses_is_called_by_any_name_but_not_by_pages() -> None:
    with running(Database(MemoryEngine()), host="0.0.0.0") as endpoint_url:
        assert status_of(endpoint_url, "POST", Host="hashrange:8000")[0] == 200
        page = {"Host": "hashrange:8000", "Origin": "https://evil.example"}
        assert status_of(endpoint_url, "POST", **page) == (403, [])


_CHILD = """
import sys
from hashrange.database import Database
from hashrange.server import serve
from hashrange.storage.memory import MemoryEngine
serve(
    Database(MemoryEngine()), port=0,
    started=lambda url: print(url, flush=True), stopping=lambda reason: print(reason, flush=True),
)
print("done", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_in_good_order(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        parts = urlsplit(child.stdout.readline().decode().strip())
        endpoint = (parts.hostname or "", parts.port or 0)
        with socket.create_connection(endpoint, timeout=10) as unfinished:
            unfinished.sendall(LIST_TABLES[:-1])
            # Once this is answered, the server has read the unfinished request too.
            assert exchange(endpoint, LIST_TABLES).endswith(b'{"TableNames":[]}')
            child.send_signal(number)
            assert child.stdout.readline().decode().strip() == number.name
            unfinished.sendall(LIST_TABLES[-1:])
            answer = unfinished.recv(65536)
            assert b"Connection: close\r\n" in answer
            assert answer.endswith(b'{"TableNames":[]}')
        assert child.stdout.read() == b"done\n"
        assert child.wait(10) == 0
        assert child.stderr.read() == b""


_BROKEN_CHILD = """
import sys, threading
from hashrange.database import Database
from hashrange.server import Broken, serve
from hashrange.storage.memory import MemoryEngine
def fail():
    raise MemoryError("no luck")
def started(url):
    for name in ("a stranger", "hashrange-commit"):
        thread = threading.Thread(target=fail, name=name)
        thread.start()
        thread.join()
        print(name, flush=True)
try:
    serve(Database(MemoryEngine()), port=0, started=started)
except Broken as error:
    print(error)
"""


def test_a_server_ends_when_a_thread_of_its_own_has_ended_by_an_error() -> None:
    done = subprocess.run([sys.executable, "-c", _BROKEN_CHILD], capture_output=True, timeout=30, check=True)
    stranger, ours, why = done.stdout.decode().splitlines()
    assert (stranger, ours) == ("a stranger", "hashrange-commit")
    assert why.startswith("The server has stopped, because its thread hashrange-commit has ended by Mem")
    assert done.stderr.count(b"MemoryError: no luck") == 2


class Collector:
    """Replaces the module `gc`, and records the calls."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.rounds = 1_000

    def get_count(self) -> tuple[int, int, int]:
        return 0, 0, self.rounds

    def collect(self) -> None:
        self.done.append("collect")

    def freeze(self) -> None:
        self.done.append("freeze")


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Collector:
    stands_in = Collector()
    monkeypatch.setattr(garbage, "gc", stands_in)
    return stands_in


def test_the_collector_looks_once_at_what_lives_long(collector: Collector) -> None:
    """To look at a million objects again and again stalls all clients each time."""
    loop = asyncio.new_event_loop()
    database, wire = Database(MemoryEngine()), Wire(region="r", account_id="0")
    server = run.Server(database, ServerSettings(), wire, loop, owns_process=True)
    server._loop = Later([])  # type: ignore[assignment]
    server._tick()
    assert collector.done == ["collect", "freeze"]
    collector.rounds = 0
    server._tick()
    assert collector.done == ["collect", "freeze"]
    loop.close()


def test_a_server_in_somebodys_process_leaves_the_collector_alone(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objects of the program must not be frozen: `hashrange.local` finds clients through the collector."""
    ticked = threading.Semaphore(0)
    tick = run.Server._tick

    def count(server: run.Server) -> None:
        tick(server)
        ticked.release()

    monkeypatch.setattr(run.Server, "_tick", count)
    monkeypatch.setattr(run, "_TICK_SECONDS", 0.0)
    with running(Database(MemoryEngine())):
        for _ in range(3):
            assert ticked.acquire(timeout=10)
    assert collector.done == []


def test_an_error_in_a_periodic_check_does_not_end_the_checks(caplog: pytest.LogCaptureFixture) -> None:
    ticks: list[float] = []

    class Broken:
        def tick(self, now: float) -> None:
            ticks.append(now)
            raise RuntimeError("no date")

    loop = asyncio.new_event_loop()
    server = run.Server(
        Database(MemoryEngine()), ServerSettings(), Wire(region="r", account_id="0"), loop
    )
    later: list[object] = []
    server._frames = Broken()  # type: ignore[assignment]
    server._loop = Later(later)  # type: ignore[assignment]
    server._tick()
    server._tick()
    assert len(ticks) == 2
    assert later == [server._tick, server._tick]
    assert server._plane.metrics.internal_errors == 2
    assert "periodic check failed" in caplog.text
    loop.close()


class Later:
    """A loop that only notes what is to be called later."""

    def __init__(self, noted: list[object]) -> None:
        self._noted = noted

    def call_later(self, seconds: float, callback: object) -> None:
        self._noted.append(callback)

    def time(self) -> float:
        return 0.0
