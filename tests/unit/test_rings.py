"""Rings: how they are found, what they add, and what is said of those that are missing or broken."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest
from click.testing import CliRunner

from hashrange import rings
from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.rings import HOMES, Missing, Ring, Rings
from hashrange.server import running

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "rings.md"
OWN = sorted(path.parents[2].name for path in ROOT.glob("packages/*/src/*/ring.py"))


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which a package with an entry point can be put; rings are looked for anew."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    rings.rings.cache_clear()
    yield tmp_path
    rings.rings.cache_clear()
    for module in set(sys.modules) - known:
        if module.endswith("_ring"):
            del sys.modules[module]


def put(folder: Path, name: str, text: str, *, reference: str = "RING") -> None:
    """Install a ring of one module in a folder."""
    module = f"hashrange_{name}_ring"
    (folder / f"{module}.py").write_text(text)
    about = folder / f"hashrange_{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: hashrange-{name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{rings.GROUP}]\n{name} = {module}:{reference}\n")


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
    why = re.escape(f"the {ring} of Hashrange is not installed; {home.brings}.")
    for name in home.commands:
        refused = CliRunner().invoke(main, [name])
        assert refused.exit_code == 2
        assert re.search(f"{name} is missing: {why}", refused.output.replace("\n", " "))
    with pytest.raises(Missing, match=re.escape(home.brings)):
        rings.needed(ring, "parts", ring)


def test_an_option_of_a_missing_ring_says_what_brings_it(tmp_path: Path) -> None:
    program = (
        "from hashrange import rings\n"
        "from importlib import metadata\n"
        "metadata.entry_points = lambda **named: ()\n"
        "from hashrange.cli import main\n"
        "main(prog_name='hashrange')\n"
    )
    for home in HOMES.values():
        for option in home.options[:1]:
            command = [sys.executable, "-c", program, "serve", "--memory", "--port", "0"]
            variable = "HASHRANGE_" + option.removeprefix("--").replace("-", "_").upper()
            for given, environment in (([option, "x"], os.environ), ([], os.environ | {variable: "x"})):
                done = subprocess.run(
                    [*command, *given],
                    capture_output=True,
                    text=True,
                    cwd=tmp_path,
                    env=environment,
                    timeout=60,
                )
                assert done.returncode == 2
                assert f"{option} is missing: the " in done.stderr.replace("\n", " ")


@pytest.mark.parametrize("ring", OWN)
def test_homes_and_rings_agree(ring: str) -> None:
    found = Rings().installed[ring]
    home = HOMES[ring]
    assert sorted(found.commands) == sorted(home.commands)
    part = rings.load(found.serving) if found.serving else None
    options: list[str] = []
    for decorate in part.options if part is not None else ():
        made = click.command()(decorate(lambda: None))
        options += [parameter.opts[0] for parameter in made.params]
    assert sorted(options) == sorted(home.options)


@pytest.mark.parametrize("ring", OWN)
def test_each_reference_leads_somewhere(ring: str) -> None:
    found = Rings().installed[ring]
    for member in fields(Ring):
        held = getattr(found, member.name)
        values = list(held.values()) if hasattr(held, "values") else [held]
        for value in values:
            reference = getattr(value, "command", value)
            if isinstance(reference, str) and re.fullmatch(r"[\w.]+:\w+", reference):
                assert rings.load(reference) is not None, reference


@pytest.mark.parametrize("ring", OWN)
def test_the_module_of_a_ring_loads_nothing_else(ring: str) -> None:
    [path] = (ROOT / "packages" / ring / "src").glob("*/ring.py")
    imported = {
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported <= {"__future__", "typing", "hashrange.rings"}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", f"import {path.parent.name}.ring"],
        capture_output=True,
        text=True,
    )
    loaded = set(re.findall(r"\| +(hashrange[\w.]*)$", done.stderr, re.M))
    assert loaded == {"hashrange", "hashrange.rings", path.parent.name, f"{path.parent.name}.ring"}


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


def test_the_entry_points_are_those_of_the_project() -> None:
    named = {entry.name for entry in importlib.metadata.entry_points(group=rings.GROUP)}
    assert named >= set(OWN)


def imported_by_rings() -> dict[str, set[str]]:
    """The modules of the core that the rings import, with the names they take from each."""
    used: dict[str, set[str]] = {}
    for path in ROOT.glob("packages/*/src/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    used.setdefault(alias.name, set())
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                for alias in node.names:
                    module = ROOT / "src" / Path(*node.module.split("."), alias.name)
                    is_module = module.with_suffix(".py").exists() or (module / "__init__.py").exists()
                    name = f"{node.module}.{alias.name}" if is_module else node.module
                    used.setdefault(name, set()).add("" if is_module else alias.name)
    return {name: taken for name, taken in used.items() if name.partition(".")[0] == "hashrange"}


def test_rings_import_only_what_is_public_and_all_of_that() -> None:
    used = imported_by_rings()
    assert set(used) == rings.PUBLIC
    private = {f"{module}.{name}" for module, names in used.items() for name in names if name.startswith("_")}
    assert private == {"hashrange.__version__"}


def test_the_core_imports_no_ring() -> None:
    packages = [path.name for path in ROOT.glob("packages/*/src/hashrange_*")]
    named = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(packages)})\b", re.M)
    assert [path for path in (ROOT / "src").rglob("*.py") if named.search(path.read_text("utf-8"))] == []


def test_rings_import_each_other_only_where_pages_need_the_console() -> None:
    found = set()
    for path in ROOT.glob("packages/*/src/**/*.py"):
        own = path.relative_to(ROOT).parts[3]
        for other in re.findall(r"^\s*(?:from|import) (hashrange_\w+)", path.read_text("utf-8"), re.M):
            if other != own:
                found.add((path.relative_to(ROOT).parts[1:5], other))
    assert found <= {
        ((ring, "src", f"hashrange_{ring}", "pages"), "hashrange_console") for ring in ("access", "lab")
    }


def test_every_file_of_a_page_is_in_the_wheel() -> None:
    text = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for package, patterns in text["tool"]["setuptools"]["package-data"].items():
        for folder in ROOT.glob(f"packages/*/src/{package}"):
            files = {path for path in folder.rglob("*") if path.suffix in (".html", ".css", ".js")}
            assert files <= {path for pattern in patterns for path in folder.glob(pattern)}, package


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
