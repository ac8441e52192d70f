"""docs/python.md lists the Python names that programs may use, and no others are used by the documents."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools import python_names

from hashrange import rings

ROOT = python_names.ROOT
TEXT = python_names.PAGE.read_text(encoding="utf-8")


def sections() -> dict[str, list[str]]:
    """The names in each section's table or list, by the titles."""
    parts = re.split(r"^## (.*)$", TEXT, flags=re.M)
    return {
        title.strip("`"): re.findall(r"^(?:\||-) `(.+?)`(?: \| \S.* \|)?$", part, re.M)
        for title, part in zip(parts[1::2], parts[2::2], strict=True)
    }


def test_the_page_is_what_the_code_says() -> None:
    assert python_names.page() == TEXT, "docs/python.md is old: run python -m tools.python_names"


def test_the_modules_are_those_that_are_declared() -> None:
    listed = sections()
    assert tuple(listed) == (*python_names.MODULES, "For rings")
    assert set(listed["For rings"]) == rings.PUBLIC


@pytest.mark.parametrize("module", python_names.MODULES)
def test_each_exported_name_is_on_the_page(module: str) -> None:
    found = importlib.import_module(module)
    assert sections()[module] == sorted(found.__all__)
    assert [name for name in found.__all__ if not hasattr(found, name)] == []


def documents() -> Iterator[Path]:
    """The pages and programs that show users what to import."""
    yield ROOT / "README.md"
    for folder in (ROOT / "docs", ROOT / "examples", *ROOT.glob("packages/*/docs")):
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".md", ".py") and not {"decisions", "node_modules"} & set(path.parts):
                yield path


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """The modules of Hashrange that a page or a program imports, each with a name from it, or ""."""
    text = path.read_text(encoding="utf-8")
    blocks = [text] if path.suffix == ".py" else re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    for node in (node for block in blocks for node in ast.walk(ast.parse(block))):
        if isinstance(node, ast.ImportFrom):
            yield from [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from [(alias.name, "") for alias in node.names]


def test_documents_and_examples_use_public_names_only() -> None:
    listed = sections()
    seen = 0
    for path in documents():
        for module, name in imported(path):
            if module.partition(".")[0].startswith("hashrange"):
                seen += 1
                is_listed = module in listed and (not name or name in listed[module])
                is_module = f"{module}.{name}" in listed
                assert is_listed or is_module or (path.name == "rings.md" and module in rings.PUBLIC), path
    assert seen > 20
