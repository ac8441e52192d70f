"""The command line: what a person or a script sees of it."""

from __future__ import annotations

import logging
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from http.client import HTTPConnection
from importlib.machinery import ExtensionFileLoader, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import FunctionType
from typing import Any
from unittest.mock import ANY
from urllib.parse import urlsplit

import click
import orjson
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from hashrange import __version__, compiled, form
from hashrange.cli import _all, logs, main
from hashrange.cli.serving import options as serve_options
from hashrange.cli.serving import serve as serving
from hashrange.cli.serving import welcome
from hashrange.database import Database
from hashrange.server import ServerSettings
from hashrange.settings import Settings
from worlds import create


def invoke(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="hashrange", env=environment)


@contextmanager
def served(
    *arguments: str, cwd: Path, **environment: str
) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """A `hashrange serve` process and its line about having started."""
    command = [sys.executable, "-m", "hashrange", "serve", "--port", "0", "--log-format", "json", *arguments]
    with subprocess.Popen(command, cwd=cwd, stderr=subprocess.PIPE, env=os.environ | environment) as process:
        assert process.stderr is not None
        try:
            yield process, orjson.loads(process.stderr.readline())
        finally:
            process.kill()


def stop(process: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    process.terminate()
    assert process.stderr is not None
    lines = [orjson.loads(line) for line in process.stderr]
    assert process.wait(10) == 0
    return lines


def get(endpoint_url: str) -> bytes:
    parts = urlsplit(endpoint_url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    connection.request("GET", "/")
    body = connection.getresponse().read()
    connection.close()
    return body


def test_the_help_names_every_command() -> None:
    for arguments in ((), ("--help",), ("-h",)):
        result = invoke(*arguments)
        assert all(command in result.output for command in ("serve", "check", "completion"))
    version, rings, _ = invoke("--version").output.split("\n")
    assert version == f"hashrange {__version__} (hot path {form()})"
    assert rings.startswith("rings: ")


def test_the_help_of_a_group_tells_each_command_in_a_whole_sentence() -> None:
    context = click.Context(main)
    groups = [name for name in _all() if isinstance(main.get_command(context, name), click.Group)]
    assert {"as-of", "clock", "faults"} <= set(groups)
    for name in groups:
        listed = invoke(name, "--help").output.partition("Commands:\n")[2].partition("\n\n")[0]
        assert listed, name
        for line in listed.splitlines():
            assert re.fullmatch(r"  (?:[a-z]+ +[A-Z].*[^.]\.| {4,}\S.*)", line), line


def test_the_help_of_serve_cuts_no_text_within_a_quotation() -> None:
    for parameter in serving.command.params:
        assert isinstance(parameter, click.Option)
        text = serve_options.shortened(parameter)
        assert text.count("`") % 2 == 0, text
        assert text.count("(") == text.count(")"), text


def test_an_unknown_command_is_a_usage_error() -> None:
    for arguments, said in (
        (["swerve"], "No such command 'swerve'. Did you mean 'serve'?"),
        (["srve", "--port", "0"], "No such command 'srve'. Did you mean 'serve'?"),
        (["undo"], "No such command 'undo'."),
    ):
        result = invoke(*arguments)
        assert result.exit_code == 2
        assert said in result.stderr


def test_the_help_of_serve_is_short_and_begins_with_the_everyday_options() -> None:
    text = invoke("serve", "--help").output
    assert len(text.splitlines()) < 80
    section, rest = text.partition("Options:\n")[2].split("\n\n", 1)
    names = [line.split()[0] for line in section.splitlines() if line.startswith("  -")]
    everyday = [f"--{name.replace('_', '-')}" for name in serve_options.EVERYDAY]
    assert names[:-1] == [name for name in everyday if name in names]  # (the last is --help)
    assert set(everyday) - set(names) <= {"--postgres", "--auth", "--users"}
    assert len(everyday) == 20
    assert "`hashrange config show` lists all" in rest
    assert "docs/settings.md" in rest


def test_every_setting_is_an_option_with_a_help_text_and_a_variable() -> None:
    for settings in (ServerSettings, Settings):
        assert set(serve_options.field_texts(settings)) == {field.name for field in fields(settings)}
    text = invoke("serve", "--help").output
    options = text.partition("Options:")[2].partition("Examples:")[0]
    for parameter in serving.command.params:
        assert isinstance(parameter, click.Option)
        assert parameter.help
        if parameter.name != "help":
            assert (f"\n  {parameter.opts[0]} " in options) == (parameter.name in serve_options.EVERYDAY)
            assert parameter.envvar == f"HASHRANGE_{(parameter.name or '').upper()}"
    assert "hashrange-data" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--port", "99999"), "'99999' is not a whole number from 0 to 65535"),
        (("--port", "abc"), "'abc' is not a whole number from 0 to 65535"),
        (("--admin-port", "8100.5"), "'8100.5' is not a whole number from 0 to 65535"),
        (("--headers-max", "0"), "'0' is not a whole number from 1;"),
        (("--sweep-seconds", "soon"), "'soon' is not a duration from 0s;"),
        (("--sweep-seconds", "nan"), "'nan' is not a duration from 0s;"),
        (("--body-bytes-max", "1MB"), "'1MB' is not a size from 1B;"),
        (("--region", "Mars 1"), "'Mars 1' is not a region"),
        (("--account-id", "7"), "'7' is not an account id: 12 digits"),
        (("--memory", "--data-dir", "x"), "give one of them"),
        (("--log-format", "xml"), "'xml' is not one of"),
        (("--memory", "--allow-host", "http://db"), "'http://db' is not a host name"),
        (("--memory", "--allow-origin", "localhost:3000"), "'localhost:3000' is not the origin"),
        (("--memory", "--admin-host", "0.0.0.0"), "Give it a token: --admin-token"),
        (("--memory", "--admin-token", "short"), "at least 16 characters"),
    ],
)
def test_a_wrong_value_is_named(arguments: tuple[str, ...], message: str) -> None:
    result = invoke("serve", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_server_starts_serves_and_stops(tmp_path: Path) -> None:
    with served(cwd=tmp_path) as (process, started):
        endpoint_url = started.pop("endpoint")
        assert started.pop("time").endswith("Z")
        assert started.pop("admin").startswith("http://127.0.0.1:")
        assert started.pop("descriptors_max") > started.pop("connections_max") > 0
        assert started == {
            "level": "info",
            "event": "started",
            "engine": "embedded",
            "data": "hashrange-data",
            "version": __version__,
            "hot_path": form(),
        }
        assert get(endpoint_url) == b"healthy: dynamodb.us-east-1.amazonaws.com "
        assert (tmp_path / "hashrange-data").is_dir()
        lines = stop(process)
        assert [line["event"] for line in lines] == ["stopping", "stopped"]
        assert lines[0]["reason"] == "SIGTERM"


@pytest.mark.parametrize(("host", "warns"), [("0.0.0.0", True), ("127.0.0.1", False), ("localhost", False)])
def test_a_server_that_other_machines_reach_says_so(tmp_path: Path, host: str, warns: bool) -> None:
    given = {"HASHRANGE_MEMORY": "1", "HASHRANGE_HOST": host, "HASHRANGE_INSECURE": "1"}
    with served(cwd=tmp_path, **given) as (process, _):
        lines = [line for line in stop(process) if line["level"] == "warning"]
    text = "anyone who can reach the port can read and change all data"
    assert lines == ([{"time": ANY, "level": "warning", "event": text, "host": host}] if warns else [])
    fields = {"version": "1", "endpoint": "", "engine": "", "data": ""}
    secrets = welcome.Secrets({"console": "http://127.0.0.1:8100/console?token=x"})
    said = welcome.welcome(fields, "us-east-1", secrets, warns=warns)
    assert ("can read and change all data" in said) == warns
    assert "AWS_ACCESS_KEY_ID=any" in said


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_welcome_names_the_variable_by_which_programs_trust_a_server(scheme: str) -> None:
    fields = {"version": "1", "endpoint": f"{scheme}://localhost:8000", "engine": "", "data": ""}
    said = welcome.welcome(fields, "us-east-1", welcome.Secrets(), warns=False)
    assert ("AWS_CA_BUNDLE=FILE" in said) == (scheme == "https")


def test_the_welcome_of_a_strict_server_asks_for_a_key() -> None:
    fields = {"version": "1", "endpoint": "", "engine": "", "data": ""}
    said = welcome.welcome(fields, "us-east-1", welcome.Secrets(token="a-token"), warns=False, strict=True)
    assert "token      a-token (" in said
    assert "AWS_ACCESS_KEY_ID=YOUR-KEY" in said
    assert "=any" not in said


def test_options_come_from_the_environment(tmp_path: Path) -> None:
    with served(cwd=tmp_path, HASHRANGE_MEMORY="1", HASHRANGE_REGION="eu-west-3") as (process, started):
        assert started["data"] == "memory"
        assert get(started["endpoint"]) == b"healthy: dynamodb.eu-west-3.amazonaws.com "
        stop(process)
    assert list(tmp_path.iterdir()) == []


def test_a_data_directory_in_use_is_refused(tmp_path: Path) -> None:
    with served("--data-dir", "data", cwd=tmp_path) as (process, _):
        result = invoke("serve", "--port", "0", "--data-dir", str(tmp_path / "data"))
        assert result.exit_code == 1
        assert str(tmp_path / "data") in result.stderr
        assert "in use" in result.stderr
        stop(process)


def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    result = invoke("serve", "--port", "0", "--data-dir", str(tmp_path))
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert str(tmp_path) in result.stderr
    file = invoke("serve", "--port", "0", "--data-dir", str(tmp_path / "letter.txt"))
    assert file.exit_code == 1


def files_below(folder: Path, store: Path) -> set[Path]:
    """What is below a folder, without the files of RocksDB if `store` was made before."""
    return {path for path in folder.rglob("*") if (store / "rocks") not in path.parents}


@pytest.mark.parametrize("was_there", ["nothing", "a folder", "a store"])
@pytest.mark.parametrize(
    "options",
    [
        ["--port", "{taken}"],
        ["--admin-port", "{taken}"],
        ["--host", "203.0.113.9", "--insecure"],
        ["--tls-cert", "none.pem", "--tls-key", "none.pem"],
        ["--auth", "strict", "--users", "none.yaml"],
        ["--auth", "strict", "--key-file", "none"],
        ["--audit-log", "none/audit.log"],
        ["--record", "none/monday"],
        ["--record", "monday", "--port", "{taken}"],
        ["--audit-log", "audit.log", "--admin-port", "{taken}"],
        ["--prices", "none.toml"],
        ["--requests-burst", "3"],
    ],
    ids=" ".join,
)
def test_a_server_that_fails_leaves_nothing_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], was_there: str
) -> None:
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "above" / "data"
    if was_there == "a store":
        data.parent.mkdir()
        Database.open(data).close()
    elif was_there == "a folder":
        data.mkdir(parents=True)
    before = files_below(tmp_path, data)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        named = [option.format(taken=port) for option in options]
        result = invoke("serve", "--port", "0", "--data-dir", str(data), *named)
    assert result.exit_code in (1, 2), result.output
    assert files_below(tmp_path, data) == before
    if was_there == "a store":
        Database.open(data).close()


