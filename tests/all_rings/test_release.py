"""The programs that build the site and check a release find what they are for."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools import links, listed, pages, release, typed, wheels

import hashrange

ROOT = Path(__file__).resolve().parents[2]
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.1.0] - 2026-01-01\n\n- One.\n"


@pytest.mark.parametrize(
    ("version", "tags", "changelog", "problem"),
    [
        ("0.2.0", [], CHANGELOG, None),
        ("0.1.0", ["v0.1.0", "kept"], CHANGELOG, None),
        ("0.2.0", ["v0.2.0"], CHANGELOG, "has no section"),
        ("0.2.0", ["v0.1.0"], CHANGELOG, "the tag is v0.1.0, and the version 0.2.0"),
        ("0.2.0", [], CHANGELOG.replace("- A thing.", "Nothing."), "says nothing about 0.2.0"),
        ("0.2.0", [], "", "says nothing about 0.2.0"),
    ],
)
def test_versions_tags_and_the_changelog_agree(
    version: str, tags: list[str], changelog: str, problem: str | None
) -> None:
    if problem is None:
        release.check_changelog(version, changelog, tags)
    else:
        with pytest.raises(release.NotReady, match=problem):
            release.check_changelog(version, changelog, tags)


def test_everything_is_committed() -> None:
    release.check_committed("")
    with pytest.raises(release.NotReady, match=r"new\.py"):
        release.check_committed("?? new.py\n")


@pytest.mark.parametrize(
    ("missing", "more", "problem"),
    [
        (None, None, None),
        ("hashrange-0.2.0.tar.gz", None, r"lacks hashrange-0\.2\.0\.tar"),
        ("hashrange-0.2.0-py3-none-any.whl", None, r"lacks hashrange-0\.2\.0-py3"),
        ("hashrange_postgres-0.2.0-py3-none-any.whl", None, r"lacks hashrange_postgres-0\.2\.0-py3"),
        ("hashrange-0.2.0-cp311-cp311-manylinux_2_17_x86_64.whl", None, "a compiled wheel"),
        (None, "hashrange-0.1.0.tar.gz", "hashrange-0.1.0.tar.gz, and the version is 0.2.0"),
        (None, "hashrange_patterns-0.1.0-py3-none-any.whl", "any.whl, and the version is 0.2.0"),
    ],
)
def test_the_archives_are_those_of_the_version(
    missing: str | None, more: str | None, problem: str | None
) -> None:
    packages = (
        "hashrange", "hashrange_mcp", "hashrange_patterns", "hashrange_postgres", "hashrange_replication",
        "hashrange_sql",
        "hashrange_sync",
    )  # fmt: skip
    names = {f"{name}-0.2.0{end}" for name in packages for end in (".tar.gz", "-py3-none-any.whl")}
    names.add("hashrange-0.2.0-cp311-cp311-manylinux_2_17_x86_64.whl")
    given = sorted((names - {missing}) | ({more} if more else set()))
    if problem is None:
        release.check_archives("0.2.0", given)
    else:
        with pytest.raises(release.NotReady, match=problem):
            release.check_archives("0.2.0", given)


@pytest.mark.parametrize(
    ("text", "is_version"),
    [("0.2.0", True), ("1.10.3rc1", True), ("0.2", False), ("01.0.0", False), ("1.0.0-beta", False)],
)
def test_a_version_is_a_semantic_one(tmp_path: Path, text: str, is_version: bool) -> None:
    package = tmp_path / "src" / "hashrange"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f'__version__ = "{text}"\n')
    if is_version:
        assert release.version_of(tmp_path) == text
    else:
        with pytest.raises(release.NotReady):
            release.version_of(tmp_path)


def test_everything_has_the_same_version() -> None:
    assert release.version_of(ROOT) == hashrange.__version__
    release.check_packages(hashrange.__version__, ROOT)
    feature = yaml.safe_load((ROOT / "deploy/devcontainer-feature/devcontainer-feature.json").read_text())
    assert feature["version"] == hashrange.__version__


@pytest.mark.parametrize(
    ("name", "version", "form"),
    [
        ("hashrange-0.2.0-py3-none-any.whl", "3.12", "interpreted"),
        ("hashrange-0.2.0.tar.gz", "3.12", "interpreted"),
        ("hashrange-0.2.0-cp312-cp312-musllinux_1_2_x86_64.whl", "3.12", "compiled"),
        ("hashrange-0.2.0-cp312-cp312-musllinux_1_2_x86_64.whl", "3.11", None),
        ("hashrange_postgres-0.2.0-py3-none-any.whl", "3.12", None),
    ],
)
def test_an_archive_is_tried_where_it_can_be_installed(name: str, version: str, form: str | None) -> None:
    assert wheels.form_of(Path(name), version) == form


@pytest.mark.parametrize("licence", ["MIT License", "BSD-3-Clause", "Apache-2.0 OR MIT", "PSF-2.0"])
def test_licences_that_may_be_shipped(licence: str) -> None:
    assert wheels.LICENCES.search(licence)


@pytest.mark.parametrize("licence", ["AGPL-3.0", "GPL-2.0-only", "SSPL-1.0", "Proprietary", ""])
def test_licences_that_need_a_look(licence: str) -> None:
    assert not wheels.LICENCES.search(licence)


@pytest.mark.parametrize(
    ("version", "asks", "ready"),
    [("0.2.0", [], True), ("0.2.0", ["hashrange==0.2.0", "psycopg>=3"], True), ("0.1.0", [], False),
     ("0.2.0", ["hashrange==0.1.0"], False), ("0.2.0", ["hashrange>=0.2.0"], False)],
)  # fmt: skip
def test_packages_beside_the_server_have_its_version(
    tmp_path: Path, version: str, asks: list[str], ready: bool
) -> None:
    project = tmp_path / "packages" / "one" / "pyproject.toml"
    project.parent.mkdir(parents=True)
    project.write_text(f'[project]\nname = "one"\nversion = "{version}"\ndependencies = {asks}\n')
    if ready:
        release.check_packages("0.2.0", tmp_path)
    else:
        with pytest.raises(release.NotReady, match=r"the version of the server is 0\.2\.0"):
            release.check_packages("0.2.0", tmp_path)


WORKFLOWS = {path.name: yaml.safe_load(path.read_text()) for path in ROOT.glob(".github/workflows/*.yml")}


def steps(workflow: str, job: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = WORKFLOWS[workflow]["jobs"][job]["steps"]
    return found


def test_actions_are_pinned_by_their_hash() -> None:
    for path in ROOT.glob(".github/**/*.yml"):
        used = re.findall(r"^ *(?:- )?uses: *(.*)$", path.read_text(), re.MULTILINE)
        assert [use for use in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*", use)] == []


def test_a_change_is_tested_on_the_oldest_and_the_newest_python() -> None:
    checks = WORKFLOWS["checks.yml"]
    assert "pull_request" in checks[True]  # (YAML reads `on` so)
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    pythons = [
        one.rpartition(" ")[2] for one in classifiers if one.startswith("Programming Language :: Python ::")
    ]
    for name, job in checks["jobs"].items():
        if name != "ring":
            assert job["strategy"]["matrix"]["python"] == [pythons[0], pythons[-1]]
    rings = checks["jobs"]["ring"]["strategy"]["matrix"]["ring"]
    assert rings == ["core", *sorted(folder.name for folder in (ROOT / "packages").iterdir())]
    assert [step["run"] for step in steps("checks.yml", "test") if "run" in step] == ["make test"]


def test_every_package_is_built_and_published_and_a_second_run_goes_on() -> None:
    (publish,) = [step for step in steps("wheels.yml", "publish") if "pypi-publish" in step.get("uses", "")]
    assert publish["with"] == {"skip-existing": True}
    (beside,) = [step["run"] for step in steps("wheels.yml", "pure") if "packages/" in step.get("run", "")]
    assert f"in {' '.join(wheels.BESIDE)};" in beside
    assert [package.name for package in listed.PACKAGES[1:]] == list(wheels.BESIDE)


@pytest.mark.parametrize("repository", ["", "https://example.org/owner/name/blob/v1.2.3"])
@pytest.mark.parametrize("package", listed.PACKAGES, ids=lambda package: package.name)
def test_an_index_gets_no_relative_links(
    monkeypatch: pytest.MonkeyPatch, package: Path, repository: str
) -> None:
    monkeypatch.setattr(pages, "REPOSITORY", repository)
    text = listed.readme(package)
    led = re.findall(r"\]\(([^)]+)\)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text)
    assert [target for target in led if not target.startswith(("https://", "#"))] == []
    own = [target for target in led if repository and target.startswith(repository)]
    assert bool(own) == bool(repository)
    assert all((ROOT / target[len(repository) + 1 :].partition("?")[0]).exists() for target in own)
    project = tomllib.loads((package / "pyproject.toml").read_text() + listed.urls(package))["project"]
    urls = project.get("urls", {})
    assert urls.get("Source") == (repository.removesuffix("/blob/v1.2.3") or None)
    for url in urls.values():
        assert url.startswith("https://example.org/owner/name")


def page(body: str) -> str:
    return f"<!doctype html><html><body>{body}</body></html>"


def test_wrong_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "a.html").write_text(
        page(
            '<h1 id="top">A</h1><a href="in/b.html#x">b</a><a href="#top">top</a><a href="in/">in</a>'
            '<a href="https://elsewhere.example">away</a><img src="p.png"><a href="in/b%2Ehtml">b</a>'
            '<link rel="canonical" href="https://here.example/a.html">'
        )
    )
    (tmp_path / "p.png").write_bytes(b"")
    (tmp_path / "in" / "b.html").write_text(page('<a name="x" href="../a.html#top"></a>'))
    (tmp_path / "in" / "index.html").write_text(page(""))
    assert list(links.problems(tmp_path)) == []
    (tmp_path / "c.html").write_text(
        page(
            '<a href="gone.html">x</a><a href="a.html#gone">x</a><img src="gone.png">'
            '<script src="https://elsewhere.example/x.js"></script>'
            '<link rel="stylesheet" href="//cdn.example/x">'
        )
    )
    assert list(links.problems(tmp_path)) == [
        "c.html: gone.html leads nowhere",
        "c.html: a.html#gone leads to no anchor",
        "c.html: gone.png leads nowhere",
        "c.html loads https://elsewhere.example/x.js",
        "c.html loads //cdn.example/x",
    ]


def test_links_between_pages_follow_the_pages_to_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    places = {ROOT / "README.md": "index.md", ROOT / "docs" / "streams.md": "streams.md"}
    patterns = ROOT / "packages" / "patterns" / "docs" / "README.md"

    def rewritten(text: str) -> str:
        monkeypatch.setattr(Path, "read_text", lambda self, **_: text)
        return pages.rewritten(patterns, "patterns/index.md", places | {patterns: "patterns/index.md"})

    assert rewritten("[a](../../../docs/streams.md#triggers)") == "[a](../streams.md#triggers)"
    assert rewritten("[two\nlines](../../../README.md)") == "[two\nlines](../index.md)"
    assert rewritten("[x](../../../LICENSE), [y](https://a.example)") == "x, [y](https://a.example)"
    assert rewritten("[d](../../../docs/decisions)") == "[d](../decisions/index.md)"
    assert rewritten("[a](#here)") == "[a](#here)"
    code = "```\n[a](../../../README.md)\n```"
    assert rewritten(code) == code
    with pytest.raises(FileNotFoundError):
        rewritten("[a](gone.md)")


def test_every_page_has_its_place_in_the_navigation(tmp_path: Path) -> None:
    def named(entries: object) -> set[str]:
        if isinstance(entries, str):
            return {entries}
        inner = entries.values() if isinstance(entries, dict) else entries
        assert not isinstance(inner, str)
        return {name for entry in inner for name in named(entry)}  # type: ignore[attr-defined]

    pages.build(tmp_path)
    there = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")}
    nav = named(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"])
    # The decisions are listed on a page of their own.
    assert {name for name in there if not name.startswith("decisions/0")} == nav


def test_the_first_page_is_typed_whole() -> None:
    found = typed.blocks(typed.PAGE)
    assert found[0].text == f"HASHRANGE={typed.NAMED}\n"
    assert [block.text for block in found].count(f"{typed.SERVE}\n") == 1
    programs = [block for block in found if block.language == "python"]
    assert len(programs) == 2
    assert all(typed.promised(block.text) and ".py`" in block.before for block in programs)
    assert typed.promised('print(x)  # 1\n    print("y")  # two\n') == "1\ntwo\n"


PROJECT = """
[project]
name = "{}"
version = "1"
dependencies = []
[dependency-groups]
compile = []
[tool.setuptools.packages.find]
where = ["src"]
"""


@pytest.mark.parametrize(
    ("setup", "package"),
    [(package / "setup.py", f"hashrange_{package.name}") for package in listed.PACKAGES],
)
def test_a_second_build_in_a_checkout_has_nothing_of_the_first(
    tmp_path: Path, setup: Path, package: str
) -> None:
    shutil.copy(setup, tmp_path)
    (tmp_path / "pyproject.toml").write_text(PROJECT.format(package))
    source = tmp_path / "src" / package
    (source / "kept").mkdir(parents=True)
    for name in ("__init__.py", "kept/__init__.py", "kept/one.py", "gone.py"):
        (source / name).write_text("")

    def built() -> set[str]:
        command = [sys.executable, "setup.py", "--quiet", "build"]
        subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
        (library,) = (tmp_path / "build").glob("lib*")
        found = {path.relative_to(library / package).as_posix() for path in library.rglob("*.*")}
        # An earlier build compiled this module, which is no longer in the list.
        (library / package / "kept" / "one.abi3.so").write_bytes(b"old code")
        return found

    assert built() == {"__init__.py", "kept/__init__.py", "kept/one.py", "gone.py"}
    (source / "gone.py").unlink()
    assert built() == {"__init__.py", "kept/__init__.py", "kept/one.py"}
