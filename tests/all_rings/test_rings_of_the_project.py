"""The rings of this project: what they refer to, what they import, and what the core says of them."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import click
import pytest

from hashrange import rings
from hashrange.rings import HOMES, Ring, Rings

ROOT = Path(__file__).resolve().parents[2]
OWN = sorted(path.parents[2].name for path in ROOT.glob("packages/*/src/*/ring.py"))


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
    assert sorted(options) == sorted(home.options) == sorted(found.options)
    assert sorted(found.paths) == sorted(home.paths)
    endpoints = rings.load(found.endpoints) if found.endpoints else ()
    pages = rings.load(found.pages).parts if found.pages else ()
    for one in (*endpoints, *pages):
        below = [path for path in found.paths if one.path == path or one.path.startswith(f"{path}/")]
        assert below, one.path


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


def test_rings_import_each_other_only_for_pages_and_for_the_tools_of_agents() -> None:
    found = set()
    for path in ROOT.glob("packages/*/src/**/*.py"):
        own = path.relative_to(ROOT).parts[3]
        for other in re.findall(r"^\s*(?:from|import) (hashrange_\w+)", path.read_text("utf-8"), re.M):
            if other != own:
                found.add((path.relative_to(ROOT).parts[1:5], other))
    with_pages = ("access", "lab", "sql", "sync")
    pages = {((ring, "src", f"hashrange_{ring}", "pages"), "hashrange_console") for ring in with_pages}
    # (what the console, the lab and access know, agents may ask for, and a SELECT of the entities)
    tools = {
        (("mcp", "src", "hashrange_mcp", folder), f"hashrange_{ring}")
        for folder in ("estimates.py", "tools")
        for ring in ("access", "console", "lab")
    }
    looks = {
        (("sql", "src", "hashrange_sql", module), "hashrange_console")
        for module in ("entities.py", "looking.py", "planning.py")
    }
    assert found <= pages | tools | looks


def test_every_file_of_a_page_is_in_the_wheel() -> None:
    for project in (ROOT / "pyproject.toml", *ROOT.glob("packages/*/pyproject.toml")):
        text = tomllib.loads(project.read_text(encoding="utf-8"))
        for package, patterns in text["tool"]["setuptools"].get("package-data", {}).items():
            for folder in ROOT.glob(f"packages/*/src/{package}"):
                files = {path for path in folder.rglob("*") if path.suffix in (".html", ".css", ".js")}
                assert files <= {path for pattern in patterns for path in folder.glob(pattern)}, package
