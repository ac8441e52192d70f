"""The container: built and started where there is a builder; its steps run one by one where there is none.

Both as deploy/Dockerfile has them. Without a builder the steps run with this machine's Python, in a folder in
place of the image's root, and the server starts as the image's user on a file system that is read-only.
"""

from __future__ import annotations

import gzip
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import orjson
import pytest

from serving import free_port, read_lines
from worlds import table_of

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
PULLED_BYTES_MAX = 100_000_000
# What the base image takes to pull: python:3.13-slim is 43 to 46 MB.
BASE_PULLED_BYTES = 46_000_000
READY_SECONDS_MAX = 60.0


def instructions(stage: int) -> list[tuple[str, str]]:
    """The instructions of a stage of the Dockerfile, in order."""
    text = re.split(r"^FROM .*\n", DOCKERFILE.read_text("utf-8"), flags=re.MULTILINE)[stage + 1]
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def use(endpoint: str) -> None:
    """Put an item in a table, which is made if it is not there."""
    client: Any = boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )
    if not client.list_tables()["TableNames"]:
        client.create_table(**table_of("pages", "url"))
        client.put_item(TableName="pages", Item={"url": {"S": "/"}})
    assert client.scan(TableName="pages")["Count"] == 1


def has_builder() -> bool:
    """Whether a builder of containers answers."""
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True).returncode == 0


def docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.skipif(not has_builder(), reason="no builder of containers answers")
def test_the_image_is_built_and_started() -> None:
    name = f"hashrange-test-{uuid.uuid4().hex}"
    docker("build", "--file", str(DOCKERFILE), "--tag", name, str(ROOT))
    try:
        saved = subprocess.run(["docker", "save", name], check=True, capture_output=True).stdout
        assert len(gzip.compress(saved, 6)) < PULLED_BYTES_MAX
        docker("volume", "create", name)
        for _ in range(2):  # the second container finds what the first one kept
            with container(name) as port:
                use(f"http://127.0.0.1:{port}")
    finally:
        for kind in ("volume", "image"):
            subprocess.run(["docker", kind, "rm", "--force", name], check=True, capture_output=True)


@contextmanager
def container(name: str) -> Iterator[int]:
    """A container of an image, with the volume of the same name and no rights. Yields its port."""
    rights = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    volume = ["--volume", f"{name}:/var/lib/hashrange"]
    docker("run", "--detach", "--rm", "--name", name, "--publish", "127.0.0.1::8000", *rights, *volume, name)
    try:
        docker("exec", name, "hashrange", "healthcheck", "--wait", str(READY_SECONDS_MAX))
        yield int(docker("port", name, "8000").rpartition(":")[2])
    finally:
        docker("stop", "--time", "30", name)


def python_for_all() -> str | None:
    """A Python of this version that every user of the machine can run; None if there is none."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for candidate in (os.path.realpath(sys.executable), f"/usr/bin/python{version}"):
        path = Path(candidate)
        if path.exists() and all(folder.stat().st_mode & 0o001 for folder in (path, *path.parents)):
            return candidate
    return None


@contextmanager
def folder_for_all() -> Iterator[Path]:
    """A new folder that every user may enter, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def run_steps(root: Path) -> None:
    """Run the steps of the first stage in a folder, but for the installation of a compiler."""
    python = python_for_all() or sys.executable
    variables = os.environ | {"COMPILE": "0", "PYTHONPATH": ""}
    programs = root / "programs"
    programs.mkdir()
    (programs / "python").symlink_to(python)
    (programs / "pip").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pip "$@"\n')
    (programs / "pip").chmod(0o755)
    variables["PATH"] = f"{programs}{os.pathsep}{variables['PATH']}"
    ran = 0
    for name, rest in instructions(0):
        if name == "COPY":
            *sources, target = rest.split()
            place = root / target.lstrip("/")
            for source in sources:
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, place)
                else:
                    place.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / source, place)
        elif name == "RUN" and not rest.startswith("apt-get"):
            script = re.sub(r"(?<![\w*])/(opt|source|wheels)\b", rf"{root}/\1", rest)
            finished = subprocess.run(["sh", "-ec", script], env=variables, capture_output=True, text=True)
            assert finished.returncode == 0, f"{rest}\n{finished.stderr}"
            ran += 1
    assert ran >= 4


