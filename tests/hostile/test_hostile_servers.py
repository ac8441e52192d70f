"""Whatever a server answers, each command that speaks to one ends with a line that names the server."""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import boto3
import click
import orjson
import pytest
from click.testing import CliRunner

from hashrange.cli import main
from hashrange.cli.health import disk
from hashrange.client import connect
from hashrange.database import Database
from hashrange.protocol import ADMIN_HEADER
from hashrange.rings import rings
from worlds import table_of

KEY = '{"pk": {"S": "a"}}'
ORDERS: Any = table_of("orders", "pk")
# All that the commands read of answers.
MEMBERS = (
    "Answer", "Attributes", "Counts", "Differences", "Item", "Items", "LastEvaluatedKey", "Next", "Records",
    "Responses", "ShardIterator", "StreamDescription", "Streams", "Table", "TableDescription", "TableNames",
    "Tags", "TimeToLiveDescription", "Undone", "UnprocessedItems", "Versions", "backup", "backups",
    "checkpoint", "costs", "deleted", "epoch_seconds", "error", "faults", "heat", "key", "keys", "link",
    "recording", "secret", "status", "table", "tables", "time",
)  # fmt: skip
COMMANDS = {
    "as-of get": ["orders", "2026-01-01", KEY],
    "as-of query": ["orders", "2026-01-01", "{}"],
    "as-of scan": ["orders", "2026-01-01"],
    "as-of versions": ["orders", KEY],
    "as-of diff": ["orders", "10m"],
    "as-of undo": ["orders", "10m", "--all", "--yes"],
    "backup create": ["--all"],
    "backup list": [],
    "clock show": [],
    "clock freeze": [],
    "clock set": ["2026-01-01"],
    "clock advance": ["1d"],
    "clock resume": [],
    "console": [],
    "copy": ["data", "copied"],
    "costs show": [],
    "lab eventual start": ["1s"],
    "lab eventual stop": [],
    "lab partitions": ["table"],
    "lab show": [],
    "lab throttling reset": ["--table", "table"],
    "lab throttling start": [],
    "lab throttling stop": [],
    "costs start": [],
    "costs stop": [],
    "costs advice": [],
    "costs load": [],
    "costs compare": [],
    "doctor": [],
    "export": ["orders", "exported.json"],
    "faults list": [],
    "faults add": ["PutItem throttle"],
    "faults remove": ["1"],
    "faults clear": [],
    "healthcheck": [],
    "import": ["orders", "items.jsonl"],
    "key create": ["--root"],
    "key list": [],
    "key disable": ["AKIA"],
    "key enable": ["AKIA"],
    "key rotate": ["AKIA"],
    "key delete": ["AKIA", "--yes"],
    "load": ["a", "--limit", "1", "--items", "1"],
    "pull": ["orders", "--limit", "10"],
    "record start": ["monday"],
    "sql": ["select * from orders"],
    "record show": [],
    "record stop": [],
    "replica promote": [],
    "replay": ["monday.hashrange", "--create-tables", "--strict"],
    "restore": ["--all"],
    "stream tail": ["orders", "--until-caught-up"],
    "top": ["--once", "--interval", "0.1s"],
    "trigger run": ["--table", "orders", "json:dumps"],
}


# What the server answers; None: it keeps the connection, and says nothing.
ANSWERS: dict[str, bytes | None] = {
    "silence": None,
    "nothing": b"",
    "no HTTP": b"\x16\x03\x01\x00\xff" * 20,
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "half a body": b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"Table": {',
    "bad chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "bad length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
    "redirect": b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
    **{
        name: b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)
        for name, status, body in (
            ("HTML", b"200 OK", b"<html><body>Welcome to nginx!</body></html>"),
            ("an error in HTML", b"500 Internal Server Error", b"<html>Oops</html>"),
            ("an error in a list", b"400 Bad Request", b'["no"]'),
            ("no text", b"200 OK", b"\xff\xfe\x00"),
            ("null", b"200 OK", b"null"),
            ("a list", b"200 OK", b"[1, 2]"),
            ("an empty object", b"200 OK", b"{}"),
            ("depth", b"200 OK", b"[" * 100_000),
            ("members of other types", b"200 OK", orjson.dumps(dict.fromkeys(MEMBERS, 7))),
            ("empty members", b"200 OK", orjson.dumps({member: {} for member in MEMBERS})),
        )
    },
}  # fmt: skip


