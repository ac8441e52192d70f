"""Runs of pytest in a process of their own, with Hashrange's plugin and pytest-xdist and no other plugin.

The plugin is named, because pytest finds it only if Hashrange was installed with its entry points.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_pytest(
    folder: Path, *options: str, environment: dict[str, str] | None = None, status: int = 0
) -> str:
    """The output of pytest for the tests in `folder`, all of which have to pass unless `status` is 1.
    Warnings are errors."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "hashrange.testing.plugin", "-p", "xdist.plugin"]
    command += ["-p", "no:cacheprovider", "-W", "error", *options, "."]
    known = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTEST_"))}
    known |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "AWS_CONFIG_FILE": os.devnull, **(environment or {})}
    done = subprocess.run(command, cwd=folder, env=known, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout
