"""`hashrange mcp`: tools for agents over an endpoint, by stdio or HTTP."""

from __future__ import annotations

import importlib.resources
import ipaddress
from typing import Any, Final

import click

from hashrange.cli.forms import Size
from hashrange.cli.remote.connecting import connection

_SKILL: Final = "SKILL.md"
_EPILOG: Final = """\b
Examples:
  hashrange mcp                                 tools over the server of this machine, by stdio
  hashrange mcp --write                         with tools that write
  hashrange mcp --endpoint-url aws --region eu-central-1
                                                over Amazon DynamoDB, with the credentials of boto3
  hashrange mcp --http 127.0.0.1:8765           by streamable HTTP, at http://127.0.0.1:8765/mcp
  hashrange mcp --skill > SKILL.md              what an agent should know of Hashrange

Most clients start the command themselves, and use its stdin and stdout. See
packages/mcp/docs/agents.md."""


class _Address(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """A loopback address and a port."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        host, _, port = value.rpartition(":")
        host = host.strip("[]") or "127.0.0.1"
        if not (port.isascii() and port.isdigit() and int(port) < 65_536):
            self.fail(f"{value!r} names no port; write one such as 127.0.0.1:8765.", param, ctx)
        try:
            is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            is_loopback = False
        if not is_loopback:
            self.fail(
                f"{host} is not an address of this machine only; anyone who reaches it may use the tools: "
                "write 127.0.0.1:PORT, and put a proxy that asks for a password in front for other machines.",
                param,
                ctx,
            )
        return host, int(port)


@click.command("mcp", epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@connection
@click.option("--write", is_flag=True, help="Offer the tools that write as well.")
@click.option(
    "--http",
    type=_Address(),
    help="Speak streamable HTTP at this loopback address, path /mcp.  [default: stdio]",
)
@click.option(
    "--answer-size",
    type=Size(4 << 10, 4 << 20),
    default="48KiB",
    show_default=True,
    help="The most bytes of an answer; what does not fit is left out, and the answer says how to get it.",
)
@click.option("--skill", is_flag=True, help="Print what an agent should know of Hashrange, and exit.")
def command(
    endpoint_url: str,
    region: str | None,
    write: bool,
    http: tuple[str, int] | None,
    answer_size: int,
    skill: bool,
) -> None:
    """Give agents tools over the tables of an endpoint, by the Model Context Protocol."""
    if skill:
        click.echo(importlib.resources.files("hashrange_mcp").joinpath(_SKILL).read_text("utf-8"), nl=False)
        return
    # Imported here, because the SDK of the protocol takes a second to load.
    from hashrange_mcp.connection import connected
    from hashrange_mcp.server import server_of

    connection_ = connected(endpoint_url, region, writes=write, bytes_max=answer_size)
    server = server_of(connection_, logs=http is not None)
    if http is None:
        server.run("stdio")
    else:
        server.run("streamable-http", host=http[0], port=http[1])
