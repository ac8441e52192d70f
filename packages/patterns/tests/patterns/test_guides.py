"""The Python of the guides runs as it stands, and gives what its comments say.

The blocks of a page run one after the other, with a `client` and with a table "blog" that are there. An
expression with a comment behind it is compared with it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from guides import blocks_of, run
from hashrange_patterns import Table

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_does_what_it_says(page: Path, client: Any, table: Table) -> None:
    if "ApproximateVisitors" in page.read_text(encoding="utf-8"):
        pytest.importorskip("datasketches")
    names: dict[str, Any] = {"client": client}
    for block in blocks_of(page):
        run(block.replace('"blog"', f'"{table.name}"'), names)


def test_a_wrong_comment_is_found() -> None:
    assert run("x = 1  # a comment about a statement\nx + 1  # 2", {}) == 1
    with pytest.raises(AssertionError, match=re.escape("x + 1")):
        run("import contextlib\nwith contextlib.nullcontext(1) as x:\n    x + 1  # 3", {})
    with pytest.raises(AssertionError, match=re.escape("x + 1")):
        run("x = 1\nx + 1  # 3", {})
