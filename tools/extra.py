"""Print what an extra of pyproject.toml needs, a line each: `make` installs it without the package itself.

    python tools/extra.py NAME
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

if len(sys.argv) != 2:
    sys.exit(__doc__)
PROJECT = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text("utf-8"))
print("\n".join(PROJECT["project"]["optional-dependencies"][sys.argv[1]]))
