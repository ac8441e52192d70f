"""Runs of pytest in a process of their own, with Hashrange's plugin and pytest-xdist and no other plugin.

The plugin is named instead of found: it is found only where Hashrange was installed with its entry points.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_pytest(folder: Path, *options: str) -> str:
    """What pytest prints about the tests in `folder`, all of which have to pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "hashrange.testing.plugin", "-p", "xdist.plugin"]
    command += ["-p", "no:cacheprovider", *options, "."]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
