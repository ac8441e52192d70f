"""What programs reach: the settings of SDKs in the environment, the server, and its port."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

import click

from hashrange.cli.health.findings import NOTE, OK, PROBLEM, Finding
from hashrange.cli.remote.asking import AWS, health, hello, reachable, why_silent
from hashrange.files import descriptors
from hashrange.protocol import NO_ADMIN

ENDPOINT: Final = "AWS_ENDPOINT_URL_DYNAMODB"
_ENDPOINTS: Final = (ENDPOINT, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS")
_ANY_SERVICE: Final = "AWS_ENDPOINT_URL"
_IGNORED: Final = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
DESCRIPTORS_MIN: Final = 1024
_HEALTH_SECONDS_MAX: Final = 10.0


def findings(endpoint_url: str, environment: Mapping[str, str]) -> Iterator[Finding]:
    """The findings about the server at `endpoint_url`, and about the variables of SDKs."""
    yield _open_files()
    yield _endpoint_variables(environment)
    yield _credentials(environment)
    if (found := _proxy(endpoint_url, environment)) is not None:
        yield found
    if endpoint_url != AWS:
        yield from _server(endpoint_url)


def _open_files() -> Finding:
    descriptors.raise_limit()
    limit = descriptors.descriptors_max()
    text = f"{limit} files and connections may be open at once"
    if limit < DESCRIPTORS_MIN:
        return Finding("open files", NOTE, text, "Raise the limit: ulimit -n 65536")
    return Finding("open files", OK, text)


def _endpoint_variables(environment: Mapping[str, str]) -> Finding:
    if environment.get(_IGNORED, "").lower() == "true":
        return Finding(
            "endpoint", NOTE, f"{_IGNORED} is true: SDKs reach AWS", f"Unset {_IGNORED} to use this server."
        )
    missing = [name for name in _ENDPOINTS if not environment.get(name) and not environment.get(_ANY_SERVICE)]
    if missing:
        return Finding(
            "endpoint",
            NOTE,
            f"{' and '.join(missing)} not set: SDKs in this shell reach AWS unless their code says otherwise",
            "Export the variables that `hashrange serve` prints at its start.",
        )
    named = [name for name in (*_ENDPOINTS, _ANY_SERVICE) if environment.get(name)]
    return Finding("endpoint", OK, ", ".join(f"{name}={environment[name]}" for name in named))


def _credentials(environment: Mapping[str, str]) -> Finding:
    region = next((environment[name] for name in _REGIONS if environment.get(name)), None)
    missing = [name for name in _KEYS if not environment.get(name)]
    if region is None:
        missing += _REGIONS
    if missing:
        return Finding(
            "credentials",
            NOTE,
            f"SDKs need a region and credentials, and the environment has no {', no '.join(missing)}",
            "Any values work with this server; a profile of the AWS CLI may have them, too.",
        )
    return Finding("credentials", OK, f"in the environment, with region {region}")


def _proxy(endpoint_url: str, environment: Mapping[str, str]) -> Finding | None:
    parts = urlsplit(endpoint_url)
    names = (f"{parts.scheme}_proxy", f"{parts.scheme}_proxy".upper())
    proxy = next((environment[name] for name in names if environment.get(name)), None)
    if proxy is None or not parts.hostname:
        return None
    without = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    if proxy_bypass_environment(parts.hostname, {"no": without}):
        return None
    return Finding(
        "proxy",
        PROBLEM,
        f"SDKs send requests for {parts.hostname} to the proxy of {names[1]}",
        f"Add {parts.hostname} to NO_PROXY.",
    )


def _server(endpoint_url: str) -> Iterator[Finding]:
    try:
        admin_url = hello(endpoint_url)
    except OSError as error:
        yield _silent(endpoint_url, why_silent(error))
        return
    if admin_url is None:
        yield Finding("server", NOTE, f"another program answers at {endpoint_url}, which is not Hashrange")
        return
    if admin_url == NO_ADMIN:
        yield Finding("server", OK, f"Hashrange answers at {endpoint_url}; it has no admin plane")
        return
    yield Finding("server", OK, f"Hashrange answers at {endpoint_url}")
    try:
        reached = reachable(endpoint_url, admin_url)
        status, shown = health(reached, _HEALTH_SECONDS_MAX)
    except (click.ClickException, OSError) as error:
        yield Finding("health", NOTE, f"not known: {error}")
        return
    yield judged(status, shown, reached)


def judged(status: int, shown: Mapping[str, object], admin_url: str) -> Finding:
    """The finding about an answer of /health."""
    if status == 401:
        return Finding("health", NOTE, f"{admin_url} asks for a token", "Set HASHRANGE_ADMIN_TOKEN.")
    said = str(shown.get("status", f"answered {status}"))
    cause = f": {shown['cause']}" if "cause" in shown else ""
    if status != 200:
        return Finding("health", PROBLEM, said + cause, f"See GET {admin_url}/health.")
    if said != "ok":
        return Finding("health", NOTE, said + cause, f"See GET {admin_url}/health.")
    facts = ", ".join(f"{shown[name]}" for name in ("version", "engine", "hot_path") if name in shown)
    return Finding("health", OK, f"ok ({facts})")


def _silent(endpoint_url: str, why: str) -> Finding:
    """Nobody answers: either nobody listens, or a program that does not speak HTTP."""
    parts = urlsplit(endpoint_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if parts.hostname in ("127.0.0.1", "localhost", "::1"):
        with socket.socket(socket.AF_INET6 if parts.hostname == "::1" else socket.AF_INET) as probe:
            if sys.platform != "win32":  # where it would give away a port that is taken
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((parts.hostname, port))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return Finding(
                        "server",
                        PROBLEM,
                        f"port {port} is taken by a program that does not answer ({why})",
                        "Stop that program, or choose another port: hashrange serve --port 4566",
                    )
        return Finding("server", OK, f"none at {endpoint_url}, and the port is free for `hashrange serve`")
    return Finding(
        "server",
        PROBLEM,
        f"no server answers at {endpoint_url}: {why}",
        "Start it, or name another with --endpoint-url.",
    )


def environment() -> Mapping[str, str]:
    """The variables of this process."""
    return os.environ
