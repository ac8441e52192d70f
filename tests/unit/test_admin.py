"""The admin plane, over its socket: what it shows, what it changes, what it refuses."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Never, cast
from unittest.mock import Mock
from urllib.parse import urlsplit

import msgspec
import orjson
import pytest
from click.testing import CliRunner
from starlette.applications import Starlette
from uvicorn.server import ServerState

import hashrange
from hashrange import __version__, form
from hashrange.cli import main
from hashrange.cli.admin import bind_admin, load
from hashrange.clock import VirtualClock
from hashrange.database import Database, Settings
from hashrange.protocol import Wire
from hashrange.server import ServerSettings, running
from hashrange.server.admin import application, port
from hashrange.server.admin import tables as table_pages
from hashrange.server.admin.port import Admin, Subject
from hashrange.server.admin.status import Health
from hashrange.server.admin.tables import TABLES_PER_PAGE
from hashrange.server.frames import Frames
from hashrange.server.plane import Plane
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.background import sweeps, units
from hashrange.tables.background.units import Bite, Unit
from hashrange.tables.bites import Damage
from hashrange.tables.inspection import overview
from worlds import expiry_of, new_index, table_of

START = 1_767_225_600  # 2026-01-01
JSON = {"Content-Type": "application/json"}
CREATE = table_of("events", "pk")
TTL = expiry_of("events", "until")
INDEX = new_index("events", "again", "pk | KEYS_ONLY")


@pytest.fixture
def database() -> Iterator[Database]:
    database = Database(MemoryEngine(), clock=VirtualClock(START, frozen=True))
    yield database
    database.close()


@pytest.fixture
def url(database: Database) -> Iterator[str]:
    listening = bind_admin(0)
    with running(database, admin=listening):
        yield listening.url


def ask(
    url: str, path: str, body: object = None, *, method: str = "", headers: dict[str, str] = JSON
) -> tuple[int, Any]:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    sent = body if isinstance(body, bytes | None) else orjson.dumps(body)
    connection.request(method or ("GET" if body is None else "POST"), path, sent, headers)
    answer = connection.getresponse()
    shown = answer.read()
    connection.close()
    if answer.getheader("Content-Type") == "application/json":
        return answer.status, orjson.loads(shown)
    return answer.status, shown.decode()


def test_health(url: str) -> None:
    status, shown = ask(url, "/health")
    assert status == 200
    assert shown.pop("uptime_seconds") >= 0
    assert shown == {"status": "ok", "version": __version__, "engine": "memory", "hot_path": form()}


def test_health_names_the_background_work_that_fails(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(bite: Bite) -> bool:
        raise RuntimeError("no luck")

    monkeypatch.setattr(sweeps, "units", lambda *_: [Unit("luck", fail)])
    monkeypatch.setattr(units, "RETRY_SECONDS_MIN", 1_000.0)
    database.sweep()
    database.background.report("other", Damage(b"p", b"s", "spoiled"))
    listening = bind_admin(0)
    with running(database, admin=listening):
        status, shown = ask(listening.url, "/health")
        _, text = ask(listening.url, "/metrics")
    assert (status, shown["status"]) == (200, "degraded")
    assert orjson.loads(msgspec.json.encode(msgspec.convert(shown, Health))) == shown
    assert {"unit": "luck", "error": "RuntimeError: no luck"} in shown["failing"]
    assert shown["damaged_records"] == 1
    assert 'hashrange_background_failing{unit="luck"} 1' in text
    assert "hashrange_background_damaged_records_total 1" in text
    assert "hashrange_background_failures_total 1" in text


def test_the_clock(url: str) -> None:
    frozen = {
        "source": "virtual",
        "virtual": True,
        "frozen": True,
        "time": "2026-01-01T00:00:00.000Z",
        "epoch_seconds": START,
    }
    status, shown = ask(url, "/v1/clock")
    assert isinstance(shown.pop("ahead_seconds"), float)
    assert (status, shown) == (200, frozen)
    status, shown = ask(url, "/v1/clock", {"advance": "1d12h"})
    assert (status, shown["time"], shown["frozen"]) == (200, "2026-01-02T12:00:00.000Z", True)
    status, shown = ask(url, "/v1/clock", {"frozen": False})
    assert (status, shown["frozen"]) == (200, False)
    assert shown["time"] > "2026-01-02T12:00:00"
    status, shown = ask(url, "/v1/clock", {"set": "2020-02-29", "advance": 0.5, "frozen": True})
    assert (status, shown["time"], shown["frozen"]) == (200, "2020-02-29T00:00:00.500Z", True)
    status, shown = ask(url, "/v1/clock", {"set": 1_000})
    assert (status, shown["time"], shown["frozen"]) == (200, "1970-01-01T00:16:40.000Z", True)
    status, shown = ask(url, "/v1/clock", {})
    assert (status, shown["epoch_seconds"]) == (200, 1_000)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"advance": -1}, "a clock is advanced by 0 seconds or more; set it to go back"),
        ({"advance": "1y"}, "'1y' is not a duration, as 90, 15m, 24h, 7d and 1d12h are"),
        ({"advance": "52000000w"}, "a clock shows a time from the year 1970 to the year 9999"),
        ({"set": "soon"}, "'soon' is not a time, as 2026-01-31T12:00:00Z, 1769860800, 10m (ago) and now are"),
        # The parser's own words, of which only the place matters.
        ({"set": []}, "`$.set`"),
        ({"frozen": "yes"}, "`$.frozen`"),
        ({"advanced": 5}, "unknown field `advanced`"),
        (b"{", "truncated"),
        (b"[]", "got `array`"),
        (b'{"set": "\xff"}', ""),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(
    url: str, change: object, message: str
) -> None:
    status, shown = ask(url, "/v1/clock", change)
    assert status == 400
    assert list(shown) == ["error"]
    assert message in shown["error"]
    assert ask(url, "/v1/clock")[1]["epoch_seconds"] == START


def test_the_machines_clock_cannot_be_changed() -> None:
    database = Database(MemoryEngine())
    listening = bind_admin(0)
    with running(database, admin=listening):
        url = listening.url
        status, shown = ask(url, "/v1/clock")
        assert (status, shown["virtual"], shown["frozen"], shown["ahead_seconds"]) == (200, False, False, 0.0)
        assert shown["source"] == "machine"
        status, shown = ask(url, "/v1/clock", {"frozen": True})
        assert status == 409
        assert "--virtual-clock" in shown["error"]


def test_what_a_web_page_could_send_is_refused(url: str) -> None:
    plain = {"Content-Type": "text/plain"}
    assert ask(url, "/v1/clock", {"advance": 5}, headers=plain)[0] == 415
    assert ask(url, "/v1/clock", headers={"Host": "evil.example"})[0] == 400
    assert ask(url, "/v1/clock", method="OPTIONS")[0] == 405
    assert ask(url, "/v1/clock", b" " * 70_000)[0] == 413
    assert ask(url, "/v1/clock")[1]["epoch_seconds"] == START


def test_other_paths_and_methods(url: str) -> None:
    why = "there is nothing at /clock; GET /v1 lists what there is"
    assert ask(url, "/clock") == (404, {"error": why})
    assert ask(url, "/v1/clock", method="DELETE") == (405, {"error": "Method Not Allowed"})


def test_it_describes_itself(url: str) -> None:
    status, shown = ask(url, "/v1/openapi.json")
    assert (status, shown["openapi"]) == (200, "3.1.0")
    described = {(path, method) for path, methods in shown["paths"].items() for method in methods}
    subject = Subject(Database(MemoryEngine()), *[None] * 2)  # type: ignore[arg-type]
    served = {
        (getattr(route, "path", ""), method.lower())
        for route in plane_of(subject).routes
        for method in getattr(route, "methods", ())
        if method != "HEAD" and not getattr(route, "path", "").startswith("/console")
    }
    assert described == served
    assert {(one["path"], one["method"].lower()) for one in ask(url, "/v1")[1]["endpoints"]} == served
    assert set(shown["components"]["schemas"]["ClockChange"]["properties"]) == {"set", "advance", "frozen"}
    [parameter] = shown["paths"]["/v1/faults/{number}"]["delete"]["parameters"]
    assert (parameter["name"], parameter["in"], parameter["required"]) == ("number", "path", True)


def plane_of(subject: Subject) -> Starlette:
    """The admin plane of a server, as the command line mounts it."""
    app = load(subject).config.app
    assert isinstance(app, Starlette)
    return app


def fill(database: Database, items: int) -> None:
    database.execute("CreateTable", orjson.loads(orjson.dumps(CREATE)))
    for n in range(items):
        item = {"pk": {"S": str(n)}, "until": {"N": str(START + n)}}
        database.execute("PutItem", {"TableName": "events", "Item": item})


def test_tables(url: str, database: Database) -> None:
    assert ask(url, "/v1/tables") == (200, {"tables": []})
    stream = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}}
    database.execute("CreateTable", CREATE | stream)
    database.execute("PutItem", {"TableName": "events", "Item": {"pk": {"S": "abc"}}})
    (table,) = ask(url, "/v1/tables")[1]["tables"]
    label = table["stream"].pop("label")
    assert label.startswith("2026-01-01T")
    assert table == {
        "name": "events",
        "status": "ACTIVE",
        "items": 1,
        "bytes": 5,
        "created": START,
        "indexes": [],
        "time_to_live": None,
        "stream": {"view_type": "KEYS_ONLY", "shards": 1, "open_shards": 1},
            "history": None,
            "restore": None,
    }


def test_a_build_tells_how_far_it_is(
    database: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "hashrange")
    monkeypatch.setattr(sweeps, "BITE_ITEMS", 200)
    monkeypatch.setattr(units, "_ITEMS_FIRST", 200)
    monkeypatch.setattr(units, "BITE_SECONDS", 1_000.0)  # no bite is smaller for a slow machine
    fill(database, 2_500)
    database.execute("UpdateTimeToLive", orjson.loads(orjson.dumps(TTL)))
    database.execute("UpdateTable", orjson.loads(orjson.dumps(INDEX)))
    seen = []
    while True:
        (table,) = database.overview()
        (index,) = table["indexes"]
        ttl = table["time_to_live"]
        seen.append((ttl["progress"], index["progress"]))
        assert (ttl["status"] == "ENABLING") == (ttl["progress"] < 1)
        assert (index["status"] == "CREATING") == (index["progress"] < 1)
        if database.sweep() > 0:
            break
    assert seen[0] == (0, 0)
    assert seen[-1] == (1, 1)
    assert seen == sorted(seen)
    # 200 of 2,500 items a step; hashes are not spread that evenly over so few.
    for number, progress in enumerate(seen[:12]):
        assert progress == pytest.approx((number * 200 / 2_500,) * 2, abs=0.05)
    for event in ("queueing items to expire", "filling index"):
        fields = [record.__dict__["fields"] for record in caplog.records if record.message == event]
        assert [field["percent"] for field in fields][-1] == 100
        assert 5 <= len(fields) <= 10
        assert {field["table"] for field in fields} == {"events"}


def test_metrics(database: Database) -> None:
    listening = bind_admin(0)
    with running(database, admin=listening) as endpoint:
        calls = [("ListTables", {}), ("CreateTable", CREATE), ("DescribeTable", {"TableName": "none"})]
        for operation, request in calls:
            call(endpoint, operation, request)
        call(endpoint, "EatTables", {})
        status, text = ask(listening.url, "/metrics")
    assert status == 200
    samples = dict(re.findall(r"^(\S+) (\S+)$", text, re.MULTILINE))
    assert samples['hashrange_requests_total{operation="ListTables",status="200",error=""}'] == "1"
    error = 'operation="DescribeTable",status="400",error="ResourceNotFoundException"'
    assert samples[f"hashrange_requests_total{{{error}}}"] == "1"
    assert samples['hashrange_request_seconds_count{operation="CreateTable"}'] == "1"
    assert samples['hashrange_other_responses_total{status="400",error="UnknownOperationException"}'] == "1"
    assert samples['hashrange_table_items{table="events"}'] == "0"
    assert samples["hashrange_clock_seconds"] == str(float(START))
    assert float(samples["process_cpu_seconds_total"]) > 0


def call(endpoint: str, operation: str, request: object) -> None:
    connection = HTTPConnection(urlsplit(endpoint).netloc, timeout=30)
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "X-Amz-Date": "20260101T000000Z",
        "Authorization": "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=host, Signature=00",
    }
    connection.request("POST", "/", orjson.dumps(request), headers)
    connection.getresponse().read()
    connection.close()


def test_an_internal_error_is_reported_without_its_details(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> list[dict[str, Any]]:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(overview, "tables", fail)
    listening = bind_admin(0)
    with running(database, admin=listening):
        status, shown = ask(listening.url, "/v1/tables")
    assert (status, shown) == (500, {"error": "internal error; the server's log tells more"})
    # Written after the answer was sent, but before the server ended.
    assert "secret" in caplog.text


def test_a_taken_port_is_an_error() -> None:
    with contextlib.closing(bind_admin(0)) as taken, pytest.raises(OSError, match="in use"):
        bind_admin(taken.port)


def test_a_port_that_nobody_used_is_closed(database: Database) -> None:
    listening = bind_admin(0)
    with running(database, admin=listening):
        port = listening.port
    assert listening.socket.fileno() == -1
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)


def test_an_idle_connection_does_not_keep_the_server(database: Database) -> None:
    listening = bind_admin(0)
    with running(database, admin=listening):
        connection = HTTPConnection("127.0.0.1", listening.port, timeout=10)
        connection.request("GET", "/health")
        assert connection.getresponse().read()
    connection.close()
    assert listening.socket.fileno() == -1


def test_a_plane_that_cannot_be_loaded_leaves_the_rest_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(subject: object, door: object) -> Never:
        raise ImportError("no starlette")

    listening = Admin(port.bind(0)[0], fail)
    with running(database, admin=listening) as endpoint:
        for _ in range(2):
            status, shown = ask(listening.url, "/health")
            assert status == 503
            assert "could not be loaded; the server's log tells more" in shown["error"]
        call(endpoint, "ListTables", {})
    assert "no starlette" in caplog.text


@pytest.fixture
def upgraded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The line about a version that was installed under this process."""
    other = tmp_path / "__init__.py"
    other.write_text('"""Hashrange."""\n__version__ = "9.9.9"\n')
    monkeypatch.setattr(hashrange, "__file__", str(other))
    return f"9.9.9 is installed in the place of {__version__}, which still runs: restart it"


