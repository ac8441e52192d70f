"""What commands share that use a server's API by boto3: the options that name the server, clients, errors."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from hashrange.cli.remote.asking import AWS, endpoint_option, tell_server

if TYPE_CHECKING:
    from hashrange.cli.remote.clients import Clients


def needed() -> ModuleType:
    """The module `cli.remote.clients`, which needs boto3. Raises `ClickException` without it."""
    try:
        from hashrange.cli.remote import clients
    except ImportError as error:
        raise click.ClickException("This command needs boto3; install it with: pip install boto3") from error
    return clients


def connection(function: Any) -> Any:
    """The options that say where the database is."""
    function = click.option("--region", envvar="AWS_DEFAULT_REGION", help="Region of the table.")(function)
    return endpoint_option(f"URL of the server; `{AWS}` for Amazon DynamoDB.")(function)


def connect(endpoint_url: str, region: str | None, **more: Any) -> Clients:
    """Clients of the server that the options of `connection` name; `more` goes to `clients.connect`. Raises
    `ClickException`."""
    clients = needed()
    try:
        # (with AWS, whatever endpoint the environment names)
        place: dict[str, Any] = {"only_aws": True} if endpoint_url == AWS else {"endpoint_url": endpoint_url}
        made: Clients = clients.connect(region=region, **place, **more)
        return made
    except (*clients.SERVICE_ERRORS, ValueError) as error:
        raise click.ClickException(str(error)) from error


def connect_loudly(endpoint_url: str, region: str | None) -> Clients:
    """Like `connect`, and it says on stderr which server this is."""
    tell_server(endpoint_url if endpoint_url != AWS else "Amazon DynamoDB")
    return connect(endpoint_url, region)


def attempt(work: Callable[[], Any], endpoint_url: str, *further: type[Exception]) -> Any:
    """The result of `work` with a server; an error of it, or one of `further`, becomes a `ClickException` of
    one line."""
    clients = needed()
    try:
        return work()
    except (*further, *clients.SERVICE_ERRORS) as error:
        why = clients.explain(error)
        raise click.ClickException(why if endpoint_url in why else f"{endpoint_url}: {why}") from error
