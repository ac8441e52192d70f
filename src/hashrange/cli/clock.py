"""`hashrange clock …`: show and change the virtual clock of a running server, through its admin plane."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, Final

import click
import orjson

from hashrange.cli.serve import ADMIN_PORT_DISTANCE, DEFAULT_PORT

DEFAULT_ADMIN_URL: Final = f"http://127.0.0.1:{DEFAULT_PORT + ADMIN_PORT_DISTANCE}"
# The server does the work that a change makes due before it answers, which may take long for large tables.
_CHANGE_SECONDS_MAX: Final = 3_600.0

_EPILOG: Final = """\b
Examples, with a server that was started with --virtual-clock:
  hashrange clock show
  hashrange clock freeze --at 2026-01-01
  hashrange clock advance 7d
  hashrange clock resume

A change is answered when all work that it made due is done: expired items are deleted, stream records past
their retention are trimmed, indexes are up to date."""


def _admin_url(function: Any) -> Any:
    return click.option(
        "--admin-url",
        envvar="HASHRANGE_ADMIN_URL",
        show_envvar=True,
        default=DEFAULT_ADMIN_URL,
        show_default=True,
        help="URL of the server's admin plane; the server logs it when it starts.",
    )(function)


@click.group("clock", epilog=_EPILOG)
def command() -> None:
    """Show, freeze, set, advance and resume the clock of a running server."""


@command.command("show")
@_admin_url
def show(admin_url: str) -> None:
    """Show the time of the database's clock."""
    _tell(_ask(admin_url))


def _moment_option(text: str) -> Callable[[Any], Any]:
    return click.option("--at", metavar="TIME", help=text)


@command.command("freeze")
@_moment_option("Set the clock to this time as it is frozen: ISO 8601, or epoch seconds.")
@_admin_url
def freeze(admin_url: str, at: str | None) -> None:
    """Make the clock stand still."""
    _tell(_ask(admin_url, frozen=True, **({} if at is None else {"set": at})))


@command.command("set")
@click.argument("time")
@_admin_url
def set_(admin_url: str, time: str) -> None:
    """Set the clock to TIME: ISO 8601 (UTC where it names no zone), or epoch seconds."""
    _tell(_ask(admin_url, set=time))


@command.command("advance")
@click.argument("duration")
@_admin_url
def advance(admin_url: str, duration: str) -> None:
    """Move the clock on by DURATION: seconds, or a text such as 15m, 24h, 7d or 1d12h."""
    _tell(_ask(admin_url, advance=duration))


@command.command("resume")
@_admin_url
def resume(admin_url: str) -> None:
    """Make a frozen clock run on from the time that it shows."""
    _tell(_ask(admin_url, frozen=False))


def _ask(admin_url: str, **change: str | bool) -> dict[str, Any]:
    """The clock as the admin plane shows it, after `change` if there is one."""
    try:
        request = urllib.request.Request(
            f"{admin_url.rstrip('/')}/clock",
            data=orjson.dumps(change) if change else None,
            headers={"Content-Type": "application/json"},
        )
        # Ignore proxies of the environment, because the address is a loopback address.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=_CHANGE_SECONDS_MAX) as answer:
            shown = orjson.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            raise click.ClickException(_told(error)) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise click.ClickException(
            f"No admin plane answers at {admin_url} ({reason}); start a server with `hashrange serve "
            "--virtual-clock`, and name its admin URL with --admin-url."
        ) from None
    if not isinstance(shown, dict) or "time" not in shown:
        raise click.ClickException(f"{admin_url} is no admin plane; is it the server's own endpoint?")
    return shown


def _told(error: urllib.error.HTTPError) -> str:
    """The text of an error answer, in any of its forms."""
    body = error.read()
    try:
        return str(orjson.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return f"{error.url} answered {error.code}; is it the server's own endpoint, not its admin URL?"


def _tell(clock: dict[str, Any]) -> None:
    state = "frozen" if clock["frozen"] else "running" if clock["virtual"] else "the machine's clock"
    click.echo(f"{clock['time']}  {state}")