def test_the_steps_make_a_small_image_whose_server_needs_no_rights() -> None:
    # (one test, because the steps take long)
    with folder_for_all() as image:
        run_steps(image)
        check_size(image)
        if not can_confine():
            pytest.skip("needs root, who makes file systems read-only, and a Python for other users")
        check_start(image)


def check_size(image: Path) -> None:
    """The layer and the base image are small enough, and nothing of the build is left."""
    packed = subprocess.run(
        ["tar", "--create", "--gzip", "--directory", str(image), "opt"], check=True, capture_output=True
    ).stdout
    assert len(packed) + BASE_PULLED_BYTES < PULLED_BYTES_MAX
    site = next((image / "opt" / "hashrange" / "lib").glob("python3*")) / "site-packages"
    assert not (site / "pip").exists()
    assert {path.name for path in (site / "botocore" / "data").iterdir() if path.is_dir()} >= {"s3", "sts"}


def can_confine() -> bool:
    """Whether this user may make file systems read-only for a program, and run it as another user."""
    if not all(map(shutil.which, ("unshare", "setpriv"))) or python_for_all() is None:
        return False
    trial = ["unshare", "--mount", "setpriv", "--reuid=10001", "--clear-groups", "true"]
    return subprocess.run(trial, capture_output=True).returncode == 0


def check_start(image: Path) -> None:
    """The server starts as the image's user, without rights, where only its volume can be written to."""
    final = instructions(1)
    (user,) = [rest for name, rest in final if name == "USER"]
    (made,) = [rest for name, rest in final if name == "RUN" and rest.startswith("install ")]
    (entry,) = [orjson.loads(rest) for name, rest in final if name == "ENTRYPOINT"]
    (check,) = [rest.partition("CMD ")[2] for name, rest in final if name == "HEALTHCHECK"]
    assert int(user) > 0
    (environment,) = [rest for name, rest in final if name == "ENV"]
    given = dict(pair.split("=", 1) for pair in environment.split())
    programs = image / "opt" / "hashrange" / "bin"
    port, admin_port = free_port(), free_port()
    variables = given | {"PATH": str(programs), "HASHRANGE_ADMIN_PORT": str(admin_port)}
    variables |= {"HASHRANGE_PORT": str(port), "HASHRANGE_LOG_FORMAT": "json"}
    with folder_for_all() as folder:
        volume = folder / "volume"
        subprocess.run([*shlex.split(made)[:-1], str(volume)], check=True)
        for _ in range(2):
            with read_only(user, volume, [str(programs / entry[0]), *entry[1:]], variables) as process:
                use(f"http://127.0.0.1:{port}")
                command = orjson.loads(check)
                asked = subprocess.run(
                    [programs / command[0], *command[1:]], env=variables, capture_output=True, text=True
                )
                assert (asked.returncode, asked.stdout) == (0, "ok\n"), asked.stderr
                process.send_signal(signal.SIGTERM)
                assert process.wait(30) == 0
        assert (volume / "hashrange-data" / "FORMAT").stat().st_uid == int(user)


@contextmanager
def read_only(
    user: str, volume: Path, command: list[str], variables: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """A program of another user, in `volume`, which is the only place where it may write."""
    script = (
        "mount --make-rprivate / && mount --bind / / && mount --rbind {0} {0} && mount -o remount,ro,bind / "
        "&& cd {0} && ! touch /a-file 2>/dev/null && exec setpriv --reuid={1} --regid={1} --clear-groups "
        '--bounding-set=-all --no-new-privs "$@"'
    ).format(shlex.quote(str(volume)), user)
    process = subprocess.Popen(
        ["unshare", "--mount", "sh", "-ec", script, "sh", *command],
        env=variables | {"PATH": f"{variables['PATH']}:/usr/bin:/bin:/usr/sbin:/sbin"},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    reader = threading.Thread(target=read_lines, args=(process.stderr, lines), daemon=True)
    reader.start()
    try:
        said = ""
        while '"event":"started"' not in said:
            line = lines.get(timeout=READY_SECONDS_MAX)
            assert line is not None, said
            said += line
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        reader.join()
        process.stderr.close()
