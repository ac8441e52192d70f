"""What `hashrange serve` says when it has started: to the log, and to the user who started it."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import click

from hashrange import compiled, form
from hashrange.cli.health.installed import how_to_compile
from hashrange.server.access import is_loopback

_log = logging.getLogger("hashrange.cli.serving.serve")

_FOR_COMMANDS: Final = "for `hashrange key` and other commands: HASHRANGE_ADMIN_TOKEN; until the server stops"
_OPEN: Final = "anyone who can reach the port can read and change all data"
_TRUST: Final = "# and AWS_CA_BUNDLE=FILE, if the machine does not trust the certificate's authority already"
_KEY: Final = "AWS_ACCESS_KEY_ID=YOUR-KEY AWS_SECRET_ACCESS_KEY=ITS-SECRET"
_ATTENTION: Final = """
    !! Anyone who can reach this port can read and change all data, with any credentials. Use
    !! --auth strict, or let only trusted machines reach the port, or use --host 127.0.0.1.
"""


@dataclass(frozen=True, slots=True)
class Secrets:
    """What only the user who starts a server may see: the lines of rings (`ServingPart.bound`), and the token
    of the admin plane if the server has made it, otherwise ""."""

    lines: Mapping[str, str] = field(default_factory=dict)
    token: str = ""


def announce(
    fields: dict[str, Any],
    region: str,
    log_format: str,
    secrets: Secrets,
    open_on: str | None,
    asks_for_keys: bool,
) -> None:
    """Announce that the server has started. `open_on` is its host if other machines can reach it. The
    `secrets` are not for the log. `asks_for_keys`: nobody has access without a key."""
    _log.info("started", extra={"fields": fields})
    if open_on is not None:
        _log.warning(_OPEN, extra={"fields": {"host": open_on}})
    if log_format == "text":
        warns = open_on is not None
        click.echo(welcome(fields, region, secrets, warns=warns, strict=asks_for_keys))


def is_open(host: str, port: int) -> bool:
    """Whether other machines can reach a server that listens on `host`."""
    addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return not all(is_loopback(str(info[4][0])) for info in addresses)


def check_free(host: str, port: int) -> None:
    """Check that a server could listen on `port` (0: on any) of `host`, before it makes any file. Raises
    OSError."""
    addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, address in dict.fromkeys((info[0], info[4]) for info in addresses):
        with socket.socket(family) as tried:
            if os.name == "posix":
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            tried.bind(address)


def welcome(
    fields: dict[str, Any],
    region: str,
    secrets: Secrets,
    *,
    warns: bool,
    strict: bool = False,
) -> str:
    """The text for the user who starts a server: where it listens, where the data is, how programs reach
    it. `strict`: only those who have a key have access."""
    endpoint = fields["endpoint"]
    durable = fields["engine"] != "memory"
    data = f"{fields['data']} (durable)" if durable else "in memory (lost when the server stops)"
    admin = f"{fields['admin']} (health, metrics, tables)" if "admin" in fields else "none"
    token = f"\n    token      {secrets.token} ({_FOR_COMMANDS})" if secrets.token else ""
    lines = "".join(f"    {title:<10} {text}\n" for title, text in secrets.lines.items())
    trust = f"\n    {_TRUST}" if endpoint.startswith("https") else ""
    key = _KEY if strict else "AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any"
    speed = form() if compiled() else f"{form()} (compiled, about 1.5 times as fast: {how_to_compile()})"
    return f"""
Hashrange {fields["version"]}

    endpoint   {endpoint}
    data       {data}
    admin      {admin}{token}
{lines}    hot path   {speed}
{_ATTENTION if warns else ""}
Programs with an AWS SDK, and the AWS CLI, use this server with these settings:

    export AWS_ENDPOINT_URL_DYNAMODB={endpoint} AWS_ENDPOINT_URL_DYNAMODB_STREAMS={endpoint}
    export {key} AWS_REGION={region} AWS_DEFAULT_REGION={region}\
{trust}
    aws dynamodb list-tables

Ctrl-C stops the server.
"""
