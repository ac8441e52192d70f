"""Runs of pytest with Hashrange's plugin and no other.

The plugin is named, because pytest finds it only if Hashrange was installed with its entry points.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

from hashrange.testing import plugin

OPTIONS = ["-q", "-p", "no:cacheprovider", "-W", "error"]
# (outside of a process of its own, each of these would take what is the outer run's)
ALONE = ["-p", "no:faulthandler", "-p", "no:unraisableexception", "-p", "no:threadexception"]


def run_pytest(
    folder: Path, *options: str, environment: dict[str, str] | None = None, status: int = 0
) -> str:
    """The output of pytest in this process for the tests in `folder`, all of which have to pass unless
    `status` is 1. Warnings are errors."""
    output = io.StringIO()
    known, path = set(sys.modules), list(sys.path)
    with (
        patch.dict(os.environ, variables(environment), clear=True),
        redirect_stdout(output),
        redirect_stderr(output),
        pytest.MonkeyPatch.context() as patched,
    ):
        patched.chdir(folder)
        try:
            ended = int(pytest.main([*OPTIONS, *ALONE, *options, "."], plugins=[plugin]))
        finally:
            sys.path[:] = path
            for name in set(sys.modules) - known:
                if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                    del sys.modules[name]
    assert ended == status, output.getvalue()
    return output.getvalue()


def run_pytest_in_a_process(folder: Path, *options: str, environment: dict[str, str] | None = None) -> str:
    """The same in a process of its own: for runs with workers, and for what is loaded or made once."""
    plugins = ["-p", "hashrange.testing.plugin", "-p", "xdist.plugin"]
    command = [sys.executable, "-m", "pytest", *OPTIONS, *plugins, *options, "."]
    done = subprocess.run(
        command, cwd=folder, env=variables(environment), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def variables(given: dict[str, str] | None) -> dict[str, str]:
    """The environment of a run: without AWS's variables, and the outer run's."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTEST_"))}
    return known | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "AWS_CONFIG_FILE": os.devnull, **(given or {})}