def test_a_plane_that_another_version_has_replaced_says_so(
    database: Database, upgraded: str
) -> None:
    def fail(subject: object, door: object) -> Never:
        raise ImportError("cannot import name 'x' from hashrange_console")

    with running(database, admin=Admin(port.bind(0)[0], fail)) as endpoint:
        for command in (["healthcheck"], ["clock", "show"]):
            result = CliRunner().invoke(main, [*command, "--endpoint-url", endpoint])
            assert (result.exit_code, upgraded in result.stderr) == (1, True), result.output


def test_a_loaded_plane_says_that_another_version_has_replaced_it(url: str, upgraded: str) -> None:
    status, shown = ask(url, "/health")
    assert (status, shown["status"], shown["cause"]) == (200, "degraded", upgraded)
    Path(hashrange.__file__).unlink()
    assert ask(url, "/health")[1]["cause"].startswith("no version is installed")


def test_a_draining_server_says_so(database: Database) -> None:
    async def health() -> int:
        loop = asyncio.get_running_loop()
        wire = Wire(region="us-east-1", account_id="000000000000")
        plane = Plane(database, wire, Frames(0), ServerSettings(), loop.call_soon)
        plane.draining = True
        subject = Subject(database, plane, lambda: asyncio.sleep(0))
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "path": "/health",
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
        }
        await plane_of(subject)(scope, receive, send)
        return int(sent[0]["status"])

    assert asyncio.run(health()) == 503


