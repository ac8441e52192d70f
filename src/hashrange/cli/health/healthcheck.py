"""`hashrange healthcheck`: whether a server serves, for containers, systemd and balancers.

It asks the admin plane for its health. A server without an admin plane is healthy if it answers at all.
"""

from __future__ import annotations

import time
from typing import Final

import click

from hashrange.cli.remote.asking import health, hello, reachable, why_silent
from hashrange.cli.serving.serve import DEFAULT_PORT
from hashrange.pace.workers import hold_up
from hashrange.protocol import NO_ADMIN

_AGAIN_SECONDS: Final = 0.2
_EPILOG: Final = """\b
Exit codes: 0 healthy, 1 not.

\b
Examples:
  hashrange healthcheck
  hashrange healthcheck --port 8001 --seconds 2
  hashrange serve --memory & hashrange healthcheck --wait 30
  hashrange healthcheck --endpoint-url http://db.example:8000
  HEALTHCHECK CMD ["hashrange", "healthcheck"]       in a Dockerfile"""


@click.command("healthcheck", epilog=_EPILOG)
@click.option(
    "--port",
    type=click.IntRange(1, 65_535),
    envvar="HASHRANGE_PORT",
    show_envvar=True,
    default=DEFAULT_PORT,
    show_default=True,
    help="Port of the server, on this machine.",
)
@click.option(
    "--tls-cert",
    "certificate",
    envvar="HASHRANGE_TLS_CERT",
    show_envvar=True,
    help="The certificate of the server on this machine, if it speaks TLS; no other is trusted.",
)
@click.option("--endpoint-url", help="URL of the server, if it is not on this machine.")
@click.option(
    "--seconds",
    type=click.FloatRange(0.1),
    default=4.0,
    show_default=True,
    help="How long each answer may take.",
)
@click.option(
    "--wait",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    metavar="SECONDS",
    help="Ask again for so long, until the server is healthy; for a server that is starting.",
)
def command(
    port: int, certificate: str | None, endpoint_url: str | None, seconds: float, wait: float
) -> None:
    """Ask whether a server serves; the exit status is the answer."""
    url = endpoint_url or f"{'https' if certificate else 'http'}://127.0.0.1:{port}"
    end = time.monotonic() + wait
    while True:
        try:
            click.echo(_health(url, seconds, None if endpoint_url else certificate))
            return
        except click.ClickException:
            if time.monotonic() >= end:
                raise
        hold_up(_AGAIN_SECONDS)


def _health(endpoint_url: str, seconds: float, certificate: str | None) -> str:
    """What the server says of its health, if it is healthy. Raises click.ClickException."""
    try:
        admin_url = hello(endpoint_url, seconds, certificate=certificate)
        if admin_url is None:
            raise click.ClickException(f"{endpoint_url} is not a Hashrange server.")
        if admin_url == NO_ADMIN:
            return "ok: the server answers"
        status, shown = health(
            reachable(endpoint_url, admin_url), seconds, certificate=certificate
        )
    except OSError as error:
        raise click.ClickException(f"no answer: {why_silent(error)}") from None
    said = str(shown.get("status", shown.get("error", f"answered {status}")))
    if status != 200:
        cause = f": {shown['cause']}" if "cause" in shown else ""
        raise click.ClickException(said + cause)
    return said
