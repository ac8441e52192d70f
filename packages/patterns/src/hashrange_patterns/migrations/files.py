"""Migrations in files: one Python module for each, in a folder, whose names begin with the time of their
making.

    migrations/20261122101500_split_names.py

The name is the revision, and names in their order are the order. What was applied is recorded for each
revision, not up to one, so the files of two branches that are merged need no third: each that was not applied
is pending, wherever its name stands. A file defines `steps`, and may name another `table`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hashrange_patterns.migrations.steps import Step

_NAME: Final = re.compile(r"[0-9]\w*", re.ASCII)
_NEW: Final = '''"""{about}."""

from hashrange_patterns.migrations import Change


def up(item):
    return item


steps = [Change(up)]
'''


@dataclass(frozen=True, slots=True)
class Revision:
    """A migration of a file; `table` is the table that it changes if not the one with the records."""

    name: str
    about: str
    steps: tuple[Step, ...]
    table: str | None
    digest: str


def revisions_of(folder: Path) -> list[Revision]:
    """The migrations of the files whose names begin with a digit, in their order."""
    if not folder.is_dir():
        raise ValueError(f"there is no folder {str(folder)!r}: make it, or name another by --folder")
    return [_revision(path) for path in sorted(folder.glob("[0-9]*.py"))]


def write_new(folder: Path, about: str, now: float) -> Path:
    """Write the file of a new migration, which changes nothing yet; returns its path."""
    words = "_".join(re.findall(r"[a-z0-9]+", about.lower()))
    path = folder / f"{datetime.fromtimestamp(now, UTC):%Y%m%d%H%M%S}_{words}.py"
    folder.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(_NEW.format(about=about.replace("\\", "").replace('"', "").strip().rstrip(".")))
    return path


def _revision(path: Path) -> Revision:
    if not _NAME.fullmatch(path.stem):
        raise ValueError(f"{path.name}: the name of a migration has digits, letters and _ only: rename it")
    name = f"hashrange_migration_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # (the annotations of a class are looked up in the module of its name)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    steps = getattr(module, "steps", None)
    if not isinstance(steps, list | tuple) or not all(isinstance(step, Step) for step in steps):
        raise ValueError(f"{path.name} defines no steps: add steps = [Change(up)], or other steps")
    about = (module.__doc__ or path.stem).strip().partition("\n")[0]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return Revision(path.stem, about, tuple(steps), getattr(module, "table", None), digest)