@pytest.mark.once
@pytest.mark.parametrize("path", ["/v1/tables", "/metrics"])
def test_many_tables_are_shown_between_requests(
    url: str, path: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"table{n:03}" for n in range(2 * TABLES_PER_PAGE + 1)]
    for name in names:
        database.execute("CreateTable", CREATE | {"TableName": name})
    reads: list[int] = []
    page_of = overview.tables

    def counted(*arguments: Any) -> list[dict[str, Any]]:
        page = page_of(*arguments)
        reads.append(len(page))
        return page

    monkeypatch.setattr(overview, "tables", counted)
    shown = ask(url, path)[1]
    # No read, which holds the event loop, is of more than a page.
    assert reads == [TABLES_PER_PAGE, TABLES_PER_PAGE, 1, 0]
    if path == "/v1/tables":
        assert [table["name"] for table in shown["tables"]] == names
    else:
        assert [name for name in names if f'{{table="{name}"}}' in shown] == names


class Timers:
    """A loop's timers, which end when the test says so."""

    def __init__(self) -> None:
        self.pending: dict[object, Callable[[], None]] = {}

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Any:
        handle = Mock()
        self.pending[handle] = callback
        handle.cancel = lambda: self.pending.pop(handle, None)
        return handle

    def expire(self) -> None:
        for callback in tuple(self.pending.values()):
            callback()


