"""Rings of one module, made by tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hashrange import rings


@contextmanager
def rings_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which a ring can be `put`. The rings are looked for again, before and after."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(folder))
    rings.rings.cache_clear()
    yield folder
    rings.rings.cache_clear()
    for module in set(sys.modules) - known:
        if module.endswith(("_ring", "_ring_parts")):
            del sys.modules[module]


def put(folder: Path, name: str, text: str, *, reference: str = "RING") -> None:
    """Install a ring of one module in a folder."""
    module = f"hashrange_{name}_ring"
    (folder / f"{module}.py").write_text(text)
    about = folder / f"hashrange_{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: hashrange-{name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{rings.GROUP}]\n{name} = {module}:{reference}\n")


def put_parts(folder: Path, name: str, members: str, parts: str) -> None:
    """Install a ring in a folder: `members` are arguments of its `Ring`, in which `{parts}:X` refers to X of
    a second module, whose text is `parts`."""
    module = f"hashrange_{name}_ring_parts"
    (folder / f"{module}.py").write_text(parts)
    made = members.replace("{parts}", module).replace("{name}", name)
    put(folder, name, f"from hashrange.rings import *\nRING = Ring(name={name!r}, about='', {made})\n")
