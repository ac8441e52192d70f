"""The README's snippets, run as they stand: only the endpoint is replaced."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from endpoints import ON_AWS, OTHER_ENDPOINT

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
ENDPOINT = "http://127.0.0.1:8000"


def snippets(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def promised_output(snippet: str) -> str:
    """What the comments beside its print calls say."""
    return "".join(f"{found}\n" for found in re.findall(r"^print\(.*\)  # (.*)$", snippet, re.MULTILINE))


def run(command: list[str], environment: dict[str, str]) -> str:
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.mark.skipif(ON_AWS, reason="the snippets name their own region and credentials")
def test_over_http(endpoint: str, command_environment: dict[str, str]) -> None:
    over_http, _ = snippets("python")
    assert ENDPOINT in over_http
    printed = run([sys.executable, "-c", over_http.replace(ENDPOINT, endpoint)], command_environment)
    assert printed == promised_output(over_http)

    (shell,) = snippets("sh")
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    counted = run(["sh", "-c", shell.replace(ENDPOINT, endpoint)], {**command_environment, "PATH": path})
    assert '"Count": 1' in counted


@pytest.mark.skipif(OTHER_ENDPOINT is not None, reason="needs no endpoint")
def test_in_process() -> None:
    _, in_process = snippets("python")
    assert run([sys.executable, "-c", in_process], dict(os.environ)) == promised_output(in_process)