def test_a_port_in_use_is_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = invoke("serve", "--memory", "--port", port)
    assert result.exit_code == 1
    assert f"Port {port} on 127.0.0.1 is in use" in result.stderr
    assert "--port" in result.stderr


@pytest.mark.parametrize(
    ("host", "message"), [("no.such.host.invalid", "not known"), ("192.0.2.1", "not an address")]
)
def test_a_host_that_is_not_ours_is_refused(host: str, message: str) -> None:
    result = invoke("serve", "--memory", "--port", "0", "--host", host, "--insecure")
    assert result.exit_code == 1
    assert message in result.stderr
    assert host in result.stderr


def test_people_get_a_welcome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        serving, "serve", lambda database, **options: options["started"]("http://127.0.0.1:1")
    )
    result = invoke("serve", "--memory", "--region", "eu-north-1")
    assert result.exit_code == 0
    exported = dict(
        pair.split("=")
        for line in result.stdout.splitlines()
        if line.startswith("    export ")
        for pair in line.split()[1:]
    )
    assert exported == {
        "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:1",
        "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": "http://127.0.0.1:1",
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_REGION": "eu-north-1",
        "AWS_DEFAULT_REGION": "eu-north-1",
    }
    assert " INFO started endpoint=http://127.0.0.1:1 engine=memory data=memory" in result.stderr
    admin = re.search(r"admin=(\S+)", result.stderr)
    assert admin is not None
    for line in ("endpoint   http://127.0.0.1:1", "data       in memory", f"admin      {admin[1]}"):
        assert line in result.stdout
    assert f"hot path   {form()}" in result.stdout
    quiet = invoke("serve", "--memory", "--log-format", "json")
    assert quiet.stdout == ""


