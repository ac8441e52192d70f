"""The units that the READMEs of the examples name, and those that an action consumes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hashrange.database import Database


def documented(folder: Path) -> dict[str, str]:
    """The table of access patterns of an example's README: what, and its units."""
    lines = (folder / "README.md").read_text(encoding="utf-8").split("## Access patterns")[1].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[0]: row[-1] for row in rows[2:]}


def consumed(database: Database, *actions: Callable[[], object]) -> float:
    """The read and write units that actions consume together."""
    with database.costs() as costs:
        for action in actions:
            action()
    return costs.read_units + costs.write_units
