"""Hashrange in CI, under systemd and in a devcontainer: the steps of these files, run here one by one."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from serving import free_port

ROOT = Path(__file__).resolve().parents[2]
FEATURE = ROOT / "deploy" / "devcontainer-feature"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pure wheel of this checkout."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.so", "*.egg-info"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(source), "."]
    subprocess.run(command, cwd=source, check=True, env=bare_environment())
    (made,) = source.glob("*.whl")
    return made


def bare_environment(**more: str) -> dict[str, str]:
    """The variables of this process without those of AWS, Hashrange and Python."""
    kept = (item for item in os.environ.items() if not item[0].startswith(("AWS_", "HASHRANGE_", "PYTHON")))
    return dict(kept) | more


@pytest.fixture
def stopping(tmp_path: Path) -> Iterator[None]:
    """Stop the servers that were started in the background from programs in `tmp_path`."""
    yield
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"serve" in command and any(part.startswith(str(tmp_path).encode()) for part in command):
            os.kill(int(process.name), signal.SIGTERM)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds the server by /proc")
@pytest.mark.usefixtures("stopping")
def test_the_action_starts_a_server_and_sets_the_variables(wheel: Path, tmp_path: Path) -> None:
    action = yaml.safe_load((ROOT / ".github/actions/serve/action.yml").read_text())
    (step,) = action["runs"]["steps"]
    assert set(step["env"]) == {"OPTIONS", "PORT", "SOURCE", "FOLDER"}
    assert "${{" not in step["run"]  # inputs come by the environment, so that none is run as a program
    files = {name: str(tmp_path / name) for name in ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT")}
    port = str(free_port())
    given = {"OPTIONS": "--memory --log-requests", "PORT": port, "SOURCE": str(wheel)}
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    environment = bare_environment(**files, **given, FOLDER=str(tmp_path / "folder"), PATH=path)
    subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], env=environment, check=True)
    exported = dict(line.split("=", 1) for line in (tmp_path / "GITHUB_ENV").read_text().splitlines())
    assert exported["AWS_ENDPOINT_URL_DYNAMODB"] == f"http://127.0.0.1:{port}"
    assert (tmp_path / "GITHUB_OUTPUT").read_text() == f"endpoint=http://127.0.0.1:{port}\n"
    # What comes after it has an SDK, which needs nothing but the variables.
    client = "import boto3; print(boto3.client('dynamodb').list_tables()['TableNames'])"
    environment = bare_environment(**exported)
    asked = subprocess.run(
        [sys.executable, "-c", client], env=environment, capture_output=True, text=True, check=True
    )
    assert asked.stdout == "[]\n"
    command = Path((tmp_path / "GITHUB_PATH").read_text().strip()) / "hashrange"
    subprocess.run([command, "healthcheck", "--port", port], check=True)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds the server by /proc")
@pytest.mark.usefixtures("stopping")
def test_the_devcontainer_feature_installs_and_starts(wheel: Path, tmp_path: Path) -> None:
    feature = tmp_path / "feature"
    shutil.copytree(FEATURE, feature)
    python = tmp_path / "programs" / "python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    root, port = tmp_path / "root", str(free_port())
    environment = bare_environment(ROOT=str(root), MEMORY="false", PORT=port, PATH=path, TMPDIR=str(tmp_path))
    refused = subprocess.run([feature / "install.sh"], env=environment, capture_output=True, text=True)
    assert refused.returncode == 1
    assert "Copy a wheel" in refused.stderr
    shutil.copy(wheel, feature)
    subprocess.run([feature / "install.sh"], env=environment, check=True)
    for _ in range(2):  # the second time it runs already
        subprocess.run([root / "usr/local/bin/hashrange-start"], env=environment, check=True)
    assert (root / "var/lib/hashrange/data/FORMAT").exists()


def test_the_options_of_the_feature_are_those_of_its_script() -> None:
    feature = yaml.safe_load((FEATURE / "devcontainer-feature.json").read_text())
    script = (FEATURE / "install.sh").read_text()
    for name, option in feature["options"].items():
        default = str(option["default"]).lower()
        assert f"${{{name.upper()}:-{default}}}" in script


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
@pytest.mark.parametrize("name", ["hashrange.service", "hashrange-sync.service"])
def test_the_unit_is_sound_and_has_few_rights(tmp_path: Path, name: str) -> None:
    text = (ROOT / "deploy" / name).read_text()
    programs = set(re.findall(r"^Exec\w+=(\S+)", text, re.MULTILINE))
    assert programs == {"/opt/hashrange/bin/hashrange"}
    unit = tmp_path / name
    unit.write_text(text.replace(programs.pop(), "/bin/true"))
    verified = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (verified.returncode, verified.stderr) == (0, "")
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", unit], capture_output=True, text=True
    )
    level = re.search(r"exposure level for \S+: ([\d.]+)", judged.stdout)
    assert level is not None, judged.stderr
    assert float(level[1]) < 2
