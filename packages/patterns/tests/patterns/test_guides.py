"""The Python of the guides runs as it stands, and gives what its comments say.

The blocks of a page run one after the other, with a `client` and with a table "blog" that are there. An
expression with a comment behind it is compared with it.

A guide lists what holds, and each line of this list has a test of its name: "Events expire." is tested by
`test_events_expire`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from guides import blocks_of, run
from hashrange_patterns import Table

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs").glob("*.md"))
TESTS = {
    name
    for module in Path(__file__).parent.glob("test_*.py")
    for name in re.findall(r"^def (test_\w+)", module.read_text(encoding="utf-8"), re.MULTILINE)
}
# (they promise nothing of their own)
WITHOUT_PROMISES = {"README", "costs"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_does_what_it_says(page: Path, client: Any, table: Table) -> None:
    names: dict[str, Any] = {"client": client}
    for block in blocks_of(page):
        run(block.replace('"blog"', f'"{table.name}"'), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_promise_of_a_guide_has_a_test(page: Path) -> None:
    _, _, rest = page.read_text(encoding="utf-8").partition("\n## What holds\n\n")
    promises = re.findall(r"^- (.+)", rest.partition("\n\n")[0], re.MULTILINE)
    assert bool(promises) == (page.stem not in WITHOUT_PROMISES)
    names = {"test_" + re.sub(r"\W+", "_", promise.lower()).strip("_"): promise for promise in promises}
    assert {name: promise for name, promise in names.items() if name not in TESTS} == {}


def test_a_wrong_comment_is_found() -> None:
    assert run("x = 1  # a comment about a statement\nx + 1  # 2", {}) == 1
    with pytest.raises(AssertionError, match=re.escape("x + 1")):
        run("import contextlib\nwith contextlib.nullcontext(1) as x:\n    x + 1  # 3", {})
    with pytest.raises(AssertionError, match=re.escape("x + 1")):
        run("x = 1\nx + 1  # 3", {})
