"""Clients that speak TLS, and trust the server by the variables that `hashrange tls create` prints."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from serving import serving


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables that the command prints."""
    folder = tmp_path_factory.mktemp("tls")
    command = [sys.executable, "-m", "hashrange", "tls", "create", "--dir", str(folder)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = dict(re.findall(r"^ +export (\w+)=(\S+)", printed, re.MULTILINE))
    assert set(found) == {"AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"}
    return found


@pytest.fixture(scope="module")
def endpoint(variables: dict[str, str]) -> Iterator[str]:
    folder = Path(variables["AWS_CA_BUNDLE"]).parent
    options = ["--tls-cert", str(folder / "server.pem"), "--tls-key", str(folder / "server-key.pem")]
    with serving("--memory", *options) as server:
        yield server.endpoint


@pytest.fixture
def client_environment(
    command_environment: dict[str, str], variables: dict[str, str], endpoint: str
) -> dict[str, str]:
    return {
        **command_environment,
        **variables,
        "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
        "AWS_REGION": command_environment["AWS_DEFAULT_REGION"],
    }


def test_the_sdk_for_javascript(run_node: Callable[..., dict[str, Any]]) -> None:
    assert run_node("encrypted.mjs", "encrypted") == {"length": 100_000}


def test_the_sdk_for_javascript_without_the_authority(
    run_node: Callable[..., dict[str, Any]], client_environment: dict[str, str]
) -> None:
    del client_environment["NODE_EXTRA_CA_CERTS"]
    del client_environment["SSL_CERT_FILE"]
    with pytest.raises(AssertionError, match=r"SELF_SIGNED_CERT_IN_CHAIN|self.signed certificate"):
        run_node("encrypted.mjs", "stranger")


@pytest.mark.parametrize("is_trusted", [True, False])
def test_the_aws_cli(client_environment: dict[str, str], is_trusted: bool) -> None:
    command = shutil.which("aws", path=str(Path(sys.executable).parent)) or shutil.which("aws")
    if command is None:
        pytest.skip("the AWS CLI is not installed")
    if not is_trusted:
        del client_environment["AWS_CA_BUNDLE"]
    ended = subprocess.run(
        [command, "dynamodb", "list-tables", "--output", "text"],
        env=client_environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode == 0) == is_trusted, ended.stderr
    assert is_trusted or "certificate verify failed" in ended.stderr
