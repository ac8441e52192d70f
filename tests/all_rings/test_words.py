"""tools/words.py finds faults of style in prose, and none in code."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import words


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.md", "Keys stay valid.\n\nDeleted items are gone for ever.\n", ["3: 'for ever': write forever"]),
        ("a.py", '"""Build the index anew."""\n', ["1: 'anew': write again"]),
        ("a.html", "<p>{{ whoever }} The <b>the</b> table</p>\n", []),
        ("a.md", "Call `begin_anew()`.\n\n```\nfor ever\n```\n\n    anew\n", []),
        (
            "a.md",
            "It is is in the the table.\n",
            ["1: 'the the': write the", "1: 'is is': write the word once"],
        ),
    ],
)
def test_phrases(tmp_path: Path, name: str, text: str, found: list[str]) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert list(words.found_in(path)) == [f"{path}:{fault}" for fault in found]


def test_proselint_judges_prose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.md"
    path.write_text("One.\n\nThis is very unique.\n", "utf-8")
    assert words.main([str(path)]) == 1
    assert capsys.readouterr().out.startswith(f"{path}:3: ")
    path.write_text("This is unique.\n", "utf-8")
    assert words.main([str(path)]) == 0
