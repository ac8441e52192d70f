"""The documents are true: links lead somewhere, names exist, no operation is missing."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import botocore.loaders
import pytest

from hashrange.operations import REGISTRY
from unit.test_tidy import FILE_LINES_MAX, FUNCTION_LINES_MAX

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTS += sorted(
    path for path in (ROOT / "packages").rglob("*.md") if "node_modules" not in path.parts
)
COMPATIBILITY = ROOT / "docs" / "compatibility.md"
ARCHITECTURE = (ROOT / "docs" / "architecture.md", *sorted((ROOT / "docs" / "architecture").glob("*.md")))

def operations_of_the_api() -> set[str]:
    """Every operation of the newest models that the installed botocore has."""
    loader = botocore.loaders.Loader()
    return {
        operation
        for service in ("dynamodb", "dynamodbstreams")
        for operation in loader.load_service_model(service, "service-2")["operations"]
    }


def located(file: str) -> Path:
    """A test file that a row names: in `tests`, or in a ring."""
    return ROOT / file if file.startswith("packages/") else ROOT / "tests" / file


def operation_rows() -> list[tuple[str, list[str]]]:
    """Each operation of docs/compatibility.md, and the test files beside it."""
    text = COMPATIBILITY.read_text("utf-8").partition("<!-- operations -->")[2]
    rows = re.findall(r"^\| ([A-Z]\w+(?:, [A-Z]\w+)*) \| (.*?) *\|$", text, re.MULTILINE)
    return [(name, re.findall(r"`([^`]+)`", files)) for names, files in rows for name in names.split(", ")]


def test_every_operation_is_listed_once() -> None:
    listed = [operation for operation, _ in operation_rows()]
    assert sorted(listed) == sorted(operations_of_the_api())


def test_an_operation_works_if_it_is_registered() -> None:
    assert {operation for operation, files in operation_rows() if files} == set(REGISTRY)


def test_what_works_is_verified_by_tests_that_speak_of_it() -> None:
    for operation, files in operation_rows():
        snake = re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()
        for file in files:
            text = located(file).read_text(encoding="utf-8")
            assert operation in text or snake in text, f"{operation}: {file} does not speak of it"


def test_every_test_that_verifies_a_feature_exists() -> None:
    evidence = COMPATIBILITY.read_text("utf-8").partition("## Clients")[2]
    rows = re.findall(r"^\| ([^|]*) \| ([^|]*`.*) \|$", evidence, re.MULTILINE)
    assert len(rows) > 50
    for feature, verified in rows:
        files = re.findall(r"`([a-z0-9_]+/[^`]+)`", verified)
        assert files or "in `tests/`" in verified, feature
        assert [file for file in files if not located(file).exists()] == [], feature


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_relative_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)[^)]*\)", document.read_text(encoding="utf-8"))
    assert [target for target in targets if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_make_targets_exist(document: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"(?:`|^ {4})make ([a-z-]+)", document.read_text(encoding="utf-8"), re.MULTILINE))
    assert named <= targets


def names_in_the_architecture() -> list[str]:
    """The dotted names in backticks, for example `tables.writes.applying.apply`; no file names."""
    text = "".join(page.read_text(encoding="utf-8") for page in ARCHITECTURE)
    names = set(re.findall(r"`([a-z_]+(?:\.[A-Za-z_]+)+)`", text))
    return sorted(name for name in names if not name.endswith((".md", ".py", ".toml")))


def resolve(name: str) -> object:
    """The object with this dotted name below `hashrange`, or in a package of its own."""
    parts = name.split(".")
    above = [] if parts[0].startswith("hashrange_") else ["hashrange"]
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join([*above, *parts[:length]]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            found = getattr(found, attribute)
        return found
    raise ModuleNotFoundError(name)


def test_the_architecture_names_what_exists() -> None:
    names = names_in_the_architecture()
    assert len(names) > 20
    missing = []
    for name in names:
        try:
            resolve(name)
        except (ModuleNotFoundError, AttributeError):
            missing.append(name)
    assert missing == []


def lines_below(folder: Path) -> int:
    return sum(path.read_text("utf-8").count("\n") for path in folder.rglob("*.py"))


def test_the_readme_has_the_sizes_of_the_code() -> None:
    said = re.search(
        r"core of ([\d,]+) lines and packages of ([\d,]+) to ([\d,]+),\s+"
        r"no file longer than (\d+) lines,\s+no\s+function longer than (\d+)",
        (ROOT / "README.md").read_text("utf-8"),
    )
    assert said is not None
    core, smallest, largest, file, function = (int(number.replace(",", "")) for number in said.groups())
    rings = [lines_below(folder) for folder in (ROOT / "packages").glob("*/src")]
    for number, counted in ((core, lines_below(ROOT / "src")), (smallest, min(rings)), (largest, max(rings))):
        assert abs(number - counted) < max(0.02 * counted, 500), counted
    assert (file, function) == (FILE_LINES_MAX, FUNCTION_LINES_MAX)


def test_the_readme_says_when_not_to_use_it() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    before = text[: text.index("## Two commands")]
    assert "**When not to use it.**" in before
    assert "docs/compatibility.md" in before
