"""`hashrange.patterns`, the old name, which programs may use for one release."""

from __future__ import annotations

import subprocess
import sys

SAME = """
import sys, hashrange.patterns, hashrange_patterns
from hashrange.patterns import Counters
from hashrange.patterns.entities.model import Entity
import hashrange_patterns.entities.model
assert hashrange.patterns is hashrange_patterns
assert Entity is hashrange_patterns.entities.model.Entity
"""
WITHOUT = "import sys; sys.modules['hashrange_patterns'] = None; import hashrange.patterns"
ALONE = """
import sys, hashrange_patterns
assert not [name for name in sys.modules if name == "hashrange" or name.startswith("hashrange.")]
"""


def run(program: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *options, "-c", program], capture_output=True, text=True)


def test_both_names_give_the_same_classes_and_the_old_one_warns() -> None:
    assert run(SAME).returncode == 0
    warned = run(SAME, "-W", "error::DeprecationWarning")
    assert "DeprecationWarning: hashrange.patterns is hashrange_patterns now" in warned.stderr


def test_where_the_distribution_is_missing_the_old_name_says_how_to_get_it() -> None:
    missing = run(WITHOUT)
    assert missing.returncode == 1
    assert missing.stderr.rstrip().endswith("pip install packages/patterns")


def test_the_patterns_load_nothing_of_the_database() -> None:
    assert run(ALONE).stderr == ""
