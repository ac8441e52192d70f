"""`hashrange healthcheck`: whether a server serves, for containers, systemd and balancers.

It asks the admin plane for its health. A server without an admin plane is healthy if it answers at all.

Which server? That of --endpoint-url; else the one on this machine that --host and --port name; else that of
this container or unit, whose command line is read where the system shows it; else the one that the variables
of `serve` name; else that of AWS_ENDPOINT_URL_DYNAMODB, as for all commands.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from hashrange.cli.forms import Duration
from hashrange.cli.remote.asking import (
    DEFAULT_ENDPOINT,
    ENDPOINT_VARIABLES,
    health,
    hello,
    reachable,
    tell_server,
    understood,
    why_silent,
)
from hashrange.cli.serving import serve
from hashrange.pace.workers import hold_up
from hashrange.protocol import NO_ADMIN

_MAIN: Final = "MAINPID"
"""The variable in which systemd names the process of the server, in ExecStartPost."""
_AGAIN_SECONDS: Final = 0.2
_EPILOG: Final = """\b
Exit codes: 0 healthy, 1 not.

\b
Examples:
  hashrange healthcheck
  hashrange healthcheck --port 8001 --timeout 2s
  hashrange serve --memory & hashrange healthcheck --wait 30s
  hashrange healthcheck --endpoint-url http://db.example:8000
  HEALTHCHECK CMD ["hashrange", "healthcheck"]       in a Dockerfile"""


@click.command("healthcheck", epilog=_EPILOG)
@click.option("--host", help="Address of the server, on this machine.  [default: that of the server]")
@click.option(
    "--port",
    type=click.IntRange(1, 65_535),
    help="Port of the server, on this machine.  [default: that of the server]",
)
@click.option(
    "--tls-cert",
    "certificate",
    help="The certificate of the server on this machine, if it speaks TLS; no other is trusted.  "
    "[default: that of the server]",
)
@click.option("--endpoint-url", help="URL of the server, if it is not on this machine.")
@click.option(
    "--timeout",
    type=Duration(0.1),
    default="4s",
    show_default=True,
    help="How long each answer may take.",
)
@click.option(
    "--wait",
    type=Duration(),
    default="0s",
    show_default=True,
    help="How long to keep asking until the server is healthy; for a server that is starting.",
)
def command(
    host: str | None,
    port: int | None,
    certificate: str | None,
    endpoint_url: str | None,
    timeout: float,
    wait: float,
) -> None:
    """Check whether a server is healthy; the exit status is the answer.

    Without options: the server of this container or systemd unit, or of the variables HASHRANGE_HOST,
    HASHRANGE_PORT and HASHRANGE_TLS_CERT, or of AWS_ENDPOINT_URL_DYNAMODB.
    """
    named = {"host": host, "port": port, "tls_cert": certificate}
    here = None if endpoint_url else own(named, arguments_of_server())
    if here is not None:
        url, certificate = here
    else:
        url, certificate = endpoint_url or _of_environment() or DEFAULT_ENDPOINT, None
    tell_server(url)
    end = time.monotonic() + wait
    while True:
        try:
            with understood(url):
                click.echo(_health(url, timeout, certificate, is_here=here is not None))
            return
        except click.ClickException as error:
            if time.monotonic() >= end:
                raise click.ClickException(f"{url}: {error.message}") from None
        hold_up(_AGAIN_SECONDS)


def own(named: Mapping[str, object], arguments: list[str]) -> tuple[str, str | None] | None:
    """The URL and the certificate of the server of this machine: as `named`, else as its `arguments` or its
    variables say. None if nothing says anything."""
    of_server = serve.command.make_context("serve", list(arguments), resilient_parsing=True)
    is_told = [of_server.get_parameter_source(name) is not ParameterSource.DEFAULT for name in named]
    if not (any(is_told) or any(named.values())):
        return None
    host, port, certificate = (named[name] or of_server.params.get(name) for name in named)
    address = own_address(str(host or ""))
    url = f"{'https' if certificate else 'http'}://{address}:{port or serve.DEFAULT_PORT}"
    return url, str(certificate) if certificate else None


def own_address(host: str) -> str:
    """The address at which this machine reaches a server that listens on `host`, for a URL."""
    try:
        address = ip_address(host or "0.0.0.0")
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return host if address.version == 4 else f"[{host}]"


def arguments_of_server(processes: Path = Path("/proc")) -> list[str]:
    """The arguments of the `hashrange serve` that is the first process of this container, or the main one of
    this unit of systemd. [] if there is none. `processes`: where the system shows them."""
    try:
        line = (processes / os.environ.get(_MAIN, "1") / "cmdline").read_bytes()
    except OSError:
        return []
    words = line.decode("utf-8", "surrogateescape").split("\0")[:-1]
    names = [os.path.basename(word) for word in words]
    if "serve" not in names or "hashrange" not in names[: names.index("serve")]:
        return []
    return words[names.index("serve") + 1 :]


def _of_environment() -> str | None:
    return next((os.environ[name] for name in ENDPOINT_VARIABLES if os.environ.get(name)), None)


def _health(endpoint_url: str, seconds: float, certificate: str | None, *, is_here: bool) -> str:
    """What the server says of its health, if it is healthy. `is_here`: it is on this machine, at whatever
    address. Raises click.ClickException."""
    try:
        admin_url = hello(endpoint_url, seconds, certificate=certificate)
        if admin_url is None:
            raise click.ClickException("not a Hashrange server.")
        if admin_url == NO_ADMIN:
            return "ok: the server answers"
        reached = reachable(endpoint_url, admin_url, is_here=is_here)
        status, shown = health(reached, seconds, certificate=certificate)
    except OSError as error:
        raise click.ClickException(f"no answer: {why_silent(error)}") from None
    said = str(shown.get("status", shown.get("error", f"answered {status}")))
    if status != 200:
        cause = f": {shown['cause']}" if "cause" in shown else ""
        raise click.ClickException(said + cause)
    return said