def test_the_form_of_the_hot_path_is_reported_correctly(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled() is not isinstance(Database.execute, FunctionType)
    for loader, is_compiled in ((ExtensionFileLoader, True), (SourceFileLoader, False)):
        spec = ModuleSpec("hashrange.database", loader("hashrange.database", "somewhere"))
        monkeypatch.setattr("hashrange.find_spec", lambda name, spec=spec: spec)
        assert compiled() is is_compiled
        assert form() == ("compiled" if is_compiled else "interpreted")


def test_a_server_warns_of_tables_that_no_caller_finds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        serving, "serve", lambda database, **options: options["started"]("http://127.0.0.1:1")
    )
    with Database.open(tmp_path / "data") as database:
        create(database, "pages", "url")
    started = ("serve", "--data-dir", str(tmp_path / "data"))
    assert "WARNING" not in invoke(*started).stderr
    assert (
        'WARNING the store holds tables that no caller finds tables=1 owners="all callers" '
        'remedy="start the server without --separate-accounts and without --separate-regions to find them"\n'
    ) in invoke(*started, "--separate-accounts").stderr


def test_requests_are_logged_if_wanted_and_only_then(tmp_path: Path) -> None:
    for options, wanted in (((), False), (("--log-requests",), True), (("--log-level", "debug"), True)):
        with served("--memory", *options, cwd=tmp_path) as (process, started):
            get(started["endpoint"])
            lines = [line for line in stop(process) if line["event"] == "request"]
        assert [line["status"] for line in lines] == ([200] if wanted else [])


def record_of(level: int, message: str, created: float) -> logging.LogRecord:
    record = logging.LogRecord("x", level, "x.py", 1, message, (), None)
    record.created = created
    record.fields = {"n": 1}
    return record


def test_lines_that_clients_provoke_are_bounded_and_counted() -> None:
    bound = logs.Bound()
    passed = [bound.filter(record_of(logging.WARNING, "odd", 7.0)) for _ in range(1_000)]
    assert passed == [True] * logs.LINES_MAX + [False] * (1_000 - logs.LINES_MAX)
    assert bound.filter(record_of(logging.WARNING, "other", 7.5))
    assert all(bound.filter(record_of(logging.DEBUG, "odd", 7.5)) for _ in range(1_000))
    later = [record_of(logging.WARNING, "odd", 8.0) for _ in range(2)]
    assert all(bound.filter(record) for record in later)
    assert [record.__dict__["fields"] for record in later] == [
        {"n": 1, "not_logged": 1_000 - logs.LINES_MAX},
        {"n": 1},
    ]


def test_what_a_client_sends_cannot_forge_a_line() -> None:
    record = record_of(logging.WARNING, "odd", 0.0)
    record.fields = {"path": "/\r\n1970-01-01 INFO all is well\x1b[2K", "tab": "a\tb", "plain": "a/b"}
    line = logs.TextFormatter().format(record)
    assert line.isprintable()
    assert line.endswith("plain=a/b")


