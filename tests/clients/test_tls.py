"""Clients that speak TLS, and trust the server by the variables that the guide names (access.md)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import certificates
from certificates import Files
from serving import serving


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return certificates.make(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def variables(files: Files) -> dict[str, str]:
    """The variables that the page names, with the file of the authority."""
    page = (Path(__file__).parents[2] / "packages/access/docs/access.md").read_text()
    names = set(re.findall(r"`(\w+)=…/rootCA.pem`", page))
    assert names == {"AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"}
    return dict.fromkeys(names, str(files.ca))


@pytest.fixture(scope="module")
def endpoint(files: Files) -> Iterator[str]:
    with serving("--memory", *files.options()) as server:
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
    with pytest.raises(AssertionError, match=r"UNABLE_TO_VERIFY|SELF_SIGNED_CERT"):
        run_node("encrypted.mjs", "stranger")


@pytest.mark.parametrize("is_trusted", [True, False])
def test_the_aws_cli(client_environment: dict[str, str], is_trusted: bool) -> None:
    command = shutil.which("aws", path=str(Path(sys.executable).parent)) or shutil.which("aws")
    if command is None:
        pytest.skip("the AWS CLI is not installed")
    if not is_trusted:
        del client_environment["AWS_CA_BUNDLE"]
        client_environment["AWS_MAX_ATTEMPTS"] = "1"  # it waits longer before each of ten
    ended = subprocess.run(
        [command, "dynamodb", "list-tables", "--output", "text"],
        env=client_environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode == 0) == is_trusted, ended.stderr
    assert is_trusted or "certificate verify failed" in ended.stderr
