"""`hashrange clock` and the clock's options of `hashrange serve`, as a person or a script uses them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click
import orjson
import pytest
from click.testing import CliRunner, Result

from hashrange.cli import clock as clock_command
from hashrange.cli import logs, main
from hashrange.cli.admin import bind_admin
from hashrange.cli.serving import serve as serving
from hashrange.clock import SystemClock, VirtualClock
from hashrange.database import Database
from hashrange.server import Admin, running
from hashrange.storage.memory import MemoryEngine

START = 1_767_225_600.0  # 2026-01-01


def clock(*arguments: str, url: str) -> Result:
    return CliRunner().invoke(
        main, ["clock", *arguments], prog_name="hashrange", env={"HASHRANGE_ADMIN_URL": url}
    )


@pytest.fixture
def url() -> Iterator[str]:
    listening = bind_admin(0)
    with running(Database(MemoryEngine(), clock=VirtualClock(START, frozen=True)), admin=listening):
        yield listening.url


def test_the_clock_is_changed(url: str) -> None:
    for arguments, output in (
        (["show"], "2026-01-01T00:00:00.000Z  frozen\n"),
        (["advance", "7d"], "2026-01-08T00:00:00.000Z  frozen\n"),
        (["set", "2027-01-01"], "2027-01-01T00:00:00.000Z  frozen\n"),
        (["freeze", "--at", "1000"], "1970-01-01T00:16:40.000Z  frozen\n"),
        (["freeze"], "1970-01-01T00:16:40.000Z  frozen\n"),
    ):
        result = clock(*arguments, url=url)
        assert (result.exit_code, result.stdout) == (0, output)
    assert clock("resume", url=f"{url}/").stdout.endswith("Z  running\n")


def test_wrong_times_are_explained(url: str) -> None:
    result = clock("set", "yesterday", url=url)
    assert result.exit_code == 1
    assert result.stderr == (
        f"Server: admin plane {url}\n"
        "Error: 'yesterday' is not a time, as 2026-01-31T12:00:00Z, 1769860800, 10m (ago) and now are\n"
    )
    for nowhere in ("http://127.0.0.1:1", "nonsense"):
        result = clock("show", url=nowhere)
        assert result.exit_code == 1
        assert nowhere in result.stderr
        assert "--admin-url" in result.stderr


def test_a_servers_endpoint_is_no_admin_url() -> None:
    with running(Database(MemoryEngine())) as endpoint:
        for command in ("show", "resume"):
            result = clock(command, url=endpoint)
            assert result.exit_code == 1
            assert "its admin URL?" in result.stderr


def test_the_machines_clock() -> None:
    listening = bind_admin(0)
    with running(Database(MemoryEngine()), admin=listening):
        assert clock("show", url=listening.url).stdout.endswith("Z  the machine's clock\n")
        result = clock("freeze", url=listening.url)
    assert result.exit_code == 1
    assert "--virtual-clock" in result.stderr


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Database, dict[str, Any]]]:
    """What `hashrange serve` hands to the server."""
    calls: list[tuple[Database, dict[str, Any]]] = []

    def serve(database: Database, **options: Any) -> None:
        admin = options["admin"]
        options["admin_port"] = admin.port if admin is not None else None
        calls.append((database, options))

    monkeypatch.setattr(serving, "serve", serve)
    monkeypatch.setattr(logs, "configure", lambda *_: None)
    return calls


def serve(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["serve", "--memory", *arguments], prog_name="hashrange")


def test_the_clock_is_the_machines_unless_asked(seen: list[tuple[Database, dict[str, Any]]]) -> None:
    assert serve("--port", "0").exit_code == 0
    assert isinstance(seen[0][0].clock, SystemClock)


@pytest.mark.parametrize("options", [(), ("--virtual-clock",)])
def test_a_virtual_clock_starts_when_told(
    options: tuple[str, ...], seen: list[tuple[Database, dict[str, Any]]]
) -> None:
    assert serve("--port", "0", "--virtual-clock-start", "2026-01-01", *options).exit_code == 0
    clock = seen[0][0].clock
    assert isinstance(clock, VirtualClock)
    assert not clock.frozen
    assert 0 <= clock.now() - START < 3_600


def test_a_start_that_is_no_time() -> None:
    result = serve("--virtual-clock-start", "soon")
    assert result.exit_code == 2
    assert "'soon' is not a time" in result.stderr


@pytest.mark.parametrize(
    ("options", "port"),
    [
        (["--port", "0", "--admin-port", "9000"], 9000),
        (["--port", "7000"], 7100),
        (["--port", "0"], 0),
        (["--port", "65500"], 0),
    ],
)
def test_where_the_admin_port_is(
    options: list[str],
    port: int,
    seen: list[tuple[Database, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def bind(port: int, host: str, token: str, **console: Any) -> Admin:
        assert (host, token) == ("127.0.0.1", "")
        assert console == {"read_only": False, "certificates": None}
        asked.append(port)
        return bind_admin(0)

    monkeypatch.setattr(serving, "bind_admin", bind)
    assert serve(*options).exit_code == 0
    assert asked == [port]
    assert seen[0][1]["admin_port"]


def test_there_need_be_no_admin_port(seen: list[tuple[Database, dict[str, Any]]]) -> None:
    assert serve("--admin-port", "0").exit_code == 0
    assert seen[0][1]["admin"] is None


def test_a_taken_admin_port(seen: list[tuple[Database, dict[str, Any]]]) -> None:
    with contextlib.closing(bind_admin(0)) as taken:
        port = taken.port
        # The usual one gives way, the one asked for does not.
        assert serve("--port", str(port - 100)).exit_code == 0
        assert seen[0][1]["admin_port"] != port
        result = serve("--port", "0", "--admin-port", str(port))
    assert result.exit_code == 1
    assert f"Port {port} on 127.0.0.1 is in use" in result.stderr
    assert "--admin-port (0: none)" in result.stderr


def test_a_real_server_on_a_virtual_clock() -> None:
    command = [sys.executable, "-m", "hashrange", "serve", "--memory", "--port", "0", "--log-format", "json"]
    options = ["--virtual-clock-start", "2026-01-01"]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, env=os.environ) as process:
        assert process.stderr is not None
        try:
            started = orjson.loads(process.stderr.readline())
            assert started["clock"].startswith("2026-01-01T00:")
            frozen = clock("freeze", "--at", "2026-02-01", url=started["admin"])
            assert frozen.stdout == "2026-02-01T00:00:00.000Z  frozen\n"
            assert clock("show", url=started["admin"]).stdout == frozen.stdout
            process.terminate()
            assert [orjson.loads(line)["event"] for line in process.stderr] == ["stopping", "stopped"]
            assert process.wait(10) == 0
        finally:
            process.kill()


def test_the_options_have_help() -> None:
    for name, command in clock_command.command.commands.items():
        assert command.help, name
        assert all(not isinstance(one, click.Option) or one.help for one in command.params), name
