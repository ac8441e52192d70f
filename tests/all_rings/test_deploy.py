"""The image of the container and the Makefile of the examples, without Docker and without a network."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from fnmatch import fnmatch
from itertools import takewhile
from pathlib import Path
from typing import cast

import orjson
import pytest
from click.testing import CliRunner

from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.server import running

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text("utf-8")
# The image that runs, which is the last one.
STEPS = [
    (line.partition(" ")[0], line.partition(" ")[2])
    for line in DOCKERFILE.split("\nFROM ")[-1].splitlines()
    if line and not line.startswith("#")
]


def step(name: str) -> str:
    (found,) = [rest for step, rest in STEPS if step == name]
    return found


def test_the_server_starts_in_a_folder_that_everybody_may_write_and_that_is_kept(tmp_path: Path) -> None:
    folder = step("WORKDIR")
    assert step("VOLUME") == folder
    (made,) = [rest for name, rest in STEPS if name == "RUN" and rest.endswith(f" {folder}")]
    order = [name for name, _ in STEPS]
    assert order.index("USER") > max(n for n, name in enumerate(order) if name == "RUN")
    here = tmp_path / "folder"
    subprocess.run([*shlex.split(made)[:-1], str(here)], check=True)
    assert stat.S_IMODE(here.stat().st_mode) == 0o1777
    # Nothing else says where the data is, because --memory and --postgres would contradict it.
    assert "HASHRANGE_DATA_DIR" not in DOCKERFILE
    assert step("USER").isdecimal()  # so that it is known not to be root
    assert step("EXPOSE") == "8000"


def test_the_health_check_asks_the_server_of_the_container() -> None:
    check = orjson.loads(step("HEALTHCHECK").partition("CMD ")[2])
    assert check[0] == "hashrange"

    def status(port: str) -> int:
        environment = os.environ | {"HASHRANGE_PORT": port}
        command = [sys.executable, "-m", *check]
        return subprocess.run(command, env=environment, capture_output=True, check=False).returncode

    with Database.in_memory() as database, running(database, admin=bind_admin(0)) as url:
        port = url.rpartition(":")[2]
        assert status(port) == 0
    assert status(port) != 0


def test_the_image_is_built_of_what_it_copies_and_of_nothing_else() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert "*" in ignored
    taken = {line[1:] for line in ignored if line.startswith("!")}
    copied = {
        source.rstrip("/")
        for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    }
    assert taken == copied
    assert all((ROOT / one).exists() for one in copied)
    assert any(fnmatch("src/hashrange/__pycache__", line) for line in ignored)


@pytest.mark.parametrize(
    ("target", "has", "installs"),
    [
        ("test", ("hashrange", "hashrange_patterns", "boto3"), True),  # as after `make serve`
        ("test", ("hashrange", "hashrange_patterns", "hashrange_sync", "boto3", "mypy", "pytest"), False),
        ("run", ("hashrange", "hashrange_patterns", "hashrange_sync", "boto3"), False),
        ("run", (), True),
    ],
)
@pytest.mark.parametrize(
    "example", ["page-views", "blog-statistics", "news-feed", "quick-photos", "branch-office"]
)
def test_an_example_installs_what_it_needs(
    tmp_path: Path, example: str, target: str, has: tuple[str, ...], installs: bool
) -> None:
    python, log = tmp_path / "python", tmp_path / "log"
    python.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        "if sys.argv[1] == '-c':\n"
        f"    wanted = sys.argv[2].removeprefix('import ').split(', ')\n"
        f"    sys.exit(not set(wanted) <= {set(has)!r})\n"
    )
    make = tmp_path / "make"
    make.write_text(f'#!/bin/sh\necho "$@" >> {log}\n')
    for one in (python, make):
        one.chmod(0o755)
    command = ["make", "-C", str(ROOT / "examples" / example), target, f"PYTHON={python}", f"MAKE={make}"]
    subprocess.run(command, check=True, capture_output=True)
    assert log.exists() == installs
    if installs:
        assert log.read_text().split()[-1] == ".venv/.develop"


def test_no_text_names_a_package_that_no_index_has() -> None:
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    named = [
        (file.name, line)
        for file in files
        for line in file.read_text("utf-8").splitlines()
        if re.search(r"""pip install[^|]*['"]?hashrange(\[|['"\s]|$)""", line) and "@ git+" not in line
    ]
    assert named == []


def _services() -> set[str]:
    """The services of AWS for which the code makes clients of boto3."""
    calls = [
        call
        for file in (ROOT / "src").rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args
    ]
    named = [call.args[0] for call in calls if cast(ast.Attribute, call.func).attr in ("client", "resource")]
    return {str(one.value) for one in named if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def test_the_image_keeps_the_descriptions_of_all_services_that_the_code_uses(tmp_path: Path) -> None:
    import botocore

    data = tmp_path / "opt/hashrange/lib/python3.13/site-packages/botocore/data"
    for service in (Path(botocore.__file__).parent / "data").iterdir():
        if service.is_dir():
            (data / service.name).mkdir(parents=True)
    (cut,) = re.findall("^RUN (find .*botocore/data .*)$", DOCKERFILE, re.MULTILINE)
    subprocess.run(cut.replace("/opt/", f"{tmp_path}/opt/"), shell=True, check=True)
    left = {service.name for service in data.iterdir()}
    used = _services()
    assert {"s3", "kinesis", "dynamodb", "dynamodbstreams"} <= used
    assert used <= left
    assert left - used == {"sts", "sso", "sso-oidc", "signin"}  # which give credentials


UNITS = {
    "hashrange": (),
    "hashrange-sync": (),
    "hashrange primary": ("two-machines/primary.conf",),
    "hashrange standby": ("two-machines/standby.conf",),
}


def unit_texts(name: str) -> list[str]:
    """A unit of systemd, and the files that change it."""
    files = [f"{name.split()[0]}.service", *UNITS[name]]
    return [(ROOT / "deploy" / file).read_text("utf-8") for file in files]


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_starts_a_command_with_options_that_it_has(name: str) -> None:
    commands = re.findall(
        r"^ExecStart(?:Post)?=(/opt/hashrange/bin/hashrange .*)$", unit_texts(name)[-1], re.MULTILINE
    )
    assert commands
    for command in commands:
        words = shlex.split(command)[1:]
        path = list(takewhile(lambda word: word.isalpha(), words))
        options = [word.partition("=")[0] for word in words if word.startswith("--")]
        # (a standby takes the options of the server as well)
        shown = [CliRunner().invoke(main, [*one, "--help"]).stdout for one in (path, ["serve"])]
        known = "".join(shown if path == ["standby"] else shown[:1])
        assert "Usage" in known
        assert [option for option in options if not re.search(rf"{option}\b", known)] == []


@pytest.mark.parametrize("name", UNITS)
def test_systemd_accepts_a_unit(tmp_path: Path, name: str) -> None:
    if (program := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd-analyze, of systemd, is missing")
    unit = tmp_path / f"{name.split()[0]}.service"
    changes = tmp_path / f"{unit.name}.d"
    changes.mkdir()
    for number, text in enumerate(unit_texts(name)):
        path = changes / "role.conf" if number else unit
        path.write_text(text.replace("/opt/hashrange/bin/hashrange", sys.executable))
    paths = os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:"}
    done = subprocess.run(
        [program, "verify", str(unit)], env=paths, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
