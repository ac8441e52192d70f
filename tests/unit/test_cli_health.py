"""`hashrange doctor` and `hashrange healthcheck`: what they find, and what they say to do."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.cli.health import disk, healthcheck, installed, reachable
from hashrange.cli.health.findings import NOTE, OK, PROBLEM, Finding
from hashrange.database import Database
from hashrange.server import running
from serving import free_port

TOKEN = "a-token-of-enough-characters"
ROOT = Path(__file__).resolve().parents[2]
EXPORTED = {
    "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:8000",
    "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": "http://127.0.0.1:8000",
    "AWS_ACCESS_KEY_ID": "any",
    "AWS_SECRET_ACCESS_KEY": "any",
    "AWS_REGION": "us-east-1",
}


@pytest.fixture
def endpoint() -> Iterator[str]:
    with Database.in_memory() as database, running(database, admin=bind_admin(0)) as url:
        yield url


@pytest.fixture(autouse=True)
def _no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL", "HASHRANGE_HOST", "HASHRANGE_PORT"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: object, **environment: str | None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], env=environment)


def doctor(*arguments: object, **environment: str | None) -> tuple[int, dict[str, Finding]]:
    """The exit code of the command and its findings, by their parts."""
    result = run("doctor", *arguments, "--format", "json", **environment)
    found = [Finding(**orjson.loads(line)) for line in result.stdout.splitlines()]
    return result.exit_code, {finding.part: finding for finding in found}


def by_part(findings: Iterator[Finding]) -> dict[str, Finding]:
    return {finding.part: finding for finding in findings}


def test_all_is_well_with_a_running_server(endpoint: str, tmp_path: Path) -> None:
    environment = EXPORTED | {name: endpoint for name in EXPORTED if "ENDPOINT" in name}
    code, found = doctor("--data-dir", tmp_path / "data", **environment)
    assert code == 0
    assert found["server"] == Finding("server", OK, f"Hashrange answers at {endpoint}")
    assert found["health"].text.startswith("ok (")
    for part in ("python", "hashrange", "libraries", "data", "open files", "endpoint", "credentials"):
        assert found[part].state == OK, found[part]
    assert "any" not in found["credentials"].text
    assert not (tmp_path / "data").exists()
    assert list(tmp_path.iterdir()) == []


def test_the_text_has_a_line_for_each_finding_and_counts_them(tmp_path: Path) -> None:
    result = run("doctor", "--data-dir", tmp_path, "--endpoint-url", f"http://127.0.0.1:{free_port()}")
    states = re.findall(r"^(ok|note|problem) +\S", result.stdout, re.MULTILINE)
    assert result.stdout.splitlines()[-1] == f"no problems, {states.count('note')} notes."
    assert max(map(len, result.stdout.splitlines())) <= 110 or str(tmp_path) in result.stdout
    assert result.exit_code == 0


def test_nothing_is_left_in_a_data_directory_and_its_state_is_told(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    assert by_part(disk.findings(data))["data"].text == f"{data} is empty; the server can use it"
    with Database.open(data):
        before = sorted(data.rglob("*"))
        assert by_part(disk.findings(data))["data"] == Finding("data", OK, f"{data} is in use by a server")
        assert sorted(data.rglob("*")) == before
    found = by_part(disk.findings(data))["data"]
    assert (found.state, "no server has it open" in found.text) == (OK, True)


def test_a_folder_of_something_else_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    code, found = doctor("--data-dir", tmp_path)
    assert code == 1
    assert found["data"].state == PROBLEM
    assert "is not a data directory" in found["data"].text
    assert "--data-dir" in found["data"].remedy
    (tmp_path / "FORMAT").write_text("hashrange data 99\n")
    newer = by_part(disk.findings(tmp_path))["data"]
    assert (newer.state, "has format 99" in newer.text) == (PROBLEM, True)


def test_a_folder_that_is_not_writable_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # (the tests may run as root, who may write everywhere)
    monkeypatch.setattr("os.access", lambda path, mode: (path, mode) != (tmp_path, os.W_OK | os.X_OK))
    found = by_part(disk.findings(tmp_path / "data"))
    assert found["directory"].state == PROBLEM
    assert "syncs" not in found


@pytest.mark.parametrize(
    ("kind", "state", "text"),
    [
        ("ext4", OK, "ext4"),
        ("tmpfs", NOTE, "in memory"),
        ("nfs4", NOTE, "on another machine"),
        ("overlay", NOTE, "the layer of a container"),
    ],
)
def test_the_file_system_is_told(tmp_path: Path, kind: str, state: str, text: str) -> None:
    mounts = tmp_path / "mounts"
    data = tmp_path / "my data"
    data.mkdir()
    point = str(data.resolve()).replace(" ", "\\040")
    mounts.write_text(f"none / rootfs rw 0 0\n/dev/x {point} {kind} rw 0 0\nnone /elsewhere proc rw 0 0\n")
    found = by_part(disk.findings(data, mounts))["file system"]
    assert (found.state, text in found.text) == (state, True)
    assert disk.kind_of_file_system(data, tmp_path / "no mounts") == ""


@pytest.mark.parametrize(
    ("median", "state", "text"),
    [(0.000_01, NOTE, "faster than any disk"), (0.001, OK, "1.00 ms each"), (0.050, NOTE, "slow")],
)
def test_the_speed_of_the_disk_is_judged(median: float, state: str, text: str) -> None:
    found = disk.judged([median, median, median * 3])
    assert (found.state, text in found.text) == (state, True)
    assert bool(found.remedy) == (state == NOTE)


def test_the_disk_is_measured_within_bounds(tmp_path: Path) -> None:
    taken = disk.sync_seconds(tmp_path)
    assert 1 <= len(taken) <= disk.SYNCS
    assert min(taken) > 0
    assert list(tmp_path.iterdir()) == []


def test_every_library_of_the_package_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(installed.LIBRARIES) == {re.split(r"[><=;\[]", one)[0] for one in project["dependencies"]}
    monkeypatch.setitem(installed.LIBRARIES, "rocksdict", "no_such_module")
    code, found = doctor()
    assert code == 1
    assert found["libraries"].state == PROBLEM
    assert "rocksdict (No module named 'no_such_module')" in found["libraries"].text


def test_every_extra_for_users_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    brought = {
        extra: {re.split(r"[><=;\[]", one)[0].lower() for one in requirements}
        for extra, requirements in extras.items()
    }
    named = {extra: {one.lower() for one in modules} for extra, (modules, _) in installed.EXTRAS.items()}
    assert named == brought
    assert {f"extra {extra}" for extra in named} - {"extra zstd"} <= doctor()[1].keys()
    monkeypatch.setitem(sys.modules, "usearch", None)
    found = by_part(installed.findings())
    assert found["extra approximate"].text.startswith("not installed; usearch is needed for SearchVectors")
    assert found["extra vectors"].text.startswith("numpy ")


def test_what_is_left_of_a_distribution_that_is_not_installed_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the compiled modules of hashrange-postgres in the wheel of the server."""
    (tmp_path / "part_of_absent.py").write_text("raise SystemError('a result with an exception set')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(installed, "EXTRAS", {"absent": ({"absent": "part_of_absent"}, "a test")})
    assert doctor()[1]["extra absent"].text == "not installed; absent is needed for a test"


def test_the_environment_of_sdks_is_judged() -> None:
    def judged(**changes: str) -> dict[str, Finding]:
        environment = {name: value for name, value in (EXPORTED | changes).items() if value}
        return by_part(reachable.findings("aws", environment))

    assert {finding.state for finding in judged().values()} == {OK}
    assert judged(AWS_ENDPOINT_URL_DYNAMODB="")["endpoint"].state == NOTE
    assert judged(AWS_ENDPOINT_URL_DYNAMODB="", AWS_ENDPOINT_URL="http://x")["endpoint"].state == OK
    assert "SDKs reach AWS" in judged(AWS_IGNORE_CONFIGURED_ENDPOINT_URLS="true")["endpoint"].text
    assert "no AWS_REGION, no AWS_DEFAULT_REGION" in judged(AWS_REGION="")["credentials"].text
    assert judged(AWS_REGION="", AWS_DEFAULT_REGION="x")["credentials"].state == OK
    secret = judged(AWS_ACCESS_KEY_ID="AKIAX", AWS_SECRET_ACCESS_KEY="geheim")
    assert not any("AKIAX" in str(finding) or "geheim" in str(finding) for finding in secret.values())


def test_a_proxy_that_gets_the_requests_of_sdks_is_a_problem() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    proxied = EXPORTED | {"HTTP_PROXY": "http://proxy.example:3128"}
    found = by_part(reachable.findings(url, proxied))
    assert found["proxy"].remedy == "Add 127.0.0.1 to NO_PROXY."
    assert "proxy" not in by_part(reachable.findings(url, proxied | {"NO_PROXY": "localhost,127.0.0.1"}))
    assert "proxy" not in by_part(reachable.findings(url, EXPORTED))


def test_a_port_is_free_or_taken_by_a_program_that_does_not_answer() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        found = by_part(reachable.findings(url, EXPORTED))["server"]
        assert (found.state, "is taken" in found.text) == (PROBLEM, True)
    found = by_part(reachable.findings(url, EXPORTED))["server"]
    assert (found.state, "the port is free" in found.text) == (OK, True)


def test_a_server_without_an_admin_plane_answers_too() -> None:
    with Database.in_memory() as database, running(database) as url:
        found = by_part(reachable.findings(url, EXPORTED))
        assert "it has no admin plane" in found["server"].text
        result = run("healthcheck", "--endpoint-url", url)
        assert (result.exit_code, result.stdout) == (0, "ok: the server answers\n")


@pytest.mark.parametrize(
    ("status", "shown", "state", "text"),
    [
        (200, {"status": "degraded"}, NOTE, "degraded"),
        (503, {"status": "refuses writes", "cause": "no space"}, PROBLEM, "refuses writes: no space"),
        (401, {"error": "send the token"}, NOTE, "asks for a token"),
    ],
)
def test_the_health_of_a_server_is_told(status: int, shown: dict[str, str], state: str, text: str) -> None:
    found = reachable.judged(status, shown, "http://127.0.0.1:8100")
    assert (found.state, text in found.text) == (state, True)
    assert found.remedy


def test_a_healthy_server_passes(endpoint: str) -> None:
    port = endpoint.rpartition(":")[2]
    for arguments, environment in (
        (("--port", port), {}),
        ((), {"HASHRANGE_PORT": port}),
        (("--endpoint-url", endpoint), {"HASHRANGE_PORT": "1"}),
    ):
        result = run("healthcheck", *arguments, **environment)
        assert (result.exit_code, result.stdout) == (0, "ok\n")


def test_a_server_that_refuses_or_is_gone_does_not_pass(tmp_path: Path) -> None:
    admin = bind_admin(0)
    with Database.open(tmp_path / "data") as database, running(database, admin=admin) as url:
        (tmp_path / "data" / "rocks" / "CURRENT").unlink()
        result = run("healthcheck", "--endpoint-url", url)
        assert result.exit_code == 1
        assert "files missing" in result.stderr
    gone = run("healthcheck", "--endpoint-url", url)
    assert gone.exit_code == 1
    assert "no answer" in gone.stderr


def test_a_probe_needs_no_token() -> None:
    admin = bind_admin(0, token=TOKEN)
    with Database.in_memory() as database, running(database, admin=admin) as url:
        for variables in ({}, {"HASHRANGE_ADMIN_TOKEN": TOKEN}, {"HASHRANGE_ADMIN_TOKEN": f"{TOKEN}0"}):
            asked = run("healthcheck", "--endpoint-url", url, **variables)
            assert (asked.exit_code, asked.stdout) == (0, "ok\n")


def test_a_server_that_is_starting_is_waited_for() -> None:
    port = free_port()
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(run, "healthcheck", "--port", port, "--wait", "30")
        with Database.in_memory() as database, running(database, port=port):
            assert asked.result().exit_code == 0


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("::1", "[::1]"),
        ("::", "[::1]"),
        ("0.0.0.0", "127.0.0.1"),
        ("", "127.0.0.1"),
        ("127.0.0.2", "127.0.0.2"),
        ("localhost", "localhost"),
    ],
)
def test_the_server_of_this_machine_is_asked_where_it_listens(host: str, address: str) -> None:
    with Database.in_memory() as database, running(database, host=host, admin=bind_admin(0)) as url:
        port = url.rpartition(":")[2]
        for arguments, environment in (
            (("--host", host, "--port", port), {}),
            ((), {"HASHRANGE_HOST": host, "HASHRANGE_PORT": port}),
        ):
            result = run("healthcheck", *arguments, **environment)
            assert (result.exit_code, result.stdout) == (0, "ok\n"), result.output
            assert result.stderr == f"Server: http://{address}:{port}\n"


