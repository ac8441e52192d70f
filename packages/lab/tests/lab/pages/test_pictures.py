"""The docs have a picture of each page that has one, light and dark."""

from __future__ import annotations

from console_pictures import check
from lab_pictures import FOLDER, PAGES


def test_the_docs_show_every_picture_and_no_others() -> None:
    check(FOLDER, PAGES, FOLDER.parent / "load.md")
