"""The docs have a picture of each page that has one, light and dark."""

from __future__ import annotations

from pathlib import Path

from console_pictures import FOLDER, PAGES, pictures

DOCS = Path(__file__).parents[2] / "docs"


def test_the_docs_show_every_picture_and_no_others() -> None:
    files = {file.name for _, _, file in pictures()}
    assert {file.name for file in FOLDER.iterdir()} == files
    text = (DOCS / "console.md").read_text(encoding="utf-8")
    for name in PAGES:
        assert f"pictures/{name}-light.png" in text
        assert f"pictures/{name}-dark.png" in text