@dataclass
class Hostile:
    """A server that gives the same answer to everybody. With `honest`, it says to HEAD that it is a server of
    Hashrange, and has its admin plane at the same address."""

    listening: socket.socket
    answer: bytes | None = None
    honest: bool = True
    kept: list[socket.socket] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listening.getsockname()[1]}"

    def serve(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                self._answer(self.listening.accept()[0])

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # it is the client that goes first
            request = connection.recv(1 << 16)
            answer = self.answer
            if self.honest and request.startswith(b"HEAD"):
                answer = b"HTTP/1.1 200 OK\r\n%b: %b\r\n\r\n" % (ADMIN_HEADER, self.url.encode())
            if answer is None:
                self.kept.append(connection)
                return
            connection.sendall(answer)
        connection.close()  # a reset where something was not read


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hostile]:
    for name in ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL", "HASHRANGE_ADMIN_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.chdir(tmp_path)
    Path("items.jsonl").write_text('{"Item": {"pk": {"S": "a"}}}\n')
    # Nobody waits: neither for an answer nor before another attempt.
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    settimeout = socket.socket.settimeout

    def impatient(self: socket.socket, seconds: float | None) -> None:
        settimeout(self, None if seconds is None else min(seconds, 0.02))

    monkeypatch.setattr(socket.socket, "settimeout", impatient)
    # Nor for the network, in which `pull` would look for AWS.
    getaddrinfo = socket.getaddrinfo

    def near(host: Any, *given: Any, **named: Any) -> Any:
        if host not in ("127.0.0.1", "localhost"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return getaddrinfo(host, *given, **named)

    monkeypatch.setattr(socket, "getaddrinfo", near)
    if "lab" in rings().installed:
        monkeypatch.setattr("hashrange_lab.loads.sending.SECONDS_MAX", 0.02)
    monkeypatch.setattr(disk, "SYNCS", 1)
    monkeypatch.setattr(boto3, "Session", functools.cache(boto3.Session))  # half of the time
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Hostile(listening)
        thread = threading.Thread(target=server.serve)
        thread.start()
        yield server
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in server.kept:
            connection.close()


def ended(command: str, hostile: Hostile, *, may_pass: bool) -> list[str]:
    """What is wrong with the end of a command."""
    result = CliRunner().invoke(main, [*command.split(), "--endpoint-url", hostile.url, *COMMANDS[command]])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return [repr(result.exception), result.output]
    wrong = [] if result.exit_code == 1 or may_pass else [f"it exits with {result.exit_code}"]
    wrong += [] if hostile.url in result.output or command == "doctor" else ["the server is not named"]
    wrong += [] if len(result.output.strip().splitlines()[-1]) < 600 else ["the line is long"]
    return [*wrong, result.output] if wrong else []


_THERE: Final = frozenset(main.list_commands(click.Context(main)))
"""The commands of the rings that are installed, and of the program."""


@pytest.mark.parametrize("command", [name for name in COMMANDS if name.split()[0] in _THERE])
def test_a_command_ends_with_a_line_that_names_the_server(hostile: Hostile, command: str) -> None:
    if command == "replay":
        record(Path("monday.hashrange"))
    with Database.open("data") if command == "copy" else contextlib.nullcontext():
        for kind, hostile.answer in ANSWERS.items():
            # An answer with the right members may be right.
            may_pass = "members" in kind or command == "doctor"
            assert (kind, ended(command, hostile, may_pass=may_pass)) == (kind, [])


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_plane_is_asked_only_of_a_server_that_has_one(hostile: Hostile, kind: str) -> None:
    hostile.answer, hostile.honest = ANSWERS[kind], False
    for command in _THERE & {"console", "doctor", "healthcheck"}:
        assert ended(command, hostile, may_pass=command == "doctor") == []


def record(path: Path) -> None:
    from hashrange_lab.recordings.recording import Recording

    with Database.in_memory() as database, Recording(database, path):
        client = connect(database)
        client.create_table(**ORDERS)
        client.put_item(TableName="orders", Item={"pk": {"S": "a"}})


def test_no_command_is_left_out() -> None:
    def with_endpoints(command: click.Command, name: str) -> Iterator[str]:
        if isinstance(command, click.Group):
            with click.Context(command) as context:
                for inner in command.list_commands(context):
                    found = command.get_command(context, inner)
                    assert found is not None
                    yield from with_endpoints(found, f"{name} {inner}".strip())
        if any("--endpoint-url" in parameter.opts for parameter in command.params):
            yield name

    found = set(with_endpoints(main, ""))
    # mcp waits for a client's messages, whatever its server says.
    assert found - set(COMMANDS) == {"mcp"}, set(COMMANDS) - found
