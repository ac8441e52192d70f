"""Write docs/python.md, the list of all Python names that programs may use, from the code:

    python -m tools.python_names

A test compares the page with what this module makes, so run it after a change of a public name. It reads the
source and imports none of it.
"""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Final

from hashrange.rings import PUBLIC

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "python.md"
MODULES: Final = (
    "hashrange",
    "hashrange.testing",
    "hashrange.client",
    "hashrange.database",
    "hashrange.clock",
    "hashrange.faults",
    "hashrange.costs",
    "hashrange.prices",
    "hashrange.errors",
    "hashrange.server",
    "hashrange_patterns",
    "hashrange_patterns.entities",
    "hashrange_patterns.migrations",
    "hashrange_triggers",
    "hashrange_postgres",
    "hashrange_sql",
    "hashrange_sync",
)
"""The modules whose names programs may use: those of `__all__`."""
_HEAD: Final = """\
# Python names

These are the Python names that programs may use, below the modules to import them from. All other names are
private, and change without notice. The API reference of the documentation site has the parameters;
[Tests in Python](testing.md) has pytest's fixtures and options.
"""
_RINGS: Final = """\
## For rings

A [ring](rings.md) may also import these modules, `hashrange.rings.PUBLIC`, and use their names that do not
begin with an underscore. The docstring of each module says what it has.
"""


def page() -> str:
    """The text of the page."""
    parts = [_HEAD]
    for module in MODULES:
        parts += [f"## `{module}`\n", f"{line(module)}\n"]
        rows = [f"| `{name}` | {_cell(line(module, name))} |" for name in names(module)]
        parts.append("\n".join(["| name | what it is |", "|---|---|", *rows]) + "\n")
    parts += [_RINGS, "\n".join(f"- `{module}`" for module in sorted(PUBLIC)) + "\n"]
    return "\n".join(parts)


def names(module: str) -> list[str]:
    """The names that a module exports, sorted."""
    found = _assigned(_tree(module), "__all__")
    return sorted(ast.literal_eval(found[0])) if found is not None else []


def line(module: str, name: str = "") -> str:
    """The first sentence about a module, or about a name that it exports; "" if there is none."""
    text = inspect.cleandoc(_text(module, name)).partition("\n\n")[0]
    return re.split(r"(?<=\.)\s", " ".join(text.split()) + " ", maxsplit=1)[0].strip()


def _text(module: str, name: str) -> str:
    """The docstring of a module or of a name, in the module that defines the name."""
    tree = _tree(module)
    if not name:
        return ast.get_docstring(tree) or ""
    for node in reversed(tree.body):  # (the last of several is no overload)
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node) or ""
    if (assigned := _assigned(tree, name)) is not None:
        return assigned[1]
    for imported in ast.walk(tree):
        if isinstance(imported, ast.ImportFrom) and imported.module:
            for alias in imported.names:
                if (alias.asname or alias.name) == name:
                    return _text(imported.module, alias.name)
    raise ValueError(f"{module} exports {name}, which it neither defines nor imports")


def _assigned(tree: ast.Module, name: str) -> tuple[ast.expr, str] | None:
    """The value that a module gives a name, and the text below the assignment."""
    for node, after in zip(tree.body, [*tree.body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.Assign):
            target: ast.expr = node.targets[0]
        elif isinstance(node, ast.AnnAssign):
            target = node.target
        else:
            continue
        if isinstance(target, ast.Name) and target.id == name and node.value is not None:
            text = after.value if isinstance(after, ast.Expr) else None
            return node.value, str(text.value) if isinstance(text, ast.Constant) else ""
    return None


@cache
def _tree(module: str) -> ast.Module:
    named = Path(*module.split("."))
    places = [folder / named for folder in (ROOT / "src", *ROOT.glob("packages/*/src"))]
    paths = [path for place in places for path in (place / "__init__.py", place.with_suffix(".py"))]
    [path] = [path for path in paths if path.is_file()]
    return ast.parse(path.read_text(encoding="utf-8"))


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
