"""`hashrange mcp`: its options, and the skill, each of whose commands is run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hashrange.cli import main
from serving import free_port

ROOT = Path(__file__).resolve().parents[4]
SKILL = (ROOT / "packages/mcp/src/hashrange_mcp/SKILL.md").read_text("utf-8")
COMMANDS = re.findall(r"^```sh\n(.*?)^```", SKILL, re.MULTILINE | re.DOTALL)
INSTALLS, COMMANDS = COMMANDS[0], COMMANDS[1:]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("0.0.0.0:8765", "not an address of this machine only"),
        ("db.example:8765", "not an address of this machine only"),
        ("127.0.0.1", "names no port"),
        ("127.0.0.1:http", "names no port"),
        ("[::1]:99999", "names no port"),
    ],
)
def test_the_tools_listen_to_this_machine_only(address: str, said: str) -> None:
    done = CliRunner().invoke(main, ["mcp", "--http", address])
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def test_the_skill_is_printed() -> None:
    done = CliRunner().invoke(main, ["mcp", "--skill"])
    assert done.output == SKILL
    assert SKILL.startswith("---\nname: hashrange\ndescription: ")
    module = subprocess.run(
        [sys.executable, "-m", "hashrange_mcp", "--skill"], capture_output=True, check=True
    )
    assert module.stdout.decode() == SKILL


def environment(**more: str) -> dict[str, str]:
    """The variables of a machine that knows nothing of Hashrange but the programs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "HASHRANGE_"))}
    return {**kept, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **more}


def test_what_the_skill_says_to_install_can_be_installed() -> None:
    # (for pip, 0 means no isolation: in another environment a dry run would install nothing to build with)
    dry = environment(PIP_DRY_RUN="1", PIP_NO_DEPS="1", PIP_NO_BUILD_ISOLATION="0")
    done = subprocess.run(["bash", "-e"], input=INSTALLS, env=dry, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("Would install")]
    assert re.search(r"hashrange-\d", line)
    assert "hashrange-mcp" in line


def test_each_command_of_the_skill_works(tmp_path: Path) -> None:
    port = free_port()
    script = "".join(COMMANDS).replace("127.0.0.1:8000", f"127.0.0.1:{port}")
    commands = "trap 'kill $(jobs -p) && wait' EXIT\nset -eux\n" + script
    # (the settings of the server and of healthcheck, so that no other server is met)
    variables = environment(HASHRANGE_PORT=str(port), HASHRANGE_ADMIN_PORT=str(free_port()))
    done = subprocess.run(
        ["bash"], input=commands, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"N": "12.5"' in done.stdout
    assert "1 passed" in done.stdout
    assert '"order#1"' in (tmp_path / "orders.jsonl").read_text()
    assert '"Cause":"request"' in done.stdout
    for program in ("costs advice", "doctor", "faults list", "--version"):
        assert f"+ hashrange {program}" in done.stderr
