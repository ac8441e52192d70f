"""The Python of the guides runs as it stands, and gives what its comments say.

The blocks of a page run one after the other, with a `client` and with a table "blog" that are there. An
expression with a comment behind it is compared with it.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from hashrange.patterns import Table

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs" / "patterns").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_does_what_it_says(page: Path, client: Any, table: Table) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    if "ApproximateVisitors" in text:
        pytest.importorskip("datasketches")
    names: dict[str, Any] = {"client": client}
    for block in blocks:
        run(block.replace('"blog"', f'"{table.name}"'), names)


def run(source: str, names: dict[str, Any]) -> None:
    """Execute `source` statement by statement, and compare the expressions that have comments."""
    lines = source.splitlines()
    for statement in ast.parse(source).body:
        last = statement.end_lineno or statement.lineno
        comment = lines[last - 1][statement.end_col_offset or 0 :].strip()
        if isinstance(statement, ast.Expr) and comment.startswith("# "):
            value = eval(compile(ast.Expression(statement.value), "guide", "eval"), names)
            assert repr(value) == comment.removeprefix("# "), ast.unparse(statement)
        else:
            exec(compile(ast.Module([statement], []), "guide", "exec"), names)


def test_a_wrong_comment_is_found() -> None:
    run("x = 1  # a comment about a statement\nx + 1  # 2", {})
    with pytest.raises(AssertionError, match=re.escape("x + 1")):
        run("x = 1\nx + 1  # 3", {})
