"""Check the style of the texts that people read: documents, pages of the console, source files.

    python -m tools.words [FILE...]

proselint judges documents and pages, without code and tags. `PHRASES` are searched for in every text, so
also in docstrings, comments and messages: what this project's texts used to say, and what a native writer
says instead. docs/decisions/0041-words.md says why, and what both cannot find.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from proselint.checks import __register__
from proselint.config import DEFAULT, Config
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT: Final = Path(__file__).resolve().parents[1]
PROSE: Final = (".md", ".html")
SOURCES: Final = (".py", ".js", ".mjs", ".css", ".sql", ".toml", ".yaml", ".yml")
LEFT_OUT: Final = (
    "docs/decisions/0041-words.md", "tests/all_rings/test_words.py", "tests/golden/", "tools/words.py",
)  # fmt: skip
"""AWS's words, which stay as they are, and what lists the phrases."""

UNSUITED: Final = (
    "dates_times",
    "lexical_illusions",
    "misc",
    "needless_variants",
    "typography",
    "weasel_words",
)
"""Checks of proselint that take tables, the notation of code, or the words of AWS's API for faults."""

PHRASES: Final = {
    r"anew": "again",
    r"at most so (many|much)": "at most N",
    r"(be|are|is|was|were|been|being) told apart": "be distinguished",
    r"brings? it over": "upgrades the schema",
    r"for ever": "forever",
    r"gives? no \w+ away": "issues no …",
    r"is everybody": "is anyone",
    r"lets? (those|them|him) in": "admits",
    r"nothing of (it|them) (is|was)": "the name of what is left out",
    r"(is|are|puts?) put right": "is repaired",
    r"sees? to it": "ensures",
    r"tells? (all|both|the|them|two) .{0,20}apart": "distinguishes",
    r"the the": "the",
    r"(a|an|and|in|is|of|to) \1": "the word once",
    r"whoever": "the role: the caller, a reader, users who …",
}
_PHRASES: Final = {re.compile(rf"\b{phrase}\b"): instead for phrase, instead in PHRASES.items()}

_BLANKED: Final = {
    ".md": re.compile(
        r"^```.*?^```|^    .*?$|`[^`\n]*`|<!--.*?-->|<[^>\n]+>|\]\([^)\n]*\)", re.MULTILINE | re.DOTALL
    ),
    ".html": re.compile(r"\{[%#{].*?[%#}]\}|<(script|style|code)\b.*?</\1>|<[^>]*>", re.DOTALL),
}
"""What is not prose."""


def main(names: list[str]) -> int:
    """Print what is found in the files, or in all that git knows; 1 if there is anything."""
    CheckRegistry().register_many(__register__)
    faults = [fault for path in (map(Path, names) if names else _tracked()) for fault in found_in(path)]
    print("\n".join(faults) or "No faults of style were found.")
    return int(bool(faults))


def found_in(path: Path) -> Iterator[str]:
    """The faults of a file, a line each."""
    text = path.read_text("utf-8")
    prose = _BLANKED[path.suffix].sub(_blank, text) if path.suffix in _BLANKED else text
    for phrase, instead in _PHRASES.items():
        for match in phrase.finditer(prose):
            yield f"{path}:{_line(prose, match.start())}: {match[0]!r}: write {instead}"
    if path.suffix in PROSE and prose.strip():
        for result in LintFile(path.name, prose).lint(CONFIG):
            yield f"{path}:{result.pos[0]}: {result.check_result.message}"


CONFIG: Final[Config] = {
    "max_errors": DEFAULT["max_errors"],
    "checks": DEFAULT["checks"] | dict.fromkeys(UNSUITED, False),
}


def _tracked() -> Iterator[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in PROSE + SOURCES and not name.startswith(LEFT_OUT) and path.is_file():
            yield path


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
