"""What the options and the commands of this engine say where its package, or its driver, is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hashrange.storage.embedded import EmbeddedEngine

URL = "postgresql://nobody@nowhere.invalid/none"
COMMANDS = {
    "serve": (["serve", "--port", "0", "--postgres", URL], 1),
    "check": (["check", URL], 2),
    "copy from": (["copy", URL, "new"], 1),
    "copy to": (["copy", "FOLDER", URL], 1),
}
NO_DRIVER = "import sys; sys.modules['psycopg'] = None"
NO_RING = (
    "import importlib.metadata as metadata; found = metadata.entry_points; metadata.entry_points = "
    "lambda **of: [one for one in found(**of) if one.name != 'postgres']"
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("without", "says"),
    [
        (NO_DRIVER, "PostgreSQL's driver cannot be loaded"),
        (NO_RING, "he ring postgres is not installed; install the package hashrange-postgres"),
    ],
    ids=["driver", "ring"],
)
def test_who_lacks_a_part_learns_what_brings_it(
    tmp_path: Path, command: str, without: str, says: str
) -> None:
    given, status = COMMANDS[command]
    EmbeddedEngine(tmp_path).close()
    given = [str(tmp_path) if one == "FOLDER" else one for one in given]
    program = f"{without}; from hashrange.cli import main; main({given!r})"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.returncode == (2 if without == NO_RING and command == "serve" else status)


@pytest.mark.parametrize(("command", "status"), [("check", 2), ("copy", 1)])
def test_a_url_of_no_engine_is_refused(command: str, status: int) -> None:
    given = [command, "mysql://somewhere/else", *(["new"] if command == "copy" else [])]
    ended = subprocess.run(
        [sys.executable, "-m", "hashrange", *given], capture_output=True, text=True, check=False
    )
    assert "is not a URL of PostgreSQL" in ended.stderr
    assert ended.returncode == status