def test_settings_reach_the_server_and_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(serving, "serve", lambda database, **options: seen.extend((database, options)))
    options = [
        "--idle-seconds-max",
        "7",
        "--create-seconds",
        "0.5",
        "--ttl-changes-limited",
        "--gsi-delay-seconds",
        "2",
    ]
    result = invoke("serve", "--memory", *options)
    assert result.exit_code == 0
    assert seen[0].settings.create_seconds == 0.5
    assert seen[0].settings.gsi_delay_seconds == 2
    assert seen[0].settings.ttl_changes_limited
    assert seen[1]["settings"].idle_seconds_max == 7
    assert seen[1]["settings"].pipeline_max == ServerSettings().pipeline_max


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_check_of_what_is_no_data_directory(tmp_path: Path) -> None:
    assert invoke("check", str(tmp_path / "nothing")).exit_code == 2
    empty = invoke("check", str(tmp_path))
    assert empty.exit_code == 2
    assert "is empty" in empty.stderr
    (tmp_path / "letter.txt").write_text("dear")
    foreign = invoke("check", str(tmp_path))
    assert foreign.exit_code == 2
    assert str(tmp_path) in foreign.stderr


def test_check_of_a_good_directory(tmp_path: Path) -> None:
    with served("--data-dir", "data", cwd=tmp_path) as (process, _):
        assert invoke("check", str(tmp_path / "data")).exit_code == 2  # in use
        stop(process)
    result = invoke("check", str(tmp_path / "data"))
    assert result.exit_code == 0
    assert "no damage" in result.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    result = invoke("completion", shell)
    assert result.exit_code == 0
    assert "_HASHRANGE_COMPLETE" in result.output


def test_completion_offers_commands_and_options() -> None:
    completion = ShellComplete(main, {}, "hashrange", "_HASHRANGE_COMPLETE")
    assert [item.value for item in completion.get_completions([], "")] == sorted(_all())
    assert [item.value for item in completion.get_completions([], "se")] == ["serve"]
    assert "--data-dir" in [item.value for item in completion.get_completions(["serve"], "--d")]
    assert [item.value for item in completion.get_completions(["completion"], "z")] == ["zsh"]


def test_log_lines() -> None:
    record = logging.makeLogRecord(
        {
            "msg": "started",
            "levelname": "INFO",
            "created": 0.5,
            "fields": {"a": 1, "b": "x y", "c": Path("d")},
        }
    )
    assert logs.TextFormatter().format(record) == '1970-01-01T00:00:00.500Z INFO started a=1 b="x y" c=d'
    assert orjson.loads(logs.JsonFormatter().format(record)) == {
        "time": "1970-01-01T00:00:00.500Z",
        "level": "info",
        "event": "started",
        "a": 1,
        "b": "x y",
        "c": "d",
    }


def test_log_lines_with_a_traceback() -> None:
    try:
        raise ZeroDivisionError("x")
    except ZeroDivisionError:
        record = logging.makeLogRecord(
            {"msg": "internal error", "levelname": "ERROR", "exc_info": sys.exc_info()}
        )
    assert "ZeroDivisionError: x" in logs.TextFormatter().format(record).splitlines()[-1]
    assert "ZeroDivisionError: x" in orjson.loads(logs.JsonFormatter().format(record))["traceback"]