def admin_connection(database: Database) -> tuple[application.AdminConnection, Timers, Mock]:
    wire = Wire(region="us-east-1", account_id="000000000000")
    plane = Plane(database, wire, Frames(START), ServerSettings(), lambda _: None)

    async def settle() -> None:
        pass

    config = load(Subject(database, plane, settle)).config
    timers, transport = Timers(), Mock()
    transport.is_closing.return_value = False
    transport.get_extra_info.return_value = None
    connection = application.AdminConnection(config, ServerState(), {}, _loop=cast(Any, timers))
    connection.connection_made(transport)
    return connection, timers, transport


@pytest.mark.parametrize("sent", [b"", b"GET /hea", b"GET /health HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_connection_without_a_request_is_cut_off(sent: bytes, database: Database) -> None:
    connection, timers, transport = admin_connection(database)
    if sent:
        connection.data_received(sent)
    timers.expire()
    transport.abort.assert_called_once_with()


def test_a_client_that_takes_no_answer_is_cut_off(database: Database) -> None:
    connection, timers, transport = admin_connection(database)
    connection.cycle = Mock(response_complete=False)
    connection.on_message_complete()
    connection.pause_writing()
    # A further request does not give it more time.
    connection.on_message_complete()
    timers.expire()
    transport.abort.assert_called_once_with()


def test_a_client_that_takes_its_answer_goes_on(database: Database) -> None:
    connection, timers, transport = admin_connection(database)
    connection.cycle = Mock(response_complete=False)
    connection.on_message_complete()
    connection.pause_writing()
    connection.resume_writing()
    assert not timers.pending
    # An answer may be complete, but for its last bytes on the way.
    connection.pause_writing()
    connection.cycle.response_complete = True
    connection.resume_writing()
    timers.expire()
    transport.abort.assert_called_once_with()


def test_a_request_may_take_its_time_and_the_next_has_a_deadline(database: Database) -> None:
    async def run() -> None:
        connection, timers, transport = admin_connection(database)
        loop = asyncio.get_running_loop()
        timers.create_task = loop.create_task  # type: ignore[attr-defined]
        connection.data_received(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        # It has not run yet: nothing measures its time.
        assert not timers.pending
        await asyncio.wait(set(connection.tasks))
        assert b"200 OK" in transport.write.call_args_list[0].args[0]
        timers.expire()
        transport.abort.assert_called_once_with()
        connection.connection_lost(None)
        assert not timers.pending

    with asyncio.Runner() as runner:
        runner.run(run())


def test_the_items_that_an_import_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_pages, "ERRORS_PER_PAGE", 2)
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket" / "a.json").write_bytes(b'{"Item":{"other":{"S":"x"}}}\n' * 3)
    database = Database(MemoryEngine(), settings=Settings(s3_dir=str(tmp_path)))
    request = {
        "S3BucketSource": {"S3Bucket": "bucket"},
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": CREATE,
    }
    arn = database.execute("ImportTable", request)["ImportTableDescription"]["ImportArn"]
    path = f"/v1/imports/{arn.rpartition('/')[2]}/errors"
    database.settle()
    listening = bind_admin(0)
    with running(database, admin=listening):
        _, first = ask(listening.url, path)
        assert [one["itemS3Pointer"]["itemIndex"] for one in first["errors"]] == [0, 1]
        _, rest = ask(listening.url, f"{path}?after={first['after']}")
        assert [one["itemS3Pointer"]["itemIndex"] for one in rest["errors"]] == [2]
        assert "after" not in rest
        assert ask(listening.url, "/v1/imports/0-0/errors") == (200, {"errors": []})
    database.close()