@pytest.mark.parametrize(
    ("line", "own"),
    [
        (["hashrange", "serve", "--port", "9000"], ("http://127.0.0.1:9000", None)),
        (["/usr/bin/python3", "/opt/bin/hashrange", "serve", "--host=::"], ("http://[::1]:7000", None)),
        (["python", "-m", "hashrange", "serve", "--tls-cert", "a.pem"], ("https://127.0.0.1:7000", "a.pem")),
        (["/sbin/init", "--", "hashrange", "serve", "--port", "0", "--x"], ("http://127.0.0.1:8000", None)),
        (["/sbin/init"], ("http://127.0.0.1:7000", None)),
        (["serve", "hashrange", "--port", "9000"], ("http://127.0.0.1:7000", None)),
        ([], ("http://127.0.0.1:7000", None)),
    ],
)
def test_the_server_of_a_container_or_a_unit_is_asked_where_its_command_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: list[str], own: tuple[str, str | None]
) -> None:
    nothing: dict[str, object] = {"host": None, "port": None, "tls_cert": None}
    assert healthcheck.own(nothing, []) is None
    monkeypatch.setenv("HASHRANGE_PORT", "7000")
    monkeypatch.delenv("MAINPID", raising=False)
    for process in ("1", "42"):
        folder = tmp_path / process
        folder.mkdir()
        if line:
            (folder / "cmdline").write_text("".join(f"{word}\0" for word in line))
        assert healthcheck.own(nothing, healthcheck.arguments_of_server(tmp_path)) == own
        shutil.rmtree(folder)
        monkeypatch.setenv("MAINPID", "42")


def test_an_endpoint_of_the_environment_is_asked_where_no_server_is_named_here(endpoint: str) -> None:
    for variable in ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"):
        result = run("healthcheck", **({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"} | {variable: endpoint}))
        assert (result.exit_code, result.stdout) == (0, "ok\n")
        assert result.stderr == f"Server: {endpoint}\n"
    gone = run("healthcheck", AWS_ENDPOINT_URL=endpoint, HASHRANGE_PORT="1")
    assert gone.exit_code == 1
    assert "http://127.0.0.1:1: no answer" in gone.stderr
