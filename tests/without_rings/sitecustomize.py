"""Hides the rings of this project: a Python with this folder in PYTHONPATH runs as if they were deleted.

Python imports `sitecustomize` at its start, so the processes that tests start are without rings, too. `make
bare` runs the tests of the core so.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec

_NAMES = ("access", "console", "lab", "mcp", "patterns", "postgres", "sql", "sync", "templates", "triggers")
RINGS = {f"hashrange_{ring}" for ring in _NAMES}


class Hidden:
    """Finds none of the packages of rings, before others are asked."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package = name.partition(".")[0]
        if package in RINGS:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        return None


sys.meta_path.insert(0, Hidden())
