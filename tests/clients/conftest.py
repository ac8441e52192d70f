"""Fixtures of the tests of other people's clients: programs of theirs that run in processes of their own.

The Python clients that can live beside the newest boto3 are imported by their tests. The others (those of
Node.js, and aioboto3, which needs an older botocore) are programs in `node/` and `aioboto3/`: a test runs one
and gives it the name of a table that it may create, and asserts the JSON that it prints last. They find
Hashrange by the environment variables that AWS documents and by nothing else: they are configured as for AWS
itself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CLIENTS = Path(__file__).resolve().parent
NODE = CLIENTS / "node"
AIOBOTO3 = CLIENTS / "aioboto3"
IN_PROCESS = CLIENTS / "in_process"
PROGRAM_SECONDS_MAX = 120.0

RunProgram = Callable[..., dict[str, Any]]


@pytest.fixture
def client_environment(command_environment: dict[str, str], endpoint: str) -> dict[str, str]:
    """The environment in which any AWS SDK reaches `endpoint`, for items and for streams."""
    return {
        **command_environment,
        "AWS_REGION": command_environment["AWS_DEFAULT_REGION"],
        "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": endpoint.replace("://dynamodb.", "://streams.dynamodb."),
    }


@pytest.fixture
def run_node(client_environment: dict[str, str]) -> RunProgram:
    """Run a program of `node/` with the given arguments; what it printed, from JSON."""
    node = shutil.which("node")
    if node is None or not (NODE / "node_modules" / ".installed").exists():
        pytest.skip("the Node.js clients are not installed: `make test` does it with Node.js 20 or newer")

    def run_node(program: str, *arguments: str) -> dict[str, Any]:
        return _run([node, str(NODE / program), *arguments], client_environment)

    return run_node


@pytest.fixture
def run_aioboto3(client_environment: dict[str, str]) -> RunProgram:
    """Run a program of `aioboto3/` with the given arguments; what it printed, from JSON."""
    python = _python_of("aioboto3")

    def run_aioboto3(program: str, *arguments: str) -> dict[str, Any]:
        return _run([python, str(AIOBOTO3 / program), *arguments], client_environment)

    return run_aioboto3


@pytest.fixture
def run_in_process() -> RunProgram:
    """Run a program of `in_process/`, which has Hashrange in its own process, and parse the JSON that it
    prints. It gets a region, but neither credentials nor an endpoint."""

    def run_in_process(
        program: str, environment: str = "in-process", *arguments: str
    ) -> dict[str, Any]:
        variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        files = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
        command = [_python_of(environment), str(IN_PROCESS / program), *arguments]
        return _run(command, variables | files | {"AWS_DEFAULT_REGION": "us-east-1"})

    return run_in_process


def _python_of(environment: str) -> str:
    """The interpreter of an environment that the Makefile puts into the one in which the tests run, or, of a
    compiled hot path, beside it."""
    beside = (Path(home) / environment / "bin" / "python" for home in (sys.prefix, Path(sys.prefix).parent))
    python = next((python for python in beside if python.exists()), None)
    if python is None:
        target = environment if environment in ("crewai", "feast", "haystack") else "test"
        pytest.skip(f"{environment} is not installed: `make {target}` gives it an environment of its own")
    return str(python)


def _run(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """The JSON on the last line of a program's output; if it fails, the test does so with its errors."""
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PROGRAM_SECONDS_MAX, check=False
    )
    assert ended.returncode == 0, f"{command} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}"
    printed: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return printed
