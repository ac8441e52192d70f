"""Put the pages of the documentation site together: `make site` comes here, and then builds them.

    python tools/pages.py FOLDER

The pages are the Markdown files that a reader of the repository finds: README.md, docs, the guides of the
patterns, the examples and the changelog. They are copied to FOLDER, and links between them are rewritten,
because some of them lie in other folders there. A link to a file that is no page, such as a program, becomes
plain text; where HASHRANGE_REPOSITORY is set to the URL of the repository's files, it leads there.

It adds a list of the decisions, and the API reference, whose text mkdocstrings takes from the docstrings.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
REPOSITORY: Final = os.environ.get("HASHRANGE_REPOSITORY", "").rstrip("/")

# The folders and files of pages, and where they are on the site.
_FROM: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "docs": "",
    "packages/access/docs": "",
    "packages/console/docs": "",
    "packages/lab/docs": "",
    "packages/mcp/docs": "",
    "packages/patterns/docs": "patterns",
    "packages/postgres/docs": "",
    "packages/replication/docs": "",
    "packages/sql/docs": "",
    "packages/sync/docs": "",
    "packages/templates/docs": "",
    "packages/triggers/docs": "",
    "examples": "examples",
}
_FILES: Final = (".png", ".svg", ".css")

API: Final = {
    "database": ("The database", ["hashrange.database.Database", "hashrange.settings.Settings"]),
    "client": ("Clients in process", ["hashrange.client"]),
    "testing": (
        "For tests",
        ["hashrange.testing.blocks", "hashrange.testing.database", "hashrange.testing.mocking"],
    ),
    "clock": ("Clocks", ["hashrange.clock"]),
    "faults": ("Faults", ["hashrange.faults.effects", "hashrange.faults.rules"]),
    "costs": ("Costs", ["hashrange.costs"]),
    "triggers": ("Triggers", ["hashrange_triggers"]),
    "server": ("The server", ["hashrange.server.run", "hashrange.server.settings"]),
    "patterns": ("Patterns", ["hashrange_patterns", "hashrange_patterns.migrations"]),
}
"""The pages of the API reference: title, and the dotted names whose docstrings are shown."""

_FENCE: Final = re.compile(r"^( *)(```|~~~)")
_LINK: Final = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
_ATTRIBUTE: Final = re.compile(r"""\b(src|srcset|href)="([^"#:]+)(#[^"]*)?\"""")


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build(Path(sys.argv[1]))


def build(folder: Path) -> None:
    """Write all pages and pictures to `folder`, which is emptied before."""
    shutil.rmtree(folder, ignore_errors=True)
    places = dict(_places())
    for source, place in places.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            path.write_text(rewritten(source, place, places), encoding="utf-8")
        else:
            shutil.copyfile(source, path)
    (folder / "decisions" / "index.md").write_text(_decisions(places), encoding="utf-8")
    (folder / "api").mkdir()
    for name, (title, objects) in API.items():
        text = "\n\n".join(f"::: {dotted}" for dotted in objects)
        (folder / "api" / f"{name}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")


def _places() -> Iterator[tuple[Path, str]]:
    """Each file of the site, and its path there."""
    for origin, target in _FROM.items():
        source = ROOT / origin
        if source.is_file():
            yield source, target
            continue
        for path in sorted(source.rglob("*")):
            if path.suffix == ".md" or path.suffix in _FILES:
                inner = path.relative_to(source)
                if inner.name == "README.md":
                    inner = inner.with_name("index.md")
                yield path, (Path(target) / inner).as_posix()


def rewritten(source: Path, place: str, places: dict[Path, str]) -> str:
    """The text of a page, with the links that it needs at its place on the site."""

    def relinked(lines: list[str]) -> str:
        text = _LINK.sub(lambda match: _link(match, source, place, places), "\n".join(lines))
        return _ATTRIBUTE.sub(lambda match: _attribute(match, source, place, places), text)

    done: list[str] = []
    block: list[str] = []
    fence = ""
    for line in source.read_text(encoding="utf-8").split("\n"):
        opened = _FENCE.match(line)
        if opened is not None and fence in ("", opened[2]):
            if block:
                done.append(relinked(block))
                block = []
            fence = "" if fence else opened[2]
            done.append(line)
        elif fence:
            done.append(line)
        else:
            block.append(line)
    return "\n".join([*done, relinked(block)] if block else done)


def _link(match: re.Match[str], source: Path, place: str, places: dict[Path, str]) -> str:
    mark, text, target, anchor = match[1], match[2], match[3], match[4] or ""
    if not target or "://" in target or target.startswith("mailto:"):
        return match[0]
    led = _led(target, source, place, places)
    return text if led is None else f"{mark}[{text}]({led}{anchor})"


def _attribute(match: re.Match[str], source: Path, place: str, places: dict[Path, str]) -> str:
    led = _led(match[2], source, place, places)
    return match[0] if led is None else f'{match[1]}="{led}{match[3] or ""}"'


def _led(target: str, source: Path, place: str, places: dict[Path, str]) -> str | None:
    """Where a link of the repository leads on the site; None if it leads nowhere there.

    Raises FileNotFoundError if it leads nowhere in the repository.
    """
    path = (source.parent / target).resolve()
    if not path.exists():
        raise FileNotFoundError(f"{source}: {target}")
    if path.is_dir():
        path = next((path / name for name in ("README.md", "index.md") if path / name in places), path)
    there = places.get(path)
    if there is None and places and path == ROOT / "docs" / "decisions":
        there = "decisions/index.md"
    if there is None:
        return f"{REPOSITORY}/{path.relative_to(ROOT).as_posix()}" if REPOSITORY else None
    return os.path.relpath(there, Path(place).parent).replace(os.sep, "/")


def _decisions(places: dict[Path, str]) -> str:
    """The list of the decisions, by their titles."""
    lines = ["# Decisions", "", "Why Hashrange is as it is, half a page each.", ""]
    for source, place in places.items():
        if place.startswith("decisions/"):
            title = source.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            number, _, text = title.replace(":", ".", 1).partition(". ")
            lines.append(f"- [{int(number)}. {text}]({Path(place).name})")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
