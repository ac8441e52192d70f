"""The README's snippets, run as they stand: only the endpoint and a table's name are replaced."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import uuid
from pathlib import Path

import pytest

from endpoints import ON_AWS, OTHER_ENDPOINT

DOCS = Path(__file__).resolve().parents[2] / "docs"
README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
ENDPOINT = "http://127.0.0.1:8000"


def snippets(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def promised_output(snippet: str) -> str:
    """The lines that the comments beside the snippet's print calls promise."""
    return "".join(f"{found}\n" for found in re.findall(r"^ *print\(.*\)  # (.*)$", snippet, re.MULTILINE))


def run(script: str, directory: Path) -> str:
    """Run a script of `sh` in an environment that tells nothing of AWS, and return the text it printed."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    programs = (str(Path(sys.executable).parent), sysconfig.get_path("scripts"), variables["PATH"])
    files = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    finished = subprocess.run(
        ["sh", "-e", "-c", script],
        env={**variables, **files, "PATH": os.pathsep.join(programs)},
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.mark.skipif(ON_AWS, reason="the snippets name their own endpoint and credentials")
def test_over_http(endpoint: str, tmp_path: Path) -> None:
    exported, shell = snippets("sh")
    assert ENDPOINT in exported
    # The suite's other tests may have a table of this name.
    renamed = shell.replace("--table-name pages", f"--table-name pages-{uuid.uuid4().hex}")
    assert renamed != shell
    assert '"Count": 1' in run(exported.replace(ENDPOINT, endpoint) + renamed, tmp_path)


@pytest.mark.skipif(ON_AWS, reason="the page names its own endpoint and credentials")
def test_the_programs_of_the_first_page(endpoint: str, tmp_path: Path) -> None:
    text = (DOCS / "five-minutes.md").read_text(encoding="utf-8")
    exports = "".join(f"{line}\n" for line in text.splitlines() if line.startswith("export "))
    assert ENDPOINT in exports
    for name, program in re.findall(r"`(\w+\.py)`.*?^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        # The suite's other tests may have a table of the README's name.
        renamed = program.replace('"pages"', f'"pages-{uuid.uuid4().hex}"')
        (tmp_path / name).write_text(renamed, encoding="utf-8")
        script = f"{exports.replace(ENDPOINT, endpoint)}python {name}"
        assert run(script, tmp_path).endswith(promised_output(program))
        assert promised_output(program)


@pytest.mark.skipif(OTHER_ENDPOINT is not None, reason="needs no endpoint")
def test_in_process(tmp_path: Path) -> None:
    _, in_process = snippets("python")
    on_disk = in_process.replace("in_memory()", 'open("data")')
    assert on_disk != in_process
    for name, snippet in (("in_memory.py", in_process), ("on_disk.py", on_disk)):
        (tmp_path / name).write_text(snippet, encoding="utf-8")
        for _ in range(2):
            assert run(f"python {name}", tmp_path) == promised_output(in_process) != ""
    assert (tmp_path / "data" / "FORMAT").exists()


@pytest.mark.skipif(OTHER_ENDPOINT is not None, reason="needs no endpoint")
def test_in_tests(tmp_path: Path) -> None:
    in_tests, _ = snippets("python")
    (tmp_path / "in_tests.py").write_text(in_tests, encoding="utf-8")
    assert run("python in_tests.py", tmp_path) == promised_output(in_tests) != ""
