"""Rings: how they are found, what they add, and what is said of those that are missing or broken."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from hashrange import rings
from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.rings import HOMES, Missing, Rings
from hashrange.server import running
from ring_files import put, rings_of

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "rings.md"


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which a package with an entry point can be put; rings are looked for again."""
    with rings_of(tmp_path, monkeypatch) as folder:
        yield folder


BROKEN = "raise OSError('no such device')"
EMPTY = "from hashrange.rings import Ring\nRING = Ring(name='empty', about='nothing')\n"


def test_a_ring_that_cannot_be_loaded_is_told_and_stops_no_other(
    outside: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(outside, "broken", BROKEN)
    put(outside, "empty", EMPTY)
    put(outside, "mistaken", "RING = 1")
    found = Rings()
    assert "empty" in found.installed
    assert found.failed["broken"] == "OSError: no such device"
    assert "is not a hashrange.rings.Ring" in found.failed["mistaken"]
    assert [record.message for record in caplog.records].count("a ring cannot be loaded") == 2


def test_a_ring_whose_package_was_deleted_is_missing(outside: Path) -> None:
    put(outside, "deleted", EMPTY)
    (outside / "hashrange_deleted_ring.py").unlink()
    found = Rings()
    assert "empty" not in found.installed
    assert "deleted" not in found.failed


def test_a_ring_that_lacks_a_library_is_broken_and_not_missing(outside: Path) -> None:
    put(outside, "lacking", "import a_library_that_nobody_has")
    assert "a_library_that_nobody_has" in Rings().failed["lacking"]


def test_version_and_doctor_list_the_rings(outside: Path) -> None:
    put(outside, "broken", BROKEN)
    put(outside, "empty", EMPTY)
    shown = CliRunner().invoke(main, ["--version"]).output
    assert re.search(r"^rings: .*empty.*broken \(cannot be loaded: OSError: no such device\)$", shown, re.M)
    told = CliRunner().invoke(main, ["doctor", "--data-dir", str(outside / "none")]).output
    assert re.search(r"^ok +rings +.*empty", told, re.M)
    assert re.search(r"^problem +ring broken +cannot be loaded: OSError: no such device", told, re.M)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An environment without rings."""
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **named: ())
    rings.rings.cache_clear()
    yield
    rings.rings.cache_clear()


@pytest.mark.parametrize("ring", HOMES)
def test_what_a_missing_ring_brings_is_told(ring: str, alone: None) -> None:
    home = HOMES[ring]
    why = re.escape(f"the ring {ring} is not installed; {home.brings}.")
    for name in home.commands:
        refused = CliRunner().invoke(main, [name])
        assert refused.exit_code == 2
        assert re.search(f"{name} is missing: {why}", refused.output.replace("\n", " "))
    with pytest.raises(Missing, match=re.escape(home.brings)):
        rings.needed(ring, "parts", ring)


def test_an_option_of_a_missing_ring_says_what_brings_it(tmp_path: Path) -> None:
    # A process of its own, because the options of `serve` are made once in a process.
    program = (
        "import json, sys\n"
        "from importlib import metadata\n"
        "metadata.entry_points = lambda **named: ()\n"
        "from click.testing import CliRunner\n"
        "from hashrange.cli import main\n"
        "for given, environment in json.load(sys.stdin):\n"
        "    done = CliRunner().invoke(main, ['serve', '--memory', '--port', '0', *given], env=environment)\n"
        "    print(json.dumps([done.exit_code, ' '.join(done.output.split())]))\n"
    )
    options = [option for home in HOMES.values() for option in home.options]
    asked: list[tuple[list[str], dict[str, str]]] = []
    for option in options:
        variable = "HASHRANGE_" + option.removeprefix("--").replace("-", "_").upper()
        asked += [([option, "x"], {}), ([], {variable: "x"})]
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(asked), capture_output=True, text=True, cwd=tmp_path, timeout=60, check=True,
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for (given, environment), (code, output) in zip(asked, answers, strict=True):
        option = given[0] if given else next(iter(environment))
        named = "--" + option.removeprefix("HASHRANGE_").replace("_", "-").lower() if not given else option
        assert code == 2, output
        assert f"{named} is missing: the " in output


def test_the_example_of_the_guide_works(outside: Path) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    [project] = re.findall(r"```toml\n(.*?)```", text, re.S)
    [source] = re.findall(r"```python\n(.*?)```", text, re.S)
    assert 'slow = "hashrange_slow:RING"' in project
    put(outside, "slow", source.replace("hashrange_slow:", "hashrange_slow_ring:"))
    environment = os.environ | {"PYTHONPATH": str(outside)}
    program = [sys.executable, "-m", "hashrange"]
    command = [*program, "serve", "--memory", "--port", "0", "--slow-ms", "0", "--log-format", "json"]
    with subprocess.Popen(
        command, env=environment, cwd=outside, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stderr is not None
            started = next(line for line in server.stderr if '"started"' in line)
            [admin] = re.findall(r'"admin":"([^"]+)"', started)
            [endpoint] = re.findall(r'"endpoint":"([^"]+)"', started)
            import boto3

            client = boto3.client(
                "dynamodb", endpoint_url=endpoint, region_name="us-east-1",
                aws_access_key_id="any", aws_secret_access_key="any",
            )  # fmt: skip
            client.list_tables()
            shown = subprocess.run(
                [*program, "slow", "--admin-url", admin], env=environment, capture_output=True, text=True
            )
            assert re.search(r"^ *[\d.]+ ms  ListTables$", shown.stdout, re.M), shown.stderr
        finally:
            server.terminate()


def test_an_admin_plane_without_rings_has_no_console(alone: None) -> None:
    admin = bind_admin(0)
    with Database.in_memory() as database, running(database, admin=admin) as endpoint:
        for url, status in ((f"{admin.url}/health", 200), (f"{admin.url}/console", 404)):
            connection = HTTPConnection(urlsplit(url).netloc)
            connection.request("GET", urlsplit(url).path)
            assert connection.getresponse().status == status
            connection.close()
        connection = HTTPConnection(urlsplit(endpoint).netloc)
        connection.request("GET", "/", headers={"Accept": "text/html"})
        page = connection.getresponse().read()
        connection.close()
        assert b"Look into the data" in page
        assert b"hashrange console" not in page
