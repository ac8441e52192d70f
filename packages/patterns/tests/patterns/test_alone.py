"""The patterns without the database."""

from __future__ import annotations

import subprocess
import sys

ALONE = """
import sys, hashrange_patterns
assert not [name for name in sys.modules if name == "hashrange" or name.startswith("hashrange.")]
"""


def test_the_patterns_load_nothing_of_the_database() -> None:
    assert subprocess.run([sys.executable, "-c", ALONE]).returncode == 0
