"""Runs the Python code of a page of the documentation, and compares the values with its comments."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any


def blocks_of(page: Path) -> list[str]:
    """The blocks of Python on a page, in their order."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(source: str, names: dict[str, Any]) -> int:
    """Execute `source` statement by statement, also inside `with` blocks, and compare each expression that
    has a comment with the comment. Returns the number of comparisons."""
    return _run(ast.parse(source).body, source.splitlines(), names)


def _run(statements: list[ast.stmt], lines: list[str], names: dict[str, Any]) -> int:
    compared = 0
    for statement in statements:
        last = statement.end_lineno or statement.lineno
        comment = lines[last - 1][statement.end_col_offset or 0 :].strip()
        if isinstance(statement, ast.Expr) and comment.startswith("# "):
            value = eval(_compiled(ast.Expression(statement.value), "eval"), names)
            assert repr(value) == comment.removeprefix("# "), ast.unparse(statement)
            compared += 1
        elif isinstance(statement, ast.With) and len(statement.items) == 1:
            item = statement.items[0]
            manager = eval(_compiled(ast.Expression(item.context_expr), "eval"), names)
            with manager as entered:
                if item.optional_vars is not None:
                    assigned = ast.Assign([item.optional_vars], ast.Name("_entered", ast.Load()))
                    module = ast.fix_missing_locations(ast.Module([assigned], []))
                    exec(compile(module, "guide", "exec"), names | {"_entered": entered}, names)
                compared += _run(statement.body, lines, names)
        else:
            exec(_compiled(ast.Module([statement], []), "exec"), names)
    return compared


def _compiled(tree: ast.Expression | ast.Module, mode: str) -> Any:
    """Code that is compiled as a program of its own: without the `__future__` import of this module, so that
    annotations are evaluated."""
    return compile(tree, "guide", mode, dont_inherit=True)
